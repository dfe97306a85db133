"""Records: JSON objects with their location, as a path for messages and steps for patches."""

from functools import lru_cache
from typing import Any

from kube.resource import FieldPath

# Characters of an item's name; no kind of the API has longer names.
LONGEST_NAME = 253


@lru_cache(maxsize=4096)
def steps_of(path: str) -> tuple[str, ...]:
    """Return the steps of a dotted path; cached."""
    return tuple(path.split(".")) if path else ()


class Record:
    """One JSON object and its location, which becomes text only in a message."""

    __slots__ = ("above", "step", "value")

    def __init__(
        self, value: dict[str, Any], above: "Record | None" = None, step: str | tuple[str, int] = ""
    ) -> None:
        """Wrap `value` at `step` below `above`: a dotted path, or a list's path and index."""
        self.value = value
        self.above = above
        self.step = step

    def path(self, relative: str = "") -> str:
        """Return the path of this object, or of its field `relative`, for messages."""
        path = self.step
        if isinstance(path, tuple):
            name = self.value.get("name")
            is_name = isinstance(name, str) and 0 < len(name) <= LONGEST_NAME and name.isprintable()
            path = f"{path[0]}[name={name}]" if is_name else f"{path[0]}[{path[1]}]"
        if relative:
            path = f"{path}.{relative}" if path else relative
        return path if self.above is None else self.above.path(path)

    def steps(self) -> FieldPath:
        """Return the path of this object as the steps of a patch; its keys have no dots."""
        step = self.step
        above = () if self.above is None else self.above.steps()
        if isinstance(step, tuple):
            return *above, *steps_of(step[0]), step[1]
        return *above, *steps_of(step)
