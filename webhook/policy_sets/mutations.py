"""Applies the result of a CEL mutation to an object: ApplyConfiguration and JSONPatch."""

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from kube.resource import FieldPath, JsonObject, PathElement
from webhook.engine import Patch
from webhook.engine.jsonpatch import same
from webhook.engine.policy import RuleError
from webhook.engine.violation import UNSET
from webhook.policy_sets.apply import applied, type_faults

MAX_INTEGER = 1e21  # from here on, Go writes a double with an exponent


def changed(object: JsonObject, value: Any, patch_type: str, type: str) -> JsonObject:
    """Return the object with the changes that a mutation's expression returned.

    `type` is the code of the object's type. Raises RuleError if they cannot be applied.
    """
    value = _as_json(value)
    if patch_type != "JSONPatch":
        return applied(object, value, type)
    if not all(isinstance(each, dict) and {"op", "path"} <= each.keys() for each in value):
        raise RuleError("a JSONPatch needs op and path")
    import jsonpatch  # imported only when an object is patched

    patched: Any = copy.deepcopy(object)
    for index, operation in enumerate(value):
        try:
            if operation["op"] == "test":  # the parent of the tested value must exist
                jsonpatch.JsonPointer(operation["path"].rpartition("/")[0]).resolve(patched)
            step = {"value": None, **operation}  # a missing value means null
            patched = jsonpatch.apply_patch(patched, [step], in_place=True)
        except jsonpatch.JsonPatchTestFailed:
            return object  # a failed test means that the patch does not apply
        except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException):
            # Without the library's message, which may contain the whole object.
            title = f"operation {index} of the JSONPatch ({operation['op']} {operation['path']})"
            raise RuleError(f"{title} cannot be applied to the object") from None
    if not isinstance(patched, dict):
        raise RuleError("the JSONPatch replaces the whole object by something else")
    before = {*type_faults(object, type)}
    for path, text in type_faults(patched, type):
        if (path, text) not in before:
            raise RuleError(f"the JSONPatch makes an invalid object: {path}: {text}")
    return patched


def _as_json(value: Any) -> Any:
    """Return a value as the API server encodes it: a double without a fraction is an integer."""
    if isinstance(value, dict):
        return {key: _as_json(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_as_json(each) for each in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < MAX_INTEGER:
        return int(value)
    return value


def without_defaults(patch: Patch, old: Any, sent: Any) -> Patch:
    """Return a patch of a list whose items that did not change are those that were sent.

    `old` is the object that was `sent` with the API's defaults, which the patch would add to them.
    """
    for step in patch.path:
        old, sent = _below(old, step), _below(sent, step)
    if not (isinstance(patch.value, list) and isinstance(old, list) and isinstance(sent, list)):
        return patch
    if len(old) != len(sent):
        return patch
    kept = list(zip(old, sent, strict=True))
    items = [next((own for all_, own in kept if same(all_, item)), item) for item in patch.value]
    return replace(patch, value=items)


def _below(value: Any, step: PathElement) -> Any:
    try:
        return value[step]
    except (LookupError, TypeError):
        return None


def differences(old: Any, new: Any, at: FieldPath = ()) -> Iterator[Patch]:
    """Yield the patches from one value to another: maps by key, lists of equal length by index."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key, value in new.items():
            yield from differences(old.get(key, UNSET), value, (*at, key))
        for key in old:
            if key not in new:
                yield Patch((*at, key), UNSET, overwrite=True)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (before, value) in enumerate(zip(old, new, strict=True)):
            yield from differences(before, value, (*at, index))
    elif not same(old, new):
        yield Patch(at, new, overwrite=True)
