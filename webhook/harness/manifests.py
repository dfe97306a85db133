"""Judge manifests as the webhook would if somebody applied them."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import jsonpatch

from config.converters import ConversionError, stored
from config.defaulting import defaulted
from config.documents import Document, DocumentError
from webhook.engine import NAMESPACE_LABELS, NOW, SERVED, Engine, Verdict
from webhook.engine.fields import JSON_TYPES
from webhook.engine.look_ups import LOOK_UPS
from webhook.engine.request import NAME_LABEL
from webhook.harness.bases import is_cluster_scoped, namespace_of
from webhook.harness.reviews import Admission, group_version_kind
from webhook.harness.trial import Answer, ask
from webhook.messages import TRY_AGAIN, warnings
from webhook.review import MalformedRequestError

NO_POLICY_LOOKS_AT = frozenset({"Node", "PersistentVolume"})  # and they live outside of any namespace
FIELD = re.compile(r"([A-Za-z]+/\S+: )?[^:]+(?=: )")  # a field in a message, of what would be made if need be
METADATA = {"name": str, "generateName": str, "namespace": str, "labels": dict}  # what is read before any policy


@dataclass(frozen=True, slots=True)
class Finding:
    """One line that is said about a manifest: who says it, about which field, what."""

    policy: str
    path: str
    message: str


@dataclass(frozen=True, slots=True)
class Judged:
    """What would come of one manifest.

    `verdict` is one of allowed, mutated, warned, denied, unmatched (no policy looks at it) and error (a policy could
    not decide).
    """

    document: Document
    namespace: str
    verdict: str
    findings: tuple[Finding, ...]
    operations: tuple[dict[str, Any], ...]
    object: dict[str, Any]  # in the version that is stored, with what was set

    @property
    def title(self) -> str:
        """Kind, namespace and name."""
        metadata = self.document.value.get("metadata") or {}
        name = metadata.get("name") or f"{metadata.get('generateName', '')}*"
        return f"{self.document.value['kind']} {f'{self.namespace}/' if self.namespace else ''}{name}"


def judge(engine: Engine, documents: Iterable[Document], namespace: str, now: datetime) -> Iterator[Judged]:
    """Yield what would come of each document at the time `now`; `namespace` is where those go that name none.

    What policies look up is known where the documents hold it. DocumentError where one is no object of the API.
    """
    documents = list(documents)
    for document in documents:
        require_object(document)
    known = _Known([document.value for document in documents], namespace)
    for document in documents:
        where = _namespace(document.value, namespace)
        yield _judge(engine, document, where, {NOW: now, SERVED: ()} | known.about(where))


class _Known:
    """What the documents tell about the cluster they are for: everything of a namespace that is among them."""

    def __init__(self, objects: list[dict[str, Any]], namespace: str) -> None:
        named = [each for each in objects if each["metadata"].get("name")]
        self._labels = {
            each["metadata"]["name"]: {NAME_LABEL: each["metadata"]["name"], **(each["metadata"].get("labels") or {})}
            for each in named
            if each["kind"] == "Namespace"
        }
        self._found: dict[str, list[tuple[str, dict[str, Any]]]] = {name: [] for name in LOOK_UPS}
        for name, look_up in LOOK_UPS.items():
            for each in named:
                if each["kind"] in look_up.kinds:
                    where = _namespace(each, namespace)
                    self._found[name].append((where, look_up.shaped(each, where)))

    def about(self, namespace: str) -> dict[str, Any]:
        """Return what can be looked up for an object in `namespace`; of an unknown namespace nothing is assumed."""
        found: dict[str, Any] = {
            name: [each for where, each in self._found[name] if look_up.everywhere or where == namespace]
            for name, look_up in LOOK_UPS.items()
            if not look_up.completes or namespace in self._labels
        }
        return found | ({NAMESPACE_LABELS: self._labels[namespace]} if namespace in self._labels else {})


def require_object(document: Document) -> None:
    """Raise DocumentError where a document is no object of the API."""
    value = document.value
    for field in ("apiVersion", "kind"):
        if not isinstance(value, dict) or not isinstance(value.get(field), str) or not value[field]:
            raise DocumentError(f"{document.where(field)}: {field}: missing; every object of the API has one")
    if not isinstance(value.get("metadata"), dict):
        raise DocumentError(f"{document.where('metadata')}: metadata: missing, or not an object")
    for field, wanted in METADATA.items():
        if not isinstance(value["metadata"].get(field), wanted | None):
            path = f"metadata.{field}"
            raise DocumentError(f"{document.where(path)}: {path}: must be {JSON_TYPES[wanted]}")


def _namespace(value: dict[str, Any], namespace: str) -> str:
    if value["kind"] in NO_POLICY_LOOKS_AT or is_cluster_scoped(value["kind"]):
        return ""
    return value["metadata"].get("namespace") or namespace


def _judge(engine: Engine, document: Document, where: str, looked_up: dict[str, Any]) -> Judged:
    try:
        sent = group_version_kind(document.value)
        object = defaulted(stored(document.value))
        admission = Admission(object, namespace=namespace_of(object["kind"], object, where), sent=sent)
        answer = ask(engine, admission, looked_up)
    except (ConversionError, MalformedRequestError) as error:
        raise DocumentError(f"{document.where()}: {error}") from None
    patch = jsonpatch.make_patch(admission.object, answer.object) if answer.allowed else ()
    return Judged(document, where, _verdict(answer), tuple(_findings(answer, where)), tuple(patch), answer.object or {})


def _verdict(answer: Answer) -> str:
    if not answer.outcomes:
        return "unmatched"
    if not answer.allowed:
        return "error" if answer.response["status"]["code"] == 500 else "denied"
    if answer.response.get("warnings"):
        return "warned"
    return "mutated" if any(outcome.patched for outcome in answer.outcomes) else "allowed"


def _findings(answer: Answer, namespace: str) -> Iterator[Finding]:
    add = f"Add Namespace {namespace} to the manifests."  # what stands in for trying again, where nobody is asked
    for cause in answer.response.get("status", {}).get("details", {}).get("causes", ()):
        yield Finding(cause["reason"], cause["field"], cause["message"].replace(TRY_AGAIN, add))
    for warning in warnings(Verdict(answer.outcomes)):  # all of them: the budget is the API server's
        policy, _, text = warning.partition(": ")
        path = FIELD.match(text)
        yield Finding(policy, path[0] if path else "", text.replace(TRY_AGAIN, add))
