"""What mutations in CEL make of an object: ApplyConfiguration and JSONPatch, as in MutatingAdmissionPolicy."""

from collections.abc import Iterator
from typing import Any

from webhook.engine import Patch
from webhook.engine.rules import RuleError
from webhook.engine.violation import UNSET, Step
from webhook.policies._merge import merged


def changed(object: dict[str, Any], value: Any, patch_type: str) -> dict[str, Any]:
    """Return the object with what a mutation's expression returned. RuleError where it cannot be applied."""
    if patch_type != "JSONPatch":
        found: dict[str, Any] = merged(object, value)
        return found
    if not all(isinstance(each, dict) and {"op", "path"} <= each.keys() for each in value):
        raise RuleError("a JSONPatch needs op and path")
    import jsonpatch  # read only where an object is patched

    try:
        patched: dict[str, Any] = jsonpatch.apply_patch(object, value)
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException) as error:
        raise RuleError(f"JSONPatch cannot be applied: {error}") from None
    return patched


def differences(old: dict[str, Any], new: dict[str, Any], at: tuple[Step, ...] = ()) -> Iterator[Patch]:
    """Yield the patches from one object to another: maps by their keys, anything else as a whole."""
    for key, value in new.items():
        if key not in old or old[key] is None:
            yield Patch((*at, key), value, overwrite=True)
        elif isinstance(value, dict) and isinstance(old[key], dict):
            yield from differences(old[key], value, (*at, key))
        elif value != old[key] or type(value) is not type(old[key]):
            yield Patch((*at, key), value, overwrite=True)
    for key in old:
        if key not in new:
            yield Patch((*at, key), UNSET, overwrite=True)
