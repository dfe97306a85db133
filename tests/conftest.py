"""Where the fixtures of all tests come from, and how properties are tried: on a busy machine time says nothing."""

import gc
import os

import pytest
from hypothesis import settings

pytest_plugins = ["tests.controlplane.fixtures", "tests.databases.binaries"]

settings.register_profile("quick", deadline=None, max_examples=25, derandomize="CI" in os.environ)
settings.register_profile("thorough", deadline=None, max_examples=3000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what needs no cluster: its longest file takes six minutes, and would run alone at the end."""
    items.sort(
        key=lambda item: [any(item.iter_markers(each)) for each in ("quiet", "controlplane")]
    )


def pytest_collection_finish() -> None:
    """Leave what was collected alone: to look for garbage in it again and again takes a twentieth of the time."""
    gc.freeze()
