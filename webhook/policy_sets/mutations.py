"""Applies the result of a CEL mutation to an object: ApplyConfiguration and JSONPatch."""

import base64
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from config.schemas import CustomTypes, root_type
from kube.resource import FieldPath, JsonObject, PathElement
from webhook.cel.library.conversions import to_text
from webhook.cel.values import NONE, Duration, Optional, Timestamp
from webhook.engine import SCHEMAS, Patch, Request
from webhook.engine.jsonpatch import same
from webhook.engine.policy import RuleError
from webhook.engine.violation import UNSET
from webhook.policy_sets.apply import TypedMerge
from webhook.policy_sets.json_patch import apply_operations

MAX_SAFE_INTEGER = 2**53 - 1
MAX_INTEGER = 1e21  # from here on, Go writes a double with an exponent


def apply_mutation(
    object: JsonObject, value: Any, patch_type: str, type: str, custom: CustomTypes | None = None
) -> JsonObject:
    """Return the object with the changes that a mutation's expression returned.

    `type` is the code of the object's type, which is one of `custom` or of Kubernetes. Raises
    RuleError if they cannot be applied.
    """
    custom, value = custom or CustomTypes(), _as_json(value)
    typed = TypedMerge(custom)
    if patch_type != "JSONPatch":
        return typed.apply(object, value, type)
    if not all(isinstance(each, dict) and {"op", "path"} <= each.keys() for each in value):
        raise RuleError("a JSONPatch needs op and path")
    patched = apply_operations(object, value)
    if not isinstance(patched, dict):
        raise RuleError("the JSONPatch replaces the whole object by something else")
    if not type or type in custom.types:
        # The API server drops unknown fields of a custom kind, and reads nulls and validates later.
        return patched
    before = {*typed.type_faults(object, type)}
    for path, text in typed.type_faults(patched, type):
        if (path, text) not in before:
            raise RuleError(f"the JSONPatch makes an invalid object: {path}: {text}")
    decoded: JsonObject = typed.without_nulls(patched, type)
    return decoded


def type_of(request: Request) -> tuple[str, CustomTypes]:
    """Return the code of the type of a request's object, "" if unknown, and the custom types."""
    attributes = request.attributes
    api_version = f"{attributes.group}/{attributes.version}".lstrip("/")
    if type := root_type(api_version, attributes.kind):
        return type, CustomTypes()
    custom: CustomTypes = request.lookup(SCHEMAS)()
    return custom.kinds.get(f"{api_version}/{attributes.kind}", ""), custom


def _as_json(value: Any) -> Any:
    """Return a value as the API server encodes it, as protobuf's JSON.

    A double without a fraction is an integer, and an integer that doubles cannot express is text.
    Raises RuleError for an optional value that is none.
    """
    match value:
        case dict():
            return {key: _as_json(each) for key, each in value.items()}
        case list():
            return [_as_json(each) for each in value]
        case bool():
            return value
        case Optional() if value is NONE:
            raise RuleError("an optional value of the mutation is none")
        case Optional():
            return _as_json(value.value)
        case bytes():
            return base64.b64encode(value).decode()
        case Timestamp() | Duration():
            return to_text(value)
        case int():
            return int(value) if abs(value) <= MAX_SAFE_INTEGER else str(int(value))
        case float() if value.is_integer() and abs(value) < MAX_INTEGER:
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
