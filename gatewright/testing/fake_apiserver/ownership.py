"""Field ownership: `managedFields`, server-side apply, and changes of owners by other writes."""

from dataclasses import dataclass, field

import orjson

from gatewright.testing.fake_apiserver.definitions import ServedResource
from gatewright.testing.fake_apiserver.paths import (
    ManagedPath,
    leaves,
    merge,
    paths_in,
    present,
    remove,
    text,
    tree,
)
from gatewright.testing.fake_apiserver.refusals import StatusError
from kube.resource import JsonObject


@dataclass(frozen=True)
class FieldManager:
    """A writer, with the fields by which managedFields distinguishes writers."""

    name: str
    operation: str
    api_version: str
    subresource: str = ""


@dataclass
class Owned:
    """The paths that a manager owns, and the time of their last change."""

    paths: set[ManagedPath]
    time: str = ""
    was: frozenset[ManagedPath] = field(init=False)

    def __post_init__(self) -> None:
        self.was = frozenset(self.paths)


Owners = dict[FieldManager, Owned]


def read(object: JsonObject) -> Owners:
    """Return the owners of an object's fields."""
    return {
        FieldManager(
            entry["manager"], entry["operation"], entry["apiVersion"], entry.get("subresource", "")
        ): Owned(set(paths_in(entry["fieldsV1"])), entry["time"])
        for entry in object["metadata"].get("managedFields") or []
    }


def write(object: JsonObject, owners: Owners, now: str) -> None:
    """Write the owners into an object, without owners that no longer own anything."""
    entries = []
    for manager, owned in owners.items():
        if owned.paths:
            entry: JsonObject = {
                "manager": manager.name,
                "operation": manager.operation,
                "apiVersion": manager.api_version,
            }
            entry |= {"time": owned.time if owned.time and owned.paths == owned.was else now}
            entry |= {"fieldsType": "FieldsV1", "fieldsV1": tree(owned.paths)}
            entries.append(
                entry | ({"subresource": manager.subresource} if manager.subresource else {})
            )
    object["metadata"]["managedFields"] = entries


def apply(
    live: JsonObject,
    applied: JsonObject,
    kind: ServedResource,
    manager: FieldManager,
    owners: Owners,
    *,
    force: bool,
) -> JsonObject:
    """Return `live` with the configuration that `manager` applies.

    Fields that it applied before, and that no other manager owns, are removed.

    Changes `owners`. Raises the conflicts with other managers unless `force` is given.
    """
    live_values, desired = dict(leaves(live, kind)), dict(leaves(applied, kind))
    taken = {
        other: {
            path for path in owned.paths & desired.keys() if live_values.get(path) != desired[path]
        }
        for other, owned in owners.items()
        if other != manager
    }
    if not force and any(taken.values()):
        raise conflicts({other: paths for other, paths in taken.items() if paths})
    for other, paths in taken.items():
        owners[other].paths -= paths
    mine = owners.setdefault(manager, Owned(set()))
    dropped, mine.paths = mine.paths - desired.keys(), set(desired)
    merged: JsonObject = merge(live, applied, kind)
    others: set[ManagedPath] = set().union(*(owned.paths for owned in owners.values()))
    for path in sorted(dropped, key=len):  # an item before its key fields, which identify it
        if not any(other[: len(path)] == path for other in others):
            remove(merged, path)
    return merged


def update(
    old: JsonObject, new: JsonObject, kind: ServedResource, manager: FieldManager, owners: Owners
) -> None:
    """Make a manager own the fields that it changed by update or patch.

    Removed fields have no owner.
    """
    before, after = dict(leaves(old, kind)), dict(leaves(new, kind))
    changed = {path for path, value in after.items() if path not in before or before[path] != value}
    for owned in owners.values():
        owned.paths = {path for path in owned.paths - changed if present(new, path)}
    if changed:
        owners.setdefault(manager, Owned(set())).paths |= changed


def conflicts(taken: dict[FieldManager, set[ManagedPath]]) -> StatusError:
    """Return the error for applied fields that these managers own."""
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f'conflict with "{manager.name}"',
            "field": format_path(path),
        }
        for manager, paths in taken.items()
        for path in sorted(paths)
    ]
    number = f"{len(causes)} conflict{'s' if len(causes) > 1 else ''}"
    listed = "; ".join(f"{cause['message']}: {cause['field']}" for cause in causes)
    return StatusError(409, f"Apply failed with {number}: {listed}", details={"causes": causes})


def format_path(path: ManagedPath) -> str:
    """Return a path in the notation of a conflict's cause."""
    return "".join(f".{each[2:]}" if each.startswith("f:") else f"[{item(each)}]" for each in path)


def item(element: str) -> str:
    """Return the notation of a list item."""
    if element.startswith("v:"):
        return element[2:]
    return ",".join(f"{key}={text(value)}" for key, value in orjson.loads(element[2:]).items())
