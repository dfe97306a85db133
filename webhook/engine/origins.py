"""Maps a child's field to the parent's, and reads or removes values at a message's path."""

from collections.abc import Mapping
from typing import Any

import orjson

from config.field_paths import STEP, value_at

ANY = "[*]"  # any entry of labels and annotations whose key has no prefix


def trace_field(path: str, origin: Mapping[str, str], parent: Mapping[str, Any]) -> str | None:
    """Return the field of `parent` that the child's field at `path` comes from, or None.

    The nearest ancestor of the field in `origin` decides. The rest of the path is appended if the
    parent has, or may have, such fields: `spec.port`, a number, has no `[0].containerPort`.
    `labels[*]` stands for each unlisted label without a prefix; the origin "" means none.
    """
    for step in reversed([None, *STEP.finditer(path)]):
        end = 0 if step is None else step.end()
        source = origin.get(path[:end])
        if source is None and step is not None and step[2] is not None and "/" not in step[2]:
            source = origin.get(f"{path[: step.start()]}{ANY}")
            source = None if source is None else source.replace(ANY, step[0])
        if source is not None:
            below = path[end:]
            has_such = source and _may_have(value_at(parent, source), below)
            return f"{source}{below if has_such else ''}" or None
    return None


def _may_have(value: Any, below: str) -> bool:
    """Return whether a value has, or if it is absent could have, fields like those at `below`."""
    is_of_list = below.startswith("[") and ("=" in below.partition("]")[0] or below[1:2].isdigit())
    return isinstance(value, list) if is_of_list else value is None or isinstance(value, dict)


def without_field(object: Any, path: str) -> Any:
    """Return a copy without the value at a path; an item of a list is {} first, then removed."""
    copied = orjson.loads(orjson.dumps(object))
    *_, last = STEP.finditer(path)
    above = value_at(copied, path[: last.start()])
    if isinstance(above, dict):
        above.pop(last[1] or last[2], None)
    elif isinstance(above, list):
        item = value_at(above, last[0])
        at = next((index for index, each in enumerate(above) if each is item), len(above))
        above[at : at + 1] = [{}] if item else []
    return copied
