"""Which field of an object a field of what is made from it comes from."""

import re
from collections.abc import Mapping
from typing import Any

STEP = re.compile(r"\.?([^.\[\]]+)|\[([^\]]*)\]")


def traced(path: str, origin: Mapping[str, str], parent: Mapping[str, Any]) -> str | None:
    """Return the field of `parent` that the child's field at `path` comes from, None where that is nobody's.

    Of what `origin` names, the nearest above the field counts; what is below it is added where the parent has such
    fields: of `spec.port`, a number, there is no `[0].containerPort`.
    """
    for end in reversed([0, *(found.end() for found in STEP.finditer(path))]):
        if (source := origin.get(path[:end])) is not None:
            return source if _is_scalar(_value(parent, source)) else f"{source}{path[end:]}"
    return None


def _is_scalar(value: Any) -> bool:
    return value is not None and not isinstance(value, dict | list)


def _value(object: Any, path: str) -> Any:
    value = object
    for found in STEP.finditer(path):
        value = _entry(value, found[1] if found[2] is None else found[2])
    return value


def _entry(value: Any, step: str) -> Any:
    if isinstance(value, dict):
        return value.get(step)
    if not isinstance(value, list):
        return None
    if step.isdigit():
        return value[int(step)] if int(step) < len(value) else None
    key, _, wanted = step.partition("=")
    return next((each for each in value if isinstance(each, dict) and each.get(key) == wanted), None)
