"""What CEL mutations do to an object: ApplyConfiguration and JSONPatch.

An apply configuration is merged as server-side apply does: maps by their keys, lists whose items
have a key by that key, sets by their items; every other list is replaced. The keys are those of the
built-in kinds (`x-kubernetes-list-map-keys` of the API server's OpenAPI document); the lists of
custom resources are replaced.
"""

import copy
from collections.abc import Iterator
from typing import Any

from kube.resource import FieldPath
from webhook.engine import Patch
from webhook.engine.policy import RuleError
from webhook.engine.violation import UNSET

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


def changed(object: dict[str, Any], value: Any, patch_type: str) -> dict[str, Any]:
    """Return the object with what a mutation's expression returned.

    RuleError where it cannot be applied.
    """
    if patch_type != "JSONPatch":
        found: dict[str, Any] = merged(object, value)
        return found
    if not all(isinstance(each, dict) and {"op", "path"} <= each.keys() for each in value):
        raise RuleError("a JSONPatch needs op and path")
    import jsonpatch  # read only where an object is patched

    patched: Any = copy.deepcopy(object)
    for index, operation in enumerate(value):
        try:
            patched = jsonpatch.apply_patch(patched, [operation], in_place=True)
        except (
            jsonpatch.JsonPatchException,
            jsonpatch.JsonPointerException,
        ):  # whose text may have the whole object
            title = f"{operation['op']} {operation['path']}"
            raise RuleError(
                f"operation {index} of the JSONPatch ({title}) cannot be applied to the object"
            ) from None
    if not isinstance(patched, dict):
        raise RuleError("the JSONPatch replaces the whole object by something else")
    return patched


def differences(old: dict[str, Any], new: dict[str, Any], at: FieldPath = ()) -> Iterator[Patch]:
    """Yield the patches from one object to another: maps by keys, anything else whole."""
    for key, value in new.items():
        found = old.get(key, UNSET)
        if isinstance(value, dict) and isinstance(found, dict):
            yield from differences(found, value, (*at, key))
        elif value != found or type(value) is not type(found):
            yield Patch((*at, key), value, overwrite=True)
    for key in old:
        if key not in new:
            yield Patch((*at, key), UNSET, overwrite=True)


def merged(old: Any, new: Any, field: str = "") -> Any:
    """Return `old` with the fields of `new` in it; neither is changed."""
    if isinstance(old, dict) and isinstance(new, dict):
        return {**old, **{key: merged(old.get(key), value, key) for key, value in new.items()}}
    if not (isinstance(old, list) and isinstance(new, list)):
        return new
    if field in SETS:
        return [*old, *(each for each in new if each not in old)]
    keys = LIST_KEYS.get(field)
    if keys == LIST_KEYS["ports"] and any(
        isinstance(each, dict) and "port" in each for each in new
    ):
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
