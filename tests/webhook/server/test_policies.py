"""Policies come from files, and only good ones come into force."""

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
    """A file that holds a number of policies."""
    return tmp_path / "policies.yaml"


@pytest.fixture
def registry() -> CollectorRegistry:
    """Where it is counted."""
    return CollectorRegistry()


@pytest.fixture
def policies(file, registry) -> Policies:
    """Policies from that file, not loaded yet."""
    return Policies(
        [file], lambda: Engine([bind(NAMES, name=str(n)) for n in range(int(file.read_text()))]), Metrics(registry)
    )


def test_nothing_is_in_force_before_the_first_load(policies):
    """And that is not ready."""
    assert policies.engine is None
    assert policies.ready() == "not loaded yet"


def test_a_missing_or_wrong_file_is_not_ready(policies, file):
    """The reason is the loader's."""
    policies.refresh()
    assert "No such file" in policies.ready()
    file.write_text("three")
    policies.refresh()
    assert "three" in policies.ready()
    assert policies.engine is None


def test_a_change_comes_into_force(policies, file, registry):
    """A new engine for each new content, and the same one as long as nothing changes."""
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


def test_a_bad_change_leaves_the_good_set_in_force(policies, file, registry, caplog):
    """It is logged and counted once, and the webhook stays ready."""
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


async def test_what_is_marked_before_all_is_read_is_loaded_once_all_is(file, registry):
    """Waiting lets everything else run, and ends when there is nothing to wait for, not at the next look at files."""
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
