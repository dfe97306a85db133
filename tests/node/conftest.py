"""pytest's side of the node: one for all tests, and one clear line where this machine cannot run it."""

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
# It is installed twice. The rough tests come first; what runs after the second installation must
# leave no warning until the test of that.
ORDER = (
    "dns",
    "disruptions",
    "everything_stopped",
    "certificates",
    "installation",
    "kinds",
    "databases",
    "policies_change",
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
    """A cluster of one real node. What a test breaks, it mends."""
    available(request.config, _usable)
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with contextlib.ExitStack() as stack:
        with capture.global_and_fixture_disabled():
            wanted = [images.gatewright(), *images.workloads()]
            node = stack.enter_context(running(_say(), wanted))
        yield node


@pytest.fixture
def bare(node: Node) -> Installation:
    """A cluster without Gatewright, to install it in."""
    installation = Installation(node)
    installation.remove()
    return installation


@pytest.fixture
def installed(node: Node) -> Installation:
    """Gatewright, installed with the policy set production, answering; it stays for the tests that follow."""
    installation = Installation(node)
    installation.have()
    return installation


@pytest.fixture
def figure(request: pytest.FixtureRequest) -> "Figures":
    """Note a figure that the run shows at its end."""
    return Figures(request.config, request.node.name)


class Figures:
    """The figures of one test."""

    def __init__(self, config: pytest.Config, test: str) -> None:
        self._lines = config.stash.setdefault(FIGURES, [])
        self._test = test

    def __call__(self, text: str) -> None:
        """Note one."""
        self._lines.append(f"{self._test}: {text}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what was measured."""
    if lines := terminalreporter.config.stash.get(FIGURES, None):
        terminalreporter.section("figures of the node")
        for line in lines:
            terminalreporter.write_line(line)


def _usable() -> None:
    """Have all programs of a node, built if need be."""
    check_machine()
    find_binaries()
    helm_binary()
    built()


def _say() -> images.Say:
    began = time.monotonic()
    return lambda text: print(f"node: {time.monotonic() - began:.0f} s  {text}", file=sys.stderr)
