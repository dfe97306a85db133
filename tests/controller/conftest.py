"""A controller process inside the test process, on the real API server."""

import asyncio
import functools
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from controller.reconcilers.resources import DEPLOYMENT, SERVICE
from controller.reconcilers.webapp import WEBAPP
from controller.runtime.manager import Manager
from kube import credentials
from kube.client import Client
from tests.controller.observer import Observer, observing
from tests.controlplane.plane import ControlPlane

CRD = Path("config/crd/bases/example.com_webapps.yaml")


def install_webapps(plane: ControlPlane) -> ControlPlane:
    """Create the CRD, and wait until WebApps are served."""
    plane.kubectl("apply", "--server-side", "-f", str(CRD))
    plane.kubectl("wait", "--for=condition=Established", "crd/webapps.example.com")
    return plane


@pytest.fixture(scope="session")
def webapps_installed(control_plane: ControlPlane) -> ControlPlane:
    """The shared control plane, with the WebApp CRD."""
    return install_webapps(control_plane)


@pytest.fixture
async def client(webapps_installed: ControlPlane) -> AsyncIterator[Client]:
    """An admin client, which acts as the user in a test."""
    endpoint = await credentials.load(webapps_installed.kubeconfig, environment={})
    async with Client(endpoint, user_agent="the-test") as client:
        yield client


@pytest.fixture
async def observer(client: Client, namespace: str) -> AsyncIterator[Observer]:
    """Observes the test's namespace."""
    async with observing(client, namespace, [WEBAPP.resource, DEPLOYMENT, SERVICE]) as observer:
        yield observer


@asynccontextmanager
async def running(plane: ControlPlane, namespace: str) -> AsyncIterator[str]:
    """Run a controller that sees one namespace only; yield its user agent in the audit log."""
    agent = f"controller-{uuid.uuid4()}"
    endpoint = await credentials.load(plane.kubeconfig, environment={})
    manager = Manager(
        endpoint,
        CollectorRegistry(),
        identity=agent,
        namespaces=[namespace],
        user_agent=agent,
    )
    manager.add_kind(WEBAPP)
    stop = asyncio.Event()
    async with asyncio.timeout(120), asyncio.TaskGroup() as group:
        group.create_task(manager.run(stop))
        try:
            yield agent
        finally:
            stop.set()


Start = Callable[..., AbstractAsyncContextManager[str]]


@pytest.fixture
def controller(webapps_installed: ControlPlane, namespace: str) -> Start:
    """Starts controllers that are limited to the test's namespace."""
    return functools.partial(running, webapps_installed, namespace)
