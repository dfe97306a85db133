"""What the controller makes: a module for each kind, found by being here."""

import importlib
import pkgutil
from functools import cache
from typing import Any

from controller.runtime.plan import PlannedKind


@cache
def planned_kinds() -> tuple[PlannedKind[Any], ...]:
    """Return every planned kind, in the order of their modules' names."""
    modules = [importlib.import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)]
    return tuple(value for module in modules for value in vars(module).values() if isinstance(value, PlannedKind))
