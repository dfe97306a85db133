"""Paths of fields in the notation of messages: `spec.containers[name=app].image`."""

import re
from typing import Any

STEP = re.compile(r"\.?([^.\[\]]+)|\[([^\]]*)\]")


def split_path(path: str) -> list[str]:
    """Return the steps of a path: names, and keys or items of a list with their brackets."""
    return [step[1] or step[0] for step in STEP.finditer(path)]


def paths_above(path: str) -> list[str]:
    """Return the paths of the objects and lists that contain the value at a path."""
    return [path[: step.end()] for step in STEP.finditer(path)][:-1]


def value_at(object: Any, path: str) -> Any:
    """Return the value at a path; None if it is absent."""
    value = object
    for step in STEP.finditer(path):
        value = entry_at(value, step[1] if step[2] is None else step[2])
    return value


def entry_at(value: Any, step: str) -> Any:
    """Return the value of a key, or a list's item (`2` or `name=app`); None if it is absent."""
    if isinstance(value, dict):
        return value.get(step)
    if not isinstance(value, list):
        return None
    if step.isdigit():
        return value[int(step)] if int(step) < len(value) else None
    key, _, expected = step.partition("=")
    items = (item for item in value if isinstance(item, dict))
    return next((item for item in items if item.get(key) == expected), None)


def entry(path: str, name: str) -> str:
    """Return the path of the entry `name` of the object at `path`; in brackets if it has a dot."""
    return f"{path}.{name}" if name.replace("-", "").isalnum() else f"{path}[{name}]"
