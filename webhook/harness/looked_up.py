"""Check the look-ups that a case sets: a typo in one would test nothing."""

from collections.abc import Iterator, Mapping
from typing import Any

from config.faults import did_you_mean
from config.schemas import unknown_fields
from webhook.engine import PARENT
from webhook.engine.look_ups import LOOK_UPS, group_kind, summary
from webhook.harness.bases import has_smallest, smallest

LOOKED_UP = frozenset({*LOOK_UPS, PARENT})  # in addition to the namespace labels and the time, which every case has
SUMMARY = summary({"metadata": {"name": ""}}).keys()  # the fields of what is looked up in part

Faults = Iterator[tuple[str, str]]  # path below the case, and what is wrong there


def look_up_faults(looked_up: Mapping[str, Any], parent_kind: str) -> Faults:
    """Yield the errors of all look-ups; `parent_kind` is the kind that the case's subresource belongs to."""
    for name, value in looked_up.items():
        path = f"looked_up.{name}"
        if name not in LOOKED_UP:
            yield path, f"unknown look-up{did_you_mean(name, LOOKED_UP)}"
        elif name == PARENT:
            yield from _faults(path, value, [parent_kind])
        elif not isinstance(value, list):
            yield path, "must be a list of objects"
        else:
            for index, item in enumerate(value):
                kinds = sorted(kind for _, kind in LOOK_UPS[name].kinds)
                yield from _faults(f"{path}[{index}]", item, kinds, LOOK_UPS[name].shape)


def _faults(path: str, object: Any, kinds: list[str], shape: Any = None) -> Faults:
    """Yield the errors of one object, of one of `kinds`."""
    if not isinstance(object, dict):
        yield path, "must be an object"
        return
    if shape is not None:
        unknown = [(key, f"unknown field{did_you_mean(key, SUMMARY)}") for key in object if key not in SUMMARY]
    elif (kind := object.get("kind", kinds[0] if len(kinds) == 1 else None)) not in kinds:
        unknown = [("kind", f"must be one of {', '.join(kinds)}")]
    else:
        base = {key: smallest(kind)[key] for key in ("apiVersion", "kind")} if kind in has_smallest() else {}
        unknown = list(unknown_fields(base | object))
        if base and group_kind(base | object) != group_kind(base):
            unknown = [("apiVersion", f"must be {base['apiVersion']}")]
    yield from ((f"{path}.{field}", text) for field, text in unknown)
