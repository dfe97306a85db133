"""Installed packages that add kinds or commands."""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from controller.reconcilers import added_kinds, planned_kinds
from gatewright.cli import added_commands
from webhook.engine.kinds import KINDS


def declare(directory: Path, group: str = "gatewright.kinds", **entries: str) -> None:
    """Write the metadata of an installed package in `directory` with these entry points."""
    about = directory / "our_kinds-0.1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: our-kinds\nVersion: 0.1.0\n")
    lines = [f"{name} = {value}" for name, value in entries.items()]
    (about / "entry_points.txt").write_text("\n".join([f"[{group}]", *lines, ""]))


@contextmanager
def installed(directory: Path) -> Iterator[None]:
    """Make the package in `directory` importable, and its entry points discoverable."""
    before, known = set(sys.modules), set(KINDS)
    sys.path.insert(0, str(directory))
    importlib.invalidate_caches()
    _forget()
    try:
        yield
    finally:
        sys.path.remove(str(directory))
        for name in set(sys.modules) - before:
            if str(getattr(sys.modules[name], "__file__", "")).startswith(str(directory)):
                del sys.modules[name]
        _forget()
        for key in KINDS.keys() - known:
            del KINDS[key]


def _forget() -> None:
    added_commands.cache_clear()
    added_kinds.cache_clear()
    planned_kinds.cache_clear()
