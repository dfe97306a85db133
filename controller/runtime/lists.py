"""Lists of ours that somebody wrote anew: applying alone would set our items beside theirs, or be refused for it."""

from collections.abc import Iterator, Mapping
from typing import Any

from controller.runtime.claims import FIELD_MANAGER
from controller.runtime.plan import Object

KEYS = (("containerPort", "protocol"), ("port", "protocol"), ("mountPath",), ("name",))  # what tells items apart
DEFAULTS = {"protocol": "TCP"}
NOT_WRITTEN = frozenset({"apiVersion", "kind", "metadata", "status"})


def is_rewritten(stored: Any, desired: Any) -> bool:
    """Tell whether an item of ours is gone from a list in which somebody else's stands."""
    if isinstance(stored, dict) and isinstance(desired, dict):
        return any(is_rewritten(stored.get(key), value) for key, value in desired.items() if key != "metadata")
    if not isinstance(stored, list) or not isinstance(desired, list):
        return False
    there, ours = dict(_items(stored)), dict(_items(desired))
    if ours.keys() - there.keys() and there.keys() - ours.keys():
        return True
    return any(is_rewritten(there.get(key), item) for key, item in ours.items())


def written_anew(desired: Object, current: Object) -> Object:
    """Return the merge patch that makes all lists of `current` ours alone; what is no list keeps what others added."""
    about = {key: current["metadata"][key] for key in ("uid", "resourceVersion")}
    return {key: value for key, value in desired.items() if key not in NOT_WRITTEN} | {"metadata": about}


def disowned(patched: Object) -> Object:
    """Return the merge patch after which only our applies own what that patch wrote: so they can take it away again."""
    metadata = patched["metadata"]
    about = {key: metadata[key] for key in ("uid", "resourceVersion")}
    owners = [each for each in metadata.get("managedFields") or () if not _is_patch(each)]
    return {"metadata": about | {"managedFields": owners}}


def _items(items: list[Any]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield each item that can be told apart from others, with what does so."""
    for item in items:
        for keys in KEYS:
            if isinstance(item, dict) and keys[0] in item:
                yield tuple(item.get(key, DEFAULTS.get(key)) for key in keys), item
                break


def _is_patch(entry: Mapping[str, Any]) -> bool:
    """Tell whether an entry of managedFields is of our patches, not of our applies or of a status."""
    return entry["manager"] == FIELD_MANAGER and entry["operation"] == "Update" and not entry.get("subresource")
