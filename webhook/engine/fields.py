"""Typed reading of an object's fields by path: null is absent, a wrong JSON type is named with its path."""

import json
from collections.abc import Iterator
from typing import Any

SHOWN = 256  # characters of a found string that a message repeats

JSON_TYPES = {
    dict: "an object",
    list: "a list",
    str: "a string",
    bool: "a boolean",
    int: "an integer",
    float: "a number",
}

SCALARS = (str, bool, int, float)


def shown(value: Any) -> str:
    """Return `value` as it appears in a message: strings quoted, long ones cut, containers by their type only."""
    if isinstance(value, str):
        text = json.dumps(value, ensure_ascii=not value.isprintable())
        return text if len(text) <= SHOWN else f'{text[:SHOWN]}…"'
    if isinstance(value, dict | list):
        return JSON_TYPES[type(value)]
    return json.dumps(value)


class WrongTypeError(Exception):
    """A field holds another JSON type than its kind says."""

    def __init__(self, path: str, found: Any, wanted: type) -> None:
        """Remember where it is, what was found there and which type belongs there."""
        super().__init__(f"{path}: must be {JSON_TYPES[wanted]}")
        self.path = path
        self.found = f"{shown(found)} is {JSON_TYPES[type(found)]}" if type(found) in SCALARS else shown(found)
        self.wanted = JSON_TYPES[wanted]


class Fields:
    """The fields of one JSON object, and where that object stands in the whole.

    A path is dotted (`spec.template.spec`). Reading costs no copies; a path becomes text only when asked for.
    """

    __slots__ = ("_above", "_step", "value")

    def __init__(
        self, value: dict[str, Any], above: "Fields | None" = None, step: "str | tuple[str, int]" = ""
    ) -> None:
        """Wrap `value`, found at `step` below `above`: a dotted path, or a list's path and an index in it."""
        self.value = value
        self._above = above
        self._step = step

    def path(self, relative: str = "") -> str:
        """Return the path of this object, or of the field at `relative` below it, as a message shows it."""
        step = self._step
        if isinstance(step, tuple):
            name = self.value.get("name")
            key = f"name={name}" if isinstance(name, str) and name and name.isprintable() else str(step[1])
            step = f"{step[0]}[{key}]"
        above = self._above.path() if self._above is not None else ""
        return ".".join(part for part in (above, step, relative) if part)

    def integer(self, path: str) -> int | None:
        """Return the integer at `path`, or None where there is none."""
        return self._read(path, int)  # type: ignore[no-any-return]

    def string(self, path: str) -> str | None:
        """Return the string at `path`, or None where there is none."""
        return self._read(path, str)  # type: ignore[no-any-return]

    def boolean(self, path: str) -> bool | None:
        """Return the boolean at `path`, or None where there is none."""
        return self._read(path, bool)  # type: ignore[no-any-return]

    def mapping(self, path: str) -> dict[str, Any]:
        """Return the object at `path`; an absent one is empty."""
        return self._read(path, dict) or {}

    def fields(self, path: str) -> "Fields":
        """Return the fields of the object at `path`; an absent one has none."""
        return Fields(self.mapping(path), self, path)

    def strings(self, path: str) -> list[str]:
        """Return the list of strings at `path`; an absent one is empty."""
        items: list[Any] = self._read(path, list) or []
        for index, item in enumerate(items):
            if type(item) is not str:
                raise WrongTypeError(f"{self.path(path)}[{index}]", item, str)
        return items

    def each(self, path: str) -> "Iterator[Fields]":
        """Yield the fields of each object in the list at `path`; an absent list has none."""
        for index, item in enumerate(self._read(path, list) or ()):
            if type(item) is not dict:
                raise WrongTypeError(f"{self.path(path)}[{index}]", item, dict)
            yield Fields(item, self, (path, index))

    def _read(self, path: str, wanted: type) -> Any:
        value: Any = self.value
        steps = path.split(".")
        for depth, step in enumerate(steps):
            if type(value) is not dict:
                if value is None:
                    return None
                raise WrongTypeError(self.path(".".join(steps[:depth])), value, dict)
            value = value.get(step)
        if value is not None and type(value) is not wanted:
            raise WrongTypeError(self.path(path), value, wanted)
        return value
