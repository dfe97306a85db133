"""A controller whose API server dies or freezes: nothing is lost, and nobody leads who cannot know it."""

import asyncio
import time
from collections.abc import Callable

import pytest

from controller.reconcilers.resources import DEPLOYMENT
from controller.reconcilers.webapp import WEBAPP
from controller.runtime.leader import LeaseSettings
from kube import credentials
from kube.client import Client
from tests.controller.conftest import install_webapps, running
from tests.controller.observer import observing
from tests.controller.test_two_controllers import until_leading
from tests.controller.webapps import webapp
from tests.controlplane.plane import ControlPlane

pytestmark = pytest.mark.controlplane

PARTS = ("etcd", "kube-apiserver")


async def test_what_came_while_the_api_server_was_away_is_made(
    own_control_plane: Callable[..., ControlPlane],
) -> None:
    """Killed and started again: the controller goes on by itself, with the objects from before and after."""
    plane = install_webapps(await asyncio.to_thread(own_control_plane, parts=PARTS))
    endpoint = await credentials.load(plane.kubeconfig, environment={})
    async with (
        Client(endpoint) as client,
        running(plane, "default"),
        observing(client, "default", [DEPLOYMENT]) as observer,
    ):
        await client.create(WEBAPP.resource, webapp("default", "before"))
        await observer.until(DEPLOYMENT, "before")
        await asyncio.to_thread(plane.restart, "kube-apiserver")
        await client.create(WEBAPP.resource, webapp("default", "after"))
        await client.delete(DEPLOYMENT, "before", "default")
        await observer.until(DEPLOYMENT, "after")
        await observer.until(DEPLOYMENT, "before")


async def test_a_leader_that_hears_nothing_steps_down_in_time(
    own_control_plane: Callable[..., ControlPlane],
) -> None:
    """A frozen API server answers nothing and refuses nothing; the leader ends before its lease does."""
    plane = install_webapps(await asyncio.to_thread(own_control_plane, parts=PARTS))
    lease = LeaseSettings("default", "the-lock", duration=4, renew_deadline=3, retry_period=0.5)
    frozen = 0.0

    async def lead_until_frozen() -> None:
        nonlocal frozen
        async with running(plane, "default", lease=lease) as process:
            await until_leading(process)
            frozen = time.monotonic()
            plane.stop("kube-apiserver")
            await asyncio.Event().wait()

    with pytest.raises(ExceptionGroup) as raised:
        await lead_until_frozen()
    assert time.monotonic() - frozen < lease.duration
    assert "not renewed in time" in str(raised.value.exceptions[0])
    await asyncio.to_thread(plane.kill, "kube-apiserver")  # ends the connections that wait for its farewell
