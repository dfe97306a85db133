"""Merge an apply configuration into an object, as server-side apply does.

Maps merge by their keys, lists whose items have a key by that key, sets by their items; every other list is replaced.
The keys are those of the built-in kinds (`x-kubernetes-list-map-keys` of the API server's OpenAPI document); the lists
of custom resources are replaced.
"""

from typing import Any

LIST_KEYS: dict[str, tuple[str, ...]] = {
    "conditions": ("type",),
    "containers": ("name",),
    "env": ("name",),
    "ephemeralContainers": ("name",),
    "hostAliases": ("ip",),
    "imagePullSecrets": ("name",),
    "initContainers": ("name",),
    "ownerReferences": ("uid",),
    "ports": ("containerPort", "protocol"),
    "resourceClaims": ("name",),
    "schedulingGates": ("name",),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
    "volumeDevices": ("devicePath",),
    "volumeMounts": ("mountPath",),
    "volumes": ("name",),
}
SERVICE_PORT = ("port", "protocol")
SETS = frozenset({"finalizers"})
DEFAULTS = {"protocol": "TCP"}  # of fields that are part of a key


def merged(old: Any, new: Any, field: str = "") -> Any:
    """Return `old` with the fields of `new` in it; neither is changed."""
    if isinstance(old, dict) and isinstance(new, dict):
        return {**old, **{key: merged(old.get(key), value, key) for key, value in new.items()}}
    if not (isinstance(old, list) and isinstance(new, list)):
        return new
    if field in SETS:
        return [*old, *(each for each in new if each not in old)]
    keys = LIST_KEYS.get(field)
    if keys == LIST_KEYS["ports"] and any(isinstance(each, dict) and "port" in each for each in new):
        keys = SERVICE_PORT
    if keys is None or not all(isinstance(each, dict) and keys[0] in each for each in (*old, *new)):
        return new
    items = {_key(each, keys): each for each in old}
    for each in new:
        key = _key(each, keys)
        items[key] = merged(items[key], each) if key in items else each
    return list(items.values())


def _key(item: dict[str, Any], keys: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(item.get(key, DEFAULTS.get(key)) for key in keys)
