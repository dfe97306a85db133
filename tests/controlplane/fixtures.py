"""The control plane's pytest fixtures, and the reason for skipped tests on a machine that cannot run it."""

import functools
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import NoReturn, TypeVar

import pytest

from tests.controlplane.binaries import find_binaries, helm_binary
from tests.controlplane.gobuild import BuildError, MissingToolError
from tests.controlplane.lent import LentPlane
from tests.controlplane.plane import ControlPlane

Found = TypeVar("Found")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip `@pytest.mark.controlplane("kube-scheduler", …)` if the control plane or a component is missing."""
    if marker := item.get_closest_marker("controlplane"):
        found = available(item.config, find_binaries)
        if missing := sorted(set(marker.args) - found.keys()):
            _unavailable(f"the control plane has no {', '.join(missing)} (KUBEBUILDER_ASSETS)")


@pytest.fixture(scope="session")
def control_plane(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """The control plane that all tests share: a test uses only its own namespace and stops no component."""
    available(request.config, find_binaries)
    with ControlPlane.start(tmp_path_factory.mktemp("controlplane") / "shared") as plane:
        yield plane
    shutil.rmtree(plane.directory / "etcd")


@pytest.fixture(scope="session")
def lent_plane(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LentPlane]:
    """The control plane behind `empty_plane`."""
    available(request.config, find_binaries)
    lent = LentPlane(lambda: tmp_path_factory.mktemp("lent"))
    yield lent
    lent.close()


@pytest.fixture
def empty_plane(lent_plane: LentPlane) -> Iterator[ControlPlane]:
    """An API server without controllers and audit log, and with no objects but Kubernetes' own.

    A test may do with objects what it likes, but leaves all parts running: the next test gets the same ones.
    """
    with lent_plane.lend() as plane:
        yield plane


@pytest.fixture
def own_control_plane(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[Callable[..., ControlPlane]]:
    """Starts control planes of which a test may stop parts: `own_control_plane(parts=("etcd", "kube-apiserver"))`."""
    available(request.config, find_binaries)
    started: list[ControlPlane] = []

    def start(**options: object) -> ControlPlane:
        plane = ControlPlane.start(tmp_path / f"controlplane-{len(started)}", **options)
        started.append(plane)
        return plane

    yield start
    for plane in started:
        plane.close()
        shutil.rmtree(plane.directory / "etcd")


@pytest.fixture
def namespace(control_plane: ControlPlane) -> Iterator[str]:
    """A new namespace of the shared control plane; the fixture does not wait for its deletion."""
    name = f"test-{secrets.token_hex(4)}"
    control_plane.create_namespace(name)
    yield name
    control_plane.delete_namespace(name)


@pytest.fixture(scope="session")
def helm(request: pytest.FixtureRequest) -> Path:
    """The helm on the PATH, else one built once."""
    return available(request.config, helm_binary)


def available(config: pytest.Config, find: Callable[[], Found]) -> Found:
    """Call a function that finds something, and show its build progress despite pytest's capture."""
    capture = config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled() if capture else nullcontext():
        found = _attempt(find)
    if isinstance(found, MissingToolError):
        _unavailable(str(found))
    if isinstance(found, BuildError):
        pytest.fail(str(found), pytrace=False)
    return found


@functools.cache
def _attempt(find: Callable[[], Found]) -> Found | MissingToolError | BuildError:
    """Call a function that finds something; after a failure, raise the same error for every test."""
    try:
        return find()
    except (MissingToolError, BuildError) as error:
        return error


def _unavailable(reason: str) -> NoReturn:
    if os.environ.get("CI") == "true":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)
