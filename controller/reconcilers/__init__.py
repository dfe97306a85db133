"""What the controller makes: a module for each kind, found by being here; and the kinds of installed packages."""

import importlib
import importlib.metadata
import pkgutil
from collections.abc import Iterator
from functools import cache
from typing import Any

from config.modules import ModuleError, imported
from controller.runtime.planned_kind import PlannedKind

GROUP = "gatewright.kinds"  # entry points of installed packages: each a PlannedKind


@cache
def own_kinds() -> tuple[PlannedKind[Any], ...]:
    """Return every planned kind of ours, in the order of their modules' names."""
    modules = [importlib.import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)]
    found = (value for module in modules for value in vars(module).values() if isinstance(value, PlannedKind))
    return tuple(dict.fromkeys(found))


@cache
def planned_kinds() -> tuple[PlannedKind[Any], ...]:
    """Return every planned kind: ours, then those of installed packages, by the names of their entry points.

    ModuleError where an entry point cannot be imported, is no planned kind, or has the name of another kind: metrics,
    logs and settings tell kinds apart by their names alone.
    """
    kinds = {kind.name: kind for kind in own_kinds()}
    for where, kind in _added():
        if (other := kinds.get(kind.name)) is not None:
            there = f"{other.resource.kind} of {other.resource.group}"
            raise ModuleError(f"{where}: there is a kind {there} already, and a kind's name must be its own")
        kinds[kind.name] = kind
    return tuple(kinds.values())


def added_kinds() -> tuple[PlannedKind[Any], ...]:
    """Return the planned kinds of installed packages alone; nothing of ours is imported for it."""
    return tuple(kind for _, kind in _added())


def _added() -> Iterator[tuple[str, PlannedKind[Any]]]:
    for entry in sorted(importlib.metadata.entry_points(group=GROUP), key=lambda each: (each.name, each.value)):
        where = f"entry point {entry.name} ({entry.value})"
        kind = imported(entry.load, where)
        if not isinstance(kind, PlannedKind):
            raise ModuleError(f"{where}: is no PlannedKind; it must name one, such as my_package.my_module:MY_KIND")
        yield where, kind
