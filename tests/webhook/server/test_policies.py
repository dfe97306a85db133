"""Policies from files; only valid sets come into force."""

import asyncio
import logging

import pytest
from prometheus_client import CollectorRegistry

from tests.webhook.server.conftest import NAMES, bind
from webhook.engine import Engine
from webhook.server.metrics import Metrics
from webhook.server.policies import Policies


@pytest.fixture
def file(tmp_path):
    """Write a file with a number of policies."""
    return tmp_path / "policies.yaml"


@pytest.fixture
def registry() -> CollectorRegistry:
    """The metrics."""
    return CollectorRegistry()


@pytest.fixture
def policies(file, registry) -> Policies:
    """Policies from that file, not loaded yet."""
    return Policies(
        [file], lambda: Engine([bind(NAMES, name=str(n)) for n in range(int(file.read_text()))]), Metrics(registry)
    )


def test_nothing_is_in_force_before_the_first_load(policies):
    """The webhook is not ready."""
    assert policies.engine is None
    assert policies.ready() == "not loaded yet"


def test_a_missing_or_wrong_file_is_not_ready(policies, file):
    """The reason is the loader's error."""
    policies.refresh()
    assert "No such file" in policies.ready()
    file.write_text("three")
    policies.refresh()
    assert "three" in policies.ready()
    assert policies.engine is None


def test_a_change_comes_into_force(policies, file, registry):
    """Each new content creates a new engine; unchanged content keeps it."""
    file.write_text("1")
    policies.refresh()
    first = policies.engine
    policies.refresh()
    assert policies.engine is first
    assert policies.ready() is None
    file.write_text("2")
    policies.refresh()
    assert len(policies.engine.policies) == 2
    assert registry.get_sample_value("gatewright_policies") == 2


def test_an_invalid_change_keeps_the_current_set(policies, file, registry, caplog):
    """The error is logged and counted once, and the webhook stays ready."""
    file.write_text("1")
    policies.refresh()
    good = policies.engine
    file.write_text("x")
    caplog.set_level(logging.ERROR)
    for _ in range(3):
        policies.refresh()
    assert policies.engine is good
    assert policies.ready() is None
    assert registry.get_sample_value("gatewright_policy_reload_errors_total") == 1
    assert len(caplog.records) == 1
    file.unlink()
    policies.refresh()
    assert policies.engine is good


async def test_a_change_before_the_caches_are_synced_is_loaded_afterwards(file, registry):
    """Waiting does not block the loop, and ends as soon as the caches are synced."""
    file.write_text("1")
    waiting, in_force = ["objects"], asyncio.Event()
    policies = Policies(
        [file], lambda: Engine([bind(NAMES)]), Metrics(registry), waits_for=lambda: waiting[0] if waiting else None
    )
    policies.mark_changed()
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        following = group.create_task(policies.follow(in_force.set, seconds=60))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert policies.ready() == "objects: not read yet"
        waiting.clear()
        await in_force.wait()
        following.cancel()
    assert policies.ready() is None
