"""Normal events: what one reconcile wrote to the children, in words."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, Literal, NamedTuple

from controller.runtime.plan import Event
from kube.resource import JsonObject

MAX_FIELDS = 5  # of one child in an event
ChildVerb = Literal["Created", "Adopted", "Scaled", "Updated", "Restored", "Deleted"]


class WrittenChild(NamedTuple):
    """One write: `what` is the kind and the name, `detail` what was changed."""

    verb: ChildVerb
    what: str
    detail: str = ""


def events_of(written: Sequence[WrittenChild]) -> list[Event]:
    """Return at most two events: one of the planned writes, one of the repairs."""
    planned = [each for each in written if each.verb != "Restored"]
    repairs = [each for each in written if each.verb == "Restored"]
    return [Event(each[0].verb, f"{_sentence(each)}") for each in (planned, repairs) if each]


def describe_update(what: str, before: JsonObject, after: JsonObject) -> WrittenChild | None:
    """Return the update of a child by its stored states; None if only its metadata changed."""
    fields = list(changed_fields(_content(before), _content(after)))
    if not fields:
        return None
    if fields == ["spec.replicas"]:
        old, new = (each["spec"].get("replicas") for each in (before, after))
        return WrittenChild("Scaled", what, f"from {old} to {new}")
    more = f" and {len(fields) - MAX_FIELDS} more" if len(fields) > MAX_FIELDS else ""
    return WrittenChild("Updated", what, f"{', '.join(fields[:MAX_FIELDS])}{more}")


def changed_fields(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """Yield the paths of the fields that differ."""
    if before == after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys((*before, *after)):
            yield from changed_fields(
                before.get(key), after.get(key), f"{path}.{key}" if path else key
            )
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for place, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from changed_fields(old, new, f"{path}[{place}]")
    else:
        yield path


def _content(object: JsonObject) -> JsonObject:
    return {key: value for key, value in object.items() if key not in ("metadata", "status")}


def _sentence(written: Sequence[WrittenChild]) -> str:
    """Return `Created Deployment a, Service a; updated ConfigMap b: data.x`."""
    parts: list[str] = []
    for verb, group in groupby(written, lambda each: each.verb):
        named = [_details(each) for each in group]
        parts.append(f"{verb if not parts else verb.lower()} {', '.join(named)}")
    return "; ".join(parts)


def _details(child: WrittenChild) -> str:
    if child.verb == "Scaled":
        return f"{child.what} {child.detail}"
    return f"{child.what}: {child.detail}" if child.detail else child.what
