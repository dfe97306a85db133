"""The periodic work of the server while it listens."""

import asyncio

import pytest

from tests.waiting import WITHIN
from webhook.server.serve import poll


async def test_poll_refreshes_again_and_again():
    """It runs until cancelled."""
    done, calls = asyncio.Event(), []

    def refresh() -> None:
        calls.append(1)
        if len(calls) == 3:
            done.set()

    polling = asyncio.create_task(poll(refresh, 0.001))
    await asyncio.wait_for(done.wait(), WITHIN)
    polling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await polling
