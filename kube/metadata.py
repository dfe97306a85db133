"""Removes metadata fields with a wrong JSON type from objects that are read.

The API server does so when it reads its storage; a server that imitates it may not. Readers of
lists and watches rely on the types.
"""

import logging
from collections.abc import Callable
from typing import Any

from kube.resource import JsonObject, Resource

LOG = logging.getLogger("gatewright.kube.metadata")

MAX_DIGITS = 20  # digits of a resourceVersion, which has 64 bits
OWNER = ("apiVersion", "kind", "name", "uid")


def well_typed(object: JsonObject) -> JsonObject:
    """Return an object with the well-typed fields of its metadata."""
    metadata = object["metadata"]
    if not isinstance(metadata, dict):
        return {**object, "metadata": {}}
    wrong = [key for key, value in metadata.items() if not TYPES.get(key, _is_any)(value)]
    return {**object, "metadata": _without(metadata, wrong)} if wrong else object


def has_version(metadata: JsonObject) -> bool:
    """Return whether well-typed metadata has a resourceVersion that is a number."""
    version = metadata.get("resourceVersion", "")
    return version.isdecimal() and len(version) <= MAX_DIGITS


def is_identified(resource: Resource, metadata: JsonObject) -> bool:
    """Return whether well-typed metadata identifies an object; log it if not."""
    needed = ("name", "uid", "namespace") if resource.namespaced else ("name", "uid")
    if has_version(metadata) and all(metadata.get(each) for each in needed):
        return True
    fields = {"name": metadata.get("name"), "namespace": metadata.get("namespace")}
    message = "a malformed %s is skipped: it has no name, namespace, uid or resourceVersion"
    LOG.warning(message, resource.kind, extra={"fields": fields})
    return False


def _without(metadata: JsonObject, wrong: list[str]) -> JsonObject:
    return {key: value for key, value in metadata.items() if key not in wrong}


def _is_any(_: Any) -> bool:
    return True


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_texts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(each, str) for each in value.values())


def _is_list_of_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _is_owners(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(each, dict) and all(isinstance(each.get(key), str) for key in OWNER)
        for each in value
    )


TYPES: dict[str, Callable[[Any], bool]] = {
    "name": _is_text,
    "namespace": _is_text,
    "uid": _is_text,
    "resourceVersion": _is_text,
    "deletionTimestamp": _is_text,
    "creationTimestamp": _is_text,
    "generation": _is_number,
    "labels": _is_texts,
    "annotations": _is_texts,
    "finalizers": _is_list_of_texts,
    "ownerReferences": _is_owners,
}
