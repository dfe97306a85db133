"""Label and field selectors as the fake client understands them: all of their requirements must hold."""

import re
from collections.abc import Callable, Iterator
from typing import Any

from controller.runtime.plan import Object

PART = re.compile(r",(?![^(]*\))")  # commas within brackets belong to a requirement
SET = re.compile(r"(\S+)\s+(in|notin)\s+\(([^)]*)\)")
EQUAL = re.compile(r"([^=!\s]+)\s*(!=|==|=)\s*(.*)")


def selects(labels: str | None, fields: str | None, object: Object) -> bool:
    """Tell whether an object is chosen by both; any field may be named, by its dotted path."""
    its = object["metadata"].get("labels") or {}
    return all(_holds(each, its.get) for each in _requirements(labels)) and all(
        _holds(each, lambda path: _at(object, path)) for each in _requirements(fields)
    )


def _requirements(selector: str | None) -> Iterator[str]:
    yield from (part.strip() for part in PART.split(selector or "") if part.strip())


def _holds(requirement: str, value: Callable[[str], str | None]) -> bool:
    if found := SET.fullmatch(requirement):
        among = value(found[1]) in {each.strip() for each in found[3].split(",")}
        return among == (found[2] == "in")
    if found := EQUAL.fullmatch(requirement):
        return (value(found[1]) == found[3]) == (found[2] != "!=")
    name = requirement.removeprefix("!")
    return (value(name) is None) == (name != requirement)


def _at(value: Any, path: str) -> str:
    """Return what stands at a dotted path, as fields are compared: as text, and what is absent as no text."""
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return "" if value is None else str(value)
