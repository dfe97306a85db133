"""A controller whose API server freezes gives up leadership."""

import asyncio
import time
from collections.abc import Callable

import pytest

from controller.runtime.leader import LeadershipLostError, LeaseSettings
from tests.controller.conftest import install_webapps, running
from tests.controller.test_two_controllers import until_leading
from tests.controlplane.plane import ControlPlane

pytestmark = pytest.mark.controlplane

PARTS = ("etcd", "kube-apiserver")


async def test_a_leader_that_hears_nothing_steps_down_in_time(
    own_control_plane: Callable[..., ControlPlane],
) -> None:
    """A frozen API server neither answers nor refuses connections; the leader ends before its Lease expires."""
    plane = install_webapps(await asyncio.to_thread(own_control_plane, parts=PARTS))
    lease = LeaseSettings("default", "the-lock", duration=12, renew_deadline=4, retry_period=0.5)
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
    assert raised.group_contains(LeadershipLostError, match="not renewed in time")
    await asyncio.to_thread(
        plane.kill, "kube-apiserver"
    )  # ends the connections that wait for its farewell
