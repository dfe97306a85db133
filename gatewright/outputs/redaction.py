"""Redact Secrets in output: each value is replaced by a word that shows whether it changed."""

from collections.abc import Mapping
from typing import Any

from kube.resource import JsonObject

PARTS = ("data", "stringData")
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"  # contains the whole object


def redact(object: JsonObject, before: JsonObject | None = None) -> JsonObject:
    """Return an object with its secrets redacted; `before` is the object it would replace."""
    if object["kind"] != "Secret":
        return object
    parts = {
        part: _words(object[part], (before or {}).get(part) or {})
        for part in PARTS
        if object.get(part)
    }
    annotations = object["metadata"].get("annotations") or {}
    if LAST_APPLIED in annotations:
        redacted = annotations | {LAST_APPLIED: "(secret)"}
        return object | parts | {"metadata": object["metadata"] | {"annotations": redacted}}
    return object | parts


def _words(data: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, str]:
    return {
        key: "(secret)" if before.get(key, value) == value else "(secret, changed)"
        for key, value in data.items()
    }
