"""The node's pytest fixtures: one node for all tests, and the reason for skips if this machine cannot run it."""

import contextlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controlplane.binaries import find_binaries, helm_binary
from tests.controlplane.fixtures import available
from tests.node import images
from tests.node.installation import Installation
from tests.node.node import Node, running
from tests.node.programs import built, check_machine

FIGURES = pytest.StashKey[list[str]]()
# As few installations as possible: the previous release needs a cluster without Gatewright, so it is the first, and "dns"
# and "installation" install it as their test. Disruptive tests come before "installation": after it, nothing may log a
# warning until the test that checks for warnings.
ORDER = (
    "upgrade",
    "dns",
    "disruptions",
    "everything_stopped",
    "certificates",
    "major_upgrade",
    "installation",
    "kinds",
    "databases",
    "fail_over",
    "policies_change",
    "mutants",
    "image",
    "machines",
    "resting",
    "manifests",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests of a node into their order, after all others."""
    places = {Path(__file__).with_name(f"test_{name}.py"): n for n, name in enumerate(ORDER)}
    items.sort(key=lambda item: places.get(item.path, -1))


@pytest.fixture(scope="session")
def node(request: pytest.FixtureRequest) -> Iterator[Node]:
    """A cluster of one real node. A test that breaks something must restore it."""
    available(request.config, _usable)
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with contextlib.ExitStack() as stack:
        with capture.global_and_fixture_disabled():
            wanted = [images.gatewright(), *images.workloads()]
            node = stack.enter_context(running(_say(), wanted))
        yield node


@pytest.fixture
def bare(node: Node) -> Installation:
    """A cluster without Gatewright."""
    installation = Installation(node)
    installation.remove()
    return installation


@pytest.fixture
def installed(node: Node) -> Installation:
    """Gatewright, installed with the policy set production and ready; it stays for the following tests."""
    installation = Installation(node)
    installation.have()
    return installation


@pytest.fixture
def figure(request: pytest.FixtureRequest) -> "Figures":
    """Record a figure, which pytest prints at the end of the run."""
    return Figures(request.config, request.node.name)


class Figures:
    """The figures of one test."""

    def __init__(self, config: pytest.Config, test: str) -> None:
        self._lines = config.stash.setdefault(FIGURES, [])
        self._test = test

    def __call__(self, text: str) -> None:
        """Record one."""
        self._lines.append(f"{self._test}: {text}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the recorded figures."""
    if lines := terminalreporter.config.stash.get(FIGURES, None):
        terminalreporter.section("figures of the node")
        for line in lines:
            terminalreporter.write_line(line)


def _usable() -> None:
    """Find all programs of a node, and build the missing ones."""
    check_machine()
    find_binaries()
    helm_binary()
    built()


def _say() -> images.Say:
    began = time.monotonic()
    return lambda text: print(f"node: {time.monotonic() - began:.0f} s  {text}", file=sys.stderr)
