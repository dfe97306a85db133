"""A key never has two reconciles at a time, and always one after its last change."""

import asyncio
import random

import pytest
from prometheus_client import CollectorRegistry

from controller.runtime.controller import Controller
from controller.runtime.metrics import ControllerMetrics
from controller.runtime.types import ReconcileRequest, Result
from tests.waiting import WITHIN

KEYS = [ReconcileRequest("default", str(number)) for number in range(20)]
ADDITIONS = 2000
WORKERS = 32


@pytest.mark.parametrize("seed", range(4))
async def test_keys_are_reconciled_one_at_a_time_and_after_their_last_change(seed: int) -> None:
    """Keys are added to 32 workers at any time: before, during and after their reconcile."""
    chance = random.Random(seed)
    busy: set[ReconcileRequest] = set()
    changed, observed = dict.fromkeys(KEYS, 0), dict.fromkeys(KEYS, 0)
    twice: list[ReconcileRequest] = []
    at_once, quiet = 0, asyncio.Event()

    async def reconcile(request: ReconcileRequest) -> Result:
        nonlocal at_once
        if request in busy:
            twice.append(request)
        busy.add(request)
        at_once = max(at_once, len(busy))
        state = changed[request]
        for _ in range(chance.randrange(6)):
            await asyncio.sleep(0)
        observed[request] = state
        busy.discard(request)
        if observed == changed:
            quiet.set()
        return Result()

    keys = Controller(
        "keys", reconcile=reconcile, metrics=ControllerMetrics(CollectorRegistry()), workers=WORKERS
    )
    async with asyncio.timeout(WITHIN), asyncio.TaskGroup() as group:
        group.create_task(keys.run())
        for number in range(1, ADDITIONS + 1):
            key = chance.choice(KEYS)
            changed[key] = number
            quiet.clear()
            keys.add(key)
            if chance.random() < 0.3:
                await asyncio.sleep(0)
        await quiet.wait()
        keys.stop()
    assert twice == []
    assert observed == changed
    assert at_once > 1
