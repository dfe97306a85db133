"""The policy catalogue: a policy for each module of webhook.policies, and installed ones."""

import importlib
import importlib.metadata
import pkgutil
import sys
from functools import partial
from itertools import count
from pathlib import Path
from types import ModuleType

from config.modules import ModuleError, imported
from webhook import policies
from webhook.engine import Policy

GROUP = "gatewright.policies"  # entry points of installed packages: each a module with a POLICY
# packages of this name and a number have the modules of a directory each
TEAM = "gatewright_team_policies"
ABOUT_POLICIES = "webhook.policy_sets.policy_objects"  # the one that reads policy sets itself
_found: dict[str, Policy] = {}


def catalogue() -> dict[str, Policy]:
    """Return all policies by name: built-in, of installed packages, of added directories."""
    if not _found:
        found: dict[str, Policy] = {}
        built_in = [
            f"{policies.__name__}.{module.name}"
            for module in pkgutil.iter_modules(policies.__path__)
        ]
        for name in (*built_in, ABOUT_POLICIES):
            stem = name.rpartition(".")[2]
            if not stem.startswith("_"):  # those are shared by policies
                _take(importlib.import_module(name), stem, f"{stem}.py", found)
        for entry in importlib.metadata.entry_points(group=GROUP):
            where = f"entry point {entry.name} ({entry.value})"
            _take(imported(entry.load, where), entry.name, where, found)
        _found.update(found)
    return _found


def add_directory(directory: Path) -> None:
    """Take every policy module in `directory` into the catalogue.

    Modules may import shared files, which begin with `_` (`from ._names import …`). Called once
    when a process starts. ModuleError where a module cannot be imported or is no policy.
    """
    catalogue()
    if not directory.is_dir():
        raise ModuleError(f"{directory}: no such directory")
    files = sorted(file for file in directory.glob("*.py") if not file.name.startswith("_"))
    if not files:
        raise ModuleError(f"{directory}: no policy modules (*.py) in this directory")
    name = next(name for number in count(1) if (name := f"{TEAM}_{number}") not in sys.modules)
    package = sys.modules[name] = ModuleType(name)
    package.__path__ = [str(directory)]
    for file in files:
        module = imported(partial(importlib.import_module, f"{name}.{file.stem}"), str(file))
        _take(module, file.stem, str(file), _found)


def _take(module: object, stem: str, where: str, found: dict[str, Policy]) -> None:
    policy = getattr(module, "POLICY", None)
    if not isinstance(policy, Policy):
        raise ModuleError(f"{where}: declares no POLICY")
    if policy.name != stem.replace("_", "-"):
        raise ModuleError(
            f'{where}: declares the policy "{policy.name}"; a policy is named like its module'
        )
    if policy.name in found:
        raise ModuleError(f'{where}: a policy "{policy.name}" already exists')
    if policy.validate is None and policy.mutate is None:
        raise ModuleError(f"{where}: cannot be used: it neither validates nor mutates")
    try:
        _ = policy.targets
    except LookupError as error:
        raise ModuleError(f"{where}: cannot be used: {error}") from None
    found[policy.name] = policy
