"""Recognizes Kubernetes objects among YAML documents, and the kind that each is judged as."""

import base64

from config.documents import Document, DocumentError
from config.faults import did_you_mean
from kube.resource import JsonObject, group_version, group_version_kind
from webhook.engine.kinds import KINDS
from webhook.engine.violation import JSON_TYPES
from webhook.harness.bases import kinds_by_name
from webhook.policy_sets.kind_names import known_kinds

# JSON types of fields that are read before any policy runs.
METADATA = {"name": str, "generateName": str, "namespace": str, "labels": dict}
# Configuration of client-side tools, not API groups of the API server.
CLIENT_SIDE = frozenset({"kustomize.config.k8s.io"})
MOVED = {"extensions": ("apps/v1", "networking.k8s.io/v1")}  # the current group of kinds that moved


def is_object(document: Document) -> bool:
    """Whether a document is meant as an API object, complete or not.

    False for Chart.yaml, values or a kubeconfig.
    """
    value = document.value
    if not isinstance(value, dict) or group_version_kind(value)[0] in CLIENT_SIDE:
        return False
    if not value.get("kind"):
        return "apiVersion" in value and ("metadata" in value or "spec" in value)
    return "metadata" in value or value["kind"] in kinds_by_name()


def is_whole(document: Document) -> bool:
    """Whether a document is a complete object that can be judged."""
    try:
        require_object(document)
    except DocumentError:
        return False
    return True


def require_object(document: Document) -> tuple[str, str, str]:
    """Return group, version and kind of an API object. Raises DocumentError for anything else."""
    value = document.value
    for field in ("apiVersion", "kind"):
        if not isinstance(value, dict) or not isinstance(value.get(field), str) or not value[field]:
            raise DocumentError(
                f"{document.where(field)}: {field}: missing; every Kubernetes object has one"
            )
    if not isinstance(value.get("metadata"), dict):
        raise DocumentError(f"{document.where('metadata')}: metadata: missing, or not an object")
    for field, expected in METADATA.items():
        if not isinstance(value["metadata"].get(field), expected | None):
            path = f"metadata.{field}"
            raise DocumentError(f"{document.where(path)}: {path}: must be {JSON_TYPES[expected]}")
    sent = group_version_kind(value)
    _require_known_kind(document, sent[0], sent[2])
    return sent


def _require_known_kind(document: Document, group: str, kind: str) -> None:
    """Raise DocumentError for an unknown kind that resembles one of its built-in group."""
    names = {name for of, name in known_kinds() if of == group}
    if kind in names:
        return
    suggestion = did_you_mean(kind, names, cutoff=0.8)
    if suggestion.startswith("; did"):
        raise DocumentError(
            f"{document.where('kind')}: kind: {document.value['apiVersion']} has no kind "
            f'"{kind}"{suggestion}'
        )


def namespace_of(object: JsonObject, namespace: str) -> str:
    """Return the namespace of an object: its own, else `namespace`.

    "" for a cluster-scoped kind.
    """
    group, _, kind = group_version_kind(object)
    kind_record = known_kinds().get((group, kind))
    if kind_record is not None and not kind_record.namespaced:
        return ""
    return object["metadata"].get("namespace") or namespace


def as_served(object: JsonObject) -> JsonObject:
    """Return an object as the API server converts it before admission.

    It is in its kind's current API group: `apps/v1`, not `extensions/v1beta1`. The `stringData` of
    a Secret is in its `data`.
    """
    group, _, kind = group_version_kind(object)
    for api_version in MOVED.get(group, ()):
        if (group_version(api_version)[0], kind) in KINDS:
            return {**object, "apiVersion": api_version}
    texts = object.get("stringData") if (group, kind) == ("", "Secret") else None
    if not isinstance(texts, dict) or not all(isinstance(each, str) for each in texts.values()):
        return object
    encoded = {name: base64.b64encode(text.encode()).decode() for name, text in texts.items()}
    others = {name: value for name, value in object.items() if name != "stringData"}
    return {**others, "data": (object.get("data") or {}) | encoded} if texts else others
