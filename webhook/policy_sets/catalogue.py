"""The policy catalogue: a policy for each module of webhook.policies, and installed ones.

A built-in policy is imported when it is first read.
"""

import importlib
import importlib.metadata
import pkgutil
import sys
from collections.abc import Iterator, Mapping
from functools import cache, partial
from itertools import count
from pathlib import Path
from types import ModuleType

from config.modules import ModuleError, import_named
from webhook import policies
from webhook.engine import Policy
from webhook.policies import kinds

GROUP = "gatewright.policies"  # entry points of installed packages: each a module with a POLICY
# name of the packages for added directories, with a number: one package for each directory
TEAM = "gatewright_team_policies"
ABOUT_POLICIES = {  # policies outside webhook.policies, which turn policy objects into policies
    "policy-objects": "webhook.policy_sets.policy_objects",
    "mutation-effects": "webhook.policy_sets.mutation_effects",
    "rule-types": "webhook.policy_sets.rule_type_warnings",
}


def _built_in(package: ModuleType) -> dict[str, str]:
    """Return the modules of a package by policy name, without shared ones, which begin with `_`."""
    modules = (module.name for module in pkgutil.iter_modules(package.__path__))
    return {
        stem.replace("_", "-"): f"{package.__name__}.{stem}"
        for stem in modules
        if stem != "kinds" and not stem.startswith("_")
    }


TO_NAME = _built_in(policies)
OF_KINDS = _built_in(kinds) | ABOUT_POLICIES


class PolicyCatalogue(Mapping[str, Policy]):
    """All policies by name: built-in, from installed packages, and from added directories."""

    def __init__(self) -> None:
        """Import the policies of installed packages. Raises ModuleError if one is not a policy."""
        self._found: dict[str, Policy | str] = dict(sorted((TO_NAME | OF_KINDS).items()))
        for entry in importlib.metadata.entry_points(group=GROUP):
            where = f"entry point {entry.name} ({entry.value})"
            self.add(import_named(entry.load, where), entry.name, where)

    def __getitem__(self, name: str) -> Policy:
        """Return a policy, and import it at the first read."""
        entry = self._found[name]
        if isinstance(entry, str):
            module = importlib.import_module(entry)
            entry = self._found[name] = _policy_of(module, name, f"{entry}.py")
        return entry

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter(self._found)

    def __len__(self) -> int:
        """Return the number of policies."""
        return len(self._found)

    def add(self, module: object, stem: str, where: str) -> None:
        """Add the policy of a module. Raises ModuleError if it has none, or the name is taken."""
        policy = _policy_of(module, stem, where)
        if policy.name in self._found:
            raise ModuleError(f'{where}: a policy "{policy.name}" already exists')
        self._found[policy.name] = policy


@cache
def catalogue() -> PolicyCatalogue:
    """Return the catalogue of this process."""
    return PolicyCatalogue()


def always_in_force(catalogue: Mapping[str, Policy]) -> list[Policy]:
    """Return the policies that are always in force, without importing the others."""
    others = [catalogue[name] for name in catalogue if name not in TO_NAME]
    return [policy for policy in others if policy.always]


def add_directory(directory: Path) -> None:
    """Add every policy module in `directory` to the catalogue.

    Modules may import shared files, which begin with `_` (`from ._names import …`). Called once
    when a process starts. Raises ModuleError if a module cannot be imported or is not a policy.
    """
    if not directory.is_dir():
        raise ModuleError(f"{directory}: no such directory")
    files = sorted(file for file in directory.glob("*.py") if not file.name.startswith("_"))
    if not files:
        raise ModuleError(f"{directory}: no policy modules (*.py) in this directory")
    name = next(name for number in count(1) if (name := f"{TEAM}_{number}") not in sys.modules)
    package = sys.modules[name] = ModuleType(name)
    package.__path__ = [str(directory)]
    for file in files:
        module = import_named(partial(importlib.import_module, f"{name}.{file.stem}"), str(file))
        catalogue().add(module, file.stem, str(file))


def _policy_of(module: object, stem: str, where: str) -> Policy:
    policy = getattr(module, "POLICY", None)
    if not isinstance(policy, Policy):
        raise ModuleError(f"{where}: declares no POLICY")
    if policy.name != stem.replace("_", "-"):
        raise ModuleError(
            f'{where}: declares the policy "{policy.name}"; a policy is named like its module'
        )
    if policy.validate is None and policy.mutate is None:
        raise ModuleError(f"{where}: cannot be used: it neither validates nor mutates")
    try:
        _ = policy.targets
    except LookupError as error:
        raise ModuleError(f"{where}: cannot be used: {error}") from None
    return policy
