"""A reconcile waits until the caches have the controller's own writes for its object."""

import pytest

from controller.runtime.cache import Cache, Caches
from controller.runtime.expectations import Expectations
from controller.runtime.types import ReconcileRequest
from kube.client import Client
from kube.endpoint import Endpoint
from tests.controller.runtime.clock import Clock
from tests.controller.runtime.conftest import CONFIGMAP

REQUEST = ReconcileRequest("default", "a")
SEVENTH = {"metadata": {"resourceVersion": "7"}}


@pytest.fixture
def clock() -> Clock:
    """The clock of the patience."""
    return Clock()


@pytest.fixture
def expectations(clock: Clock) -> Expectations:
    """Nothing was written yet."""
    return Expectations(clock=clock)


@pytest.fixture
def cache() -> Cache:
    """A cache that only the test fills."""
    return Caches(Client(Endpoint("http://127.0.0.1:1"))).of(CONFIGMAP)


def shown(cache: Cache, version: int) -> None:
    """Let the cache see a version of the object."""
    (store,) = cache.stores.values()
    store.put(
        {
            "metadata": {
                "namespace": "default",
                "name": "a",
                "uid": "1",
                "resourceVersion": str(version),
            }
        }
    )


def test_without_writes_a_reconcile_begins_at_once(expectations: Expectations) -> None:
    """Without previous writes, a reconcile begins at once."""
    assert expectations.wait(REQUEST) == 0


def test_a_delete_is_waited_for_until_the_cache_shows_it(
    expectations: Expectations, cache: Cache
) -> None:
    """The cache shows it if the object is gone, in deletion, or another one with the name."""
    (store,) = cache.stores.values()
    shown(cache, 6)
    expectations.expect_deletion(REQUEST, cache, "default/a", "1")
    assert expectations.wait(REQUEST) == 5
    shown(cache, 7)
    assert expectations.wait(REQUEST) == 5
    store.remove("default/a")
    assert expectations.wait(REQUEST) == 0


def test_a_write_is_waited_for_until_the_cache_shows_it(
    expectations: Expectations, cache: Cache
) -> None:
    """An older version is not enough; a later one is."""
    expectations.wrote(REQUEST, cache, "default/a", SEVENTH)
    shown(cache, 6)
    assert expectations.wait(REQUEST) == 5
    shown(cache, 8)
    assert expectations.wait(REQUEST) == 0


def test_a_cache_with_a_later_version_has_observed_the_write(
    expectations: Expectations, cache: Cache
) -> None:
    """An object that was written and deleted never appears in the cache, but the version passes."""
    expectations.wrote(REQUEST, cache, "default/a", SEVENTH)
    (store,) = cache.stores.values()
    store.resource_version = 7
    assert expectations.unmet(REQUEST) == []


def test_patience_ends(expectations: Expectations, cache: Cache, clock: Clock) -> None:
    """After a time limit, the reconcile begins, and reads the stale objects from the API server."""
    expectations.wrote(REQUEST, cache, "default/a", SEVENTH)
    clock.now += 5
    assert expectations.wait(REQUEST) == 0
    assert [each.key for each in expectations.unmet(REQUEST)] == ["default/a"]


def test_one_object_does_not_wait_for_another(expectations: Expectations, cache: Cache) -> None:
    """The writes of each request are separate."""
    expectations.wrote(REQUEST, cache, "default/a", SEVENTH)
    assert expectations.wait(ReconcileRequest("default", "b")) == 0
