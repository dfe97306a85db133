"""The fixtures of the runtime's tests, and a real API server that tests may break."""

import secrets
import shutil
from collections.abc import AsyncIterator, Iterator

import pytest

from kube import credentials
from kube.client import Client
from tests.controller.conftest import install_webapps
from tests.controller.runtime.conftest import hasty, running, server
from tests.controlplane.binaries import find_binaries
from tests.controlplane.fixtures import available
from tests.controlplane.plane import ControlPlane

__all__ = ["hasty", "running", "server"]


@pytest.fixture(scope="package")
def plane(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """An API server without controllers. A test that breaks it must restore it."""
    available(request.config, find_binaries)
    directory = tmp_path_factory.mktemp("properties") / "controlplane"
    with ControlPlane.start(directory, parts=("etcd", "kube-apiserver")) as plane:
        yield install_webapps(plane)
    shutil.rmtree(plane.directory / "etcd")


@pytest.fixture
def place(plane: ControlPlane) -> str:
    """A new namespace in it."""
    name = f"test-{secrets.token_hex(4)}"
    plane.create_namespace(name)
    return name


@pytest.fixture
async def user(plane: ControlPlane) -> AsyncIterator[Client]:
    """An admin client of it."""
    async with Client(
        await credentials.load(plane.kubeconfig, environment={}), user_agent="the-test"
    ) as client:
        yield client
