"""The policies that Gatewright knows: its own, a module each, found by being here; and those that a team adds."""

import importlib
import importlib.metadata
import importlib.util
import pkgutil
import sys
from pathlib import Path

from webhook.engine import Policy

GROUP = "gatewright.policies"  # entry points of installed packages: each a module with a POLICY

_found: dict[str, Policy] = {}


class PolicyModuleError(ValueError):
    """A module that is no policy; the text names its file or entry point, and what is wrong."""


def catalogue() -> dict[str, Policy]:
    """Return every policy by name: ours, those of installed packages, and those of directories that were added."""
    if not _found:
        found: dict[str, Policy] = {}
        for module in pkgutil.iter_modules(__path__):
            if module.name.startswith("_"):
                continue  # what policies share
            _take(importlib.import_module(f"{__name__}.{module.name}"), module.name, f"{module.name}.py", found)
        for entry in importlib.metadata.entry_points(group=GROUP):
            _take(entry.load(), entry.name, f"entry point {entry.name} ({entry.value})", found)
        _found.update(found)
    return _found


def add_directory(directory: Path) -> None:
    """Take every policy module in `directory` into the catalogue; files that begin with `_` are left to the others.

    Called once when a process starts. PolicyModuleError where a module cannot be imported or is no policy.
    """
    catalogue()
    files = sorted(file for file in directory.glob("*.py") if not file.name.startswith("_"))
    if not files:
        raise PolicyModuleError(f"{directory}: no policy modules (*.py) in this directory")
    for file in files:
        name = f"gatewright_team_policies.{file.stem}"
        spec = importlib.util.spec_from_file_location(name, file)
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except SyntaxError as error:
            raise PolicyModuleError(f"{file}:{error.lineno}: not Python: {error.msg}") from None
        except (ImportError, AttributeError, NameError, TypeError, ValueError, LookupError) as error:
            raise PolicyModuleError(f"{file}: cannot be imported: {type(error).__name__}: {error}") from error
        _take(module, file.stem, str(file), _found)


def _take(module: object, stem: str, where: str, found: dict[str, Policy]) -> None:
    policy = getattr(module, "POLICY", None)
    if not isinstance(policy, Policy):
        raise PolicyModuleError(f"{where}: declares no POLICY")
    if policy.name != stem.replace("_", "-"):
        raise PolicyModuleError(f'{where}: declares the policy "{policy.name}"; a policy is named like its module')
    if policy.name in found:
        raise PolicyModuleError(f'{where}: there is a policy "{policy.name}" already')
    found[policy.name] = policy
