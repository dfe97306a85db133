"""Fixture plugins and hypothesis profiles for all tests, without deadlines, since the machine may be busy."""

import gc
import os
import re
from pathlib import Path

import pytest
from hypothesis import settings

from tests.controlplane.processes import GOGC

os.environ.setdefault("GOGC", GOGC)  # for helm and others that get the tests' environment
pytest_plugins = ["tests.controlplane.fixtures", "tests.databases.binaries"]

settings.register_profile("quick", deadline=None, max_examples=25, derandomize="CI" in os.environ)
settings.register_profile("thorough", deadline=None, max_examples=3000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

# The mark of all tests of a file, or its first one: "pytestmark = [pytest.mark.node, ...]".
MARK_OF_FILE = re.compile(r"^pytestmark = \[?pytest\.mark\.(\w+)", re.MULTILINE)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no file whose tests `-m` all leaves out: a quarter of the files of a fast run."""
    expression: str = config.option.markexpr
    if collection_path.suffix != ".py" or "not " not in expression:
        return None
    mark = MARK_OF_FILE.search(collection_path.read_text())
    return True if mark is not None and f"not {mark[1]}" in expression else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run tests without a control plane first: their longest file takes six minutes, and must not run alone."""
    items.sort(
        key=lambda item: [any(item.iter_markers(each)) for each in ("quiet", "controlplane")]
    )


def pytest_collection_finish() -> None:
    """Collect garbage seldom, and never the collected tests: it would take 10 % of the run time."""
    gc.freeze()
    gc.set_threshold(50_000)
