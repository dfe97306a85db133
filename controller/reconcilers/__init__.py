"""The planned kinds: each built-in one is a pure plan in a module of its name.

Installed packages add others. Modules whose names begin with a kind's are parts of its plan. A
platform (`appstack`, `ecommerceplatform`) is built from `component`, `components`, `application`,
`databases`, `mysql`, `dumps` and `monitoring`, by `tiers`, and `rollup` combines them. All kinds
share `labels`, `resources`, `images`, `requirements`, `restricted`, `readiness`, `rolling`,
`claims` and `indexes`.
"""

import importlib
import importlib.metadata
import pkgutil
from functools import cache
from typing import Any

from config.modules import ModuleError, import_named
from controller.runtime.kind import PlannedKind

GROUP = "gatewright.kinds"  # entry points of installed packages: each a PlannedKind


@cache
def own_kinds() -> tuple[PlannedKind[Any], ...]:
    """Return every built-in planned kind, in the order of their modules' names."""
    modules = [
        importlib.import_module(f"{__name__}.{module.name}")
        for module in pkgutil.iter_modules(__path__)
    ]
    kinds = (
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, PlannedKind)
    )
    return tuple(dict.fromkeys(kinds))


@cache
def planned_kinds() -> tuple[PlannedKind[Any], ...]:
    """Return the built-in kinds, then those of installed packages by their entry points.

    Raises ModuleError if an entry point cannot be imported, is not a planned kind, or has the name
    of another kind: metrics, logs and settings identify kinds by name alone.
    """
    kinds = {kind.name: kind for kind in own_kinds()}
    for where, kind in added_kinds():
        if (other := kinds.get(kind.name)) is not None:
            other_kind = f"{other.resource.kind} of {other.resource.group}"
            raise ModuleError(
                f"{where}: the kind {other_kind} already exists, and kind names must be unique"
            )
        kinds[kind.name] = kind
    return tuple(kinds.values())


@cache
def added_kinds() -> tuple[tuple[str, PlannedKind[Any]], ...]:
    """Return only the planned kinds of installed packages, each with its entry point.

    It imports no built-in kind. Installed packages are scanned once, which takes 1 % of the
    controller's start-up time.
    """
    added = []
    for entry in sorted(
        importlib.metadata.entry_points(group=GROUP), key=lambda each: (each.name, each.value)
    ):
        where = f"entry point {entry.name} ({entry.value})"
        kind = import_named(entry.load, where)
        if not isinstance(kind, PlannedKind):
            raise ModuleError(
                f"{where}: not a PlannedKind; it must name one, such as "
                "my_package.my_module:MY_KIND"
            )
        added.append((where, kind))
    return tuple(added)
