"""Writes a first case file: what a policy set answers today to recorded reviews or manifests."""

import copy
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from config.documents import Document, DocumentError, documents_at
from config.presets import presets
from gatewright.checks.subjects import read_reviews
from gatewright.outputs.yaml_text import to_yaml
from webhook.harness.cases import read_trials
from webhook.harness.objects import is_whole
from webhook.harness.subject import Subject
from webhook.harness.trial import attempt
from webhook.harness.update import CannotUpdateError, expectation_of
from webhook.policy_sets.catalogue import catalogue
from webhook.policy_sets.policy_set import without_cases
from webhook.server.recording import redact_object

OF_THE_SERVER = ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields")
NO_OBJECT = "not a Kubernetes object"
SUBRESOURCE = "a request for a subresource, which no case describes"
LINES = (".json", ".jsonl", ".ndjson", ".log")  # files of reviews: a JSON object on each line


class WrittenCases(NamedTuple):
    """A case file, the number of its cases, and the requests that it leaves out."""

    text: str
    number: int
    failed: list[str]
    unmatched: list[str]


def write_cases(policies: Path, paths: Iterable[Path], home: str, directory: Path) -> WrittenCases:
    """Return a case file for `directory`.

    It has the requests at `paths` and the set's answers to them.

    Equal requests become one case. Values of Secrets, ConfigMaps and environment variables are
    redacted first. Raises DocumentError if a file cannot be read.
    """
    carrier = Subject(tuple(without_cases(documents_at([policies]))), home=home)
    names = {path: name for name, path in presets().items()}
    cases, failed, unmatched = list[dict[str, Any]](), list[str](), list[str]()
    seen = set[bytes]()
    for where, case in _requests(paths):
        if isinstance(case, str):
            unmatched.append(f"{where}: {case}")
            continue
        key = orjson.dumps({name: value for name, value in case.items() if name != "name"})
        if key in seen:
            continue
        seen.add(key)
        case["name"] = f"{len(cases) + 1}: {case['name']}"
        try:
            wanted = _answer(case, carrier, home)
        except (DocumentError, CannotUpdateError) as error:
            failed.append(f"{where}: {case['name']}: {' '.join(str(error).split())}")
            continue
        if wanted == "not-matched":
            unmatched.append(f"{where}: {case['name']}: no policy judges it")
        else:
            cases.append(case | {"expect": wanted})
    policies_path = os.path.relpath(policies, directory)
    text = to_yaml({"policies": names.get(policies, policies_path), "cases": cases})
    return WrittenCases(text, len(cases), failed, unmatched)


def _answer(case: dict[str, Any], carrier: Subject, home: str) -> Any:
    """Return what the policies answer. Raises DocumentError or CannotUpdateError."""
    file = {"policies": "the set", "cases": [case | {"expect": "allowed"}]}
    (trial,) = read_trials([Document("", file)], catalogue(), home, carrier)
    tried = attempt(trial)
    wanted = expectation_of(trial, tried.answer)
    if wanted == "not-matched":
        return wanted
    file = {"policies": "the set", "cases": [case | {"expect": wanted}]}
    (trial,) = read_trials([Document("", file)], catalogue(), home, carrier)
    if differences := attempt(trial).differences:
        raise CannotUpdateError("; ".join(differences))
    return wanted


def _requests(paths: Iterable[Path]) -> Iterator[tuple[str, dict[str, Any] | str]]:
    """Yield where each request is from, and it as a case without an answer, or why it is none."""
    for path in paths:
        if path.is_file() and path.suffix in LINES:
            for review in read_reviews(path):
                if isinstance(review, DocumentError):
                    raise review
                request = review.value["request"]
                is_part = bool(request.get("subResource"))
                yield review.where(), SUBRESOURCE if is_part else _of_review(request)
            continue
        for document in documents_at([path]):
            if not is_whole(document):
                yield document.where(), NO_OBJECT
                continue
            object = _clean(document.value)
            yield document.where(), {"name": f"CREATE {_title(object)}", "object": object}


def _of_review(request: dict[str, Any]) -> dict[str, Any]:
    operation, user = request["operation"], request.get("userInfo") or {}
    object = _clean(request.get("object") or request.get("oldObject") or {})
    case = {"name": f"{operation} {_title(object)}", "object": object}
    if operation == "UPDATE" and request.get("oldObject"):
        case["old_object"] = _clean(request["oldObject"])
    elif operation == "DELETE":
        case["operation"] = operation
    if request.get("namespace"):
        case["namespace"] = request["namespace"]
    if user.get("username"):
        case |= {"username": user["username"], "groups": list(user.get("groups") or [])}
    return case


def _clean(object: dict[str, Any]) -> dict[str, Any]:
    """Return an object without values that may be secret, and without fields of the API server."""
    object = copy.deepcopy(object)
    redact_object(object)
    object.pop("status", None)
    for field in OF_THE_SERVER:
        object.get("metadata", {}).pop(field, None)
    return object


def _title(object: dict[str, Any]) -> str:
    metadata = object.get("metadata") or {}
    name = metadata.get("name") or metadata.get("generateName", "")
    return f"{object.get('kind', '')} {'/'.join(filter(None, (metadata.get('namespace'), name)))}"
