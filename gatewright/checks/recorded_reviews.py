"""Read recorded requests: AdmissionReviews or API server audit events, one JSON object per line."""

from collections.abc import Iterator
from pathlib import Path

import orjson

from config.documents import Document, DocumentError
from config.positions import OneLine
from kube.resource import JsonObject, group_version_kind

# By the verb of an audit event.
OPERATIONS = {"create": "CREATE", "update": "UPDATE", "patch": "UPDATE"}


def read_reviews(path: Path) -> Iterator[Document | DocumentError]:
    """Yield each line of a file as an AdmissionReview (admission.k8s.io/v1), or an error about it.

    In an audit log (audit.k8s.io/v1 Event), only finished writes with their object become reviews;
    other events are skipped. Raises DocumentError if the file cannot be read.
    """
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise DocumentError(f"{path}: {error.strerror or error}") from None
    events = reviews = 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            yield DocumentError(f"{path}:{number}: not JSON: {error}")
            continue
        kind = value.get("kind") if isinstance(value, dict) else None
        if kind == "AdmissionReview":
            yield _document(path, number, value)
        elif kind == "Event" and str(value.get("apiVersion", "")).startswith("audit.k8s.io/"):
            try:
                review = _review(value)
            except (AttributeError, TypeError, ValueError):
                yield DocumentError(f"{path}:{number}: not a valid audit Event")
                continue
            events += 1
            if review is not None:
                reviews += 1
                yield _document(path, number, review)
        else:
            yield DocumentError(f"{path}:{number}: neither an AdmissionReview nor an audit Event")
    if events and not reviews:
        yield DocumentError(
            f"{path}: no event has the object that was written; record level Request or "
            "RequestResponse"
        )


def _document(path: Path, number: int, review: JsonObject) -> Document:
    return Document(str(path), review, OneLine(number))


def _review(event: JsonObject) -> JsonObject | None:
    """Return the review of the write in an audit event.

    Return None for a read, and for an event without the written object.
    """
    operation = OPERATIONS.get(str(event.get("verb")))
    about, status = event.get("objectRef") or {}, event.get("responseStatus") or {}
    sent, stored = event.get("requestObject"), event.get("responseObject")
    if operation is None or event.get("stage") != "ResponseComplete":
        return None
    succeeded = int(status.get("code") or 0) < 300
    object = (
        stored
        if succeeded and isinstance(stored, dict)
        else sent
        if event["verb"] != "patch"
        else None
    )
    if not isinstance(object, dict) or "kind" not in object:
        return None
    group, version, kind = group_version_kind(object)
    user = event.get("user") or {}
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": str(event.get("auditID") or "recorded"),
            "kind": {"group": group, "version": version, "kind": kind},
            "resource": {
                "group": about.get("apiGroup", ""),
                "version": about.get("apiVersion", ""),
                "resource": about.get("resource", ""),
            },
            "subResource": about.get("subresource", ""),
            "name": about.get("name") or (object.get("metadata") or {}).get("name", ""),
            "namespace": about.get("namespace", ""),
            "operation": operation,
            "userInfo": {"username": user.get("username", ""), "groups": user.get("groups") or []},
            "object": object,
            "oldObject": None,
        },
    }
