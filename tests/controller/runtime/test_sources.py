"""Event sources of a controller: For, Owns and Watches, as in controller-runtime."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from prometheus_client import CollectorRegistry

from controller.runtime.manager import Manager
from controller.runtime.observed import controller_reference, is_controlled_by
from controller.runtime.sources import For, Owns, Watches, any_change, owner_of, spec_changed
from controller.runtime.types import ReconcileRequest, Result
from gatewright.testing.fake_apiserver import FakeApiServer
from kube.resource import JsonObject, Resource
from kube.store import Change, entry_of
from tests.controller.runtime.conftest import CONFIGMAP, NAMESPACE
from tests.kube.conftest import DEPLOYMENT
from tests.waiting import WITHIN

SERVICE = Resource("", "v1", "services", "Service")
SHOP = ReconcileRequest(NAMESPACE, "shop")


@asynccontextmanager
async def woken(
    server: FakeApiServer, *watched: For | Owns | Watches
) -> AsyncIterator[asyncio.Queue[ReconcileRequest]]:
    """The requests that a controller gets, in order."""
    requests: asyncio.Queue[ReconcileRequest] = asyncio.Queue()

    async def reconcile(request: ReconcileRequest) -> Result:
        requests.put_nowait(request)
        return Result()

    manager = Manager(server.endpoint, CollectorRegistry(), identity="the-test")
    manager.control("test", reconcile, *watched, workers=1)
    stop = asyncio.Event()
    async with asyncio.timeout(WITHIN), asyncio.TaskGroup() as group:
        group.create_task(manager.run(stop))
        try:
            yield requests
        finally:
            stop.set()


def named(name: str, **metadata: object) -> JsonObject:
    """An object of a name."""
    return {"metadata": {"name": name, "namespace": NAMESPACE, **metadata}}


async def test_a_change_of_a_spec_wakes_and_a_status_does_not(server: FakeApiServer) -> None:
    """A controller's write of the status must not enqueue the object."""
    async with woken(server, For(DEPLOYMENT)) as requests:
        server.create(DEPLOYMENT, named("shop") | {"spec": {"replicas": 1}})
        assert await requests.get() == SHOP
        server.change(DEPLOYMENT, "shop", {"status": {"replicas": 1}}, NAMESPACE, "status")
        server.create(DEPLOYMENT, named("other"))
        assert await requests.get() == ReconcileRequest(NAMESPACE, "other")


async def test_a_predicate_can_let_status_changes_through(server: FakeApiServer) -> None:
    """Another predicate lets changes of the status through."""
    async with woken(server, For(DEPLOYMENT, predicate=any_change)) as requests:
        server.create(DEPLOYMENT, named("shop"))
        assert await requests.get() == SHOP
        server.change(DEPLOYMENT, "shop", {"status": {"replicas": 1}}, NAMESPACE, "status")
        assert await requests.get() == SHOP


async def test_a_child_wakes_its_owner(server: FakeApiServer) -> None:
    """Any change of a child enqueues its owner; other objects of its kind enqueue nothing."""
    shop = server.create(DEPLOYMENT, named("shop"))
    async with woken(server, For(DEPLOYMENT), Owns(CONFIGMAP)) as requests:
        assert await requests.get() == SHOP
        server.create(CONFIGMAP, named("foreign"))
        child = server.create(
            CONFIGMAP, named("child", ownerReferences=[controller_reference(DEPLOYMENT, shop)])
        )
        assert await requests.get() == SHOP
        assert requests.empty()
        assert is_controlled_by(child, shop)
        assert not is_controlled_by(shop, shop)


async def test_the_map_decides_which_objects_are_enqueued(server: FakeApiServer) -> None:
    """The map is called for the old and the new object; each request is enqueued once."""

    def labelled(configmap: JsonObject) -> list[ReconcileRequest]:
        return [ReconcileRequest(NAMESPACE, configmap["metadata"]["labels"]["for"])]

    async with woken(server, For(DEPLOYMENT), Watches(CONFIGMAP, labelled)) as requests:
        server.create(CONFIGMAP, named("settings", labels={"for": "shop"}))
        assert await requests.get() == SHOP
        server.change(CONFIGMAP, "settings", {"metadata": {"labels": {"for": "search"}}}, NAMESPACE)
        assert [await requests.get(), await requests.get()] == [
            SHOP,
            ReconcileRequest(NAMESPACE, "search"),
        ]


def test_children_are_somebodys() -> None:
    """Owns needs exactly one For."""
    manager = Manager(FakeApiServer().endpoint, CollectorRegistry(), identity="the-test")

    async def reconcile(request: ReconcileRequest) -> Result:
        raise AssertionError(request)

    for watched in ([Owns(CONFIGMAP)], [For(DEPLOYMENT), For(SERVICE), Owns(CONFIGMAP)]):
        with pytest.raises(
            ValueError, match=r"^Owns\(configmaps\) needs exactly one For beside it: the owner's$"
        ):
            manager.control("test", reconcile, *watched)


async def test_a_cache_without_a_watch_is_an_error(server: FakeApiServer) -> None:
    """Using it within a reconcile is an error."""
    told: asyncio.Queue[str] = asyncio.Queue()
    manager = Manager(server.endpoint, CollectorRegistry(), identity="the-test")

    async def reconcile(request: ReconcileRequest) -> Result:
        assert manager.caches.of(DEPLOYMENT).get(request.key) is not None
        with pytest.raises(RuntimeError) as error:
            manager.caches.of(SERVICE)
        told.put_nowait(str(error.value))
        return Result()

    manager.control("test", reconcile, For(DEPLOYMENT))
    server.create(DEPLOYMENT, named("shop"))
    stop = asyncio.Event()
    async with asyncio.timeout(WITHIN), asyncio.TaskGroup() as group:
        group.create_task(manager.run(stop))
        assert (
            await told.get() == "services are not watched: ask for caches before the manager runs"
        )
        stop.set()


METADATA: JsonObject = {
    "name": "a",
    "namespace": "shop",
    "uid": "1",
    "resourceVersion": "1",
    "generation": 1,
}
WEBAPP = Resource("example.com", "v1", "webapps", "WebApp")


def change(old: JsonObject | None, new: JsonObject | None) -> Change:
    """A change of an object's metadata."""
    entries = [each and entry_of({"metadata": METADATA | each}) for each in (old, new)]
    return Change("shop/a", entries[0], entries[1], initial=False)


@pytest.mark.parametrize(
    ("new", "counts"),
    [
        ({"resourceVersion": "2", "generation": 2}, True),
        ({"resourceVersion": "2", "deletionTimestamp": "2026-01-01T00:00:00Z"}, True),
        ({"resourceVersion": "2", "labels": {"a": "b"}}, True),
        ({"resourceVersion": "2", "annotations": {"a": "b"}}, True),
        ({"resourceVersion": "2"}, False),
        ({"resourceVersion": "1"}, True),
        (None, True),
    ],
)
def test_a_change_by_users_counts(new: JsonObject | None, counts: bool) -> None:
    """The spec, the deletion, labels and annotations; a new status alone does not.

    The same version counts: it is read by another schema, and may have more fields.
    """
    assert spec_changed(change(METADATA, new)) is counts
    assert any_change(change(METADATA, new))


def owned(
    name: str, *, kind: str = "WebApp", api: str = "example.com/v1", controller: bool = True
) -> JsonObject:
    """A child with this owner."""
    return {
        "ownerReferences": [
            {"apiVersion": api, "kind": kind, "name": name, "uid": "u", "controller": controller}
        ]
    }


@pytest.mark.parametrize(
    ("old", "new", "owners"),
    [
        (None, owned("shop"), ["shop"]),
        (owned("shop"), owned("shop"), ["shop"]),
        (owned("shop"), None, ["shop"]),
        (owned("shop"), METADATA, ["shop"]),
        (owned("shop"), owned("other"), ["shop", "other"]),
        (owned("shop"), owned("other", kind="Widget"), ["shop"]),
        (None, owned("shop", api="example.com/v2"), ["shop"]),
        (None, owned("shop", controller=False), []),
        (None, owned("shop", kind="Widget"), []),
        (None, owned("shop", api="other.com/v1"), []),
    ],
)
def test_a_child_is_mapped_to_its_controlling_owner(
    old: JsonObject | None, new: JsonObject | None, owners: list[str]
) -> None:
    """The old and the new owner are enqueued; a cluster-scoped one without a namespace."""
    assert owner_of(WEBAPP)(change(old, new)) == [ReconcileRequest("shop", name) for name in owners]
    cluster = WEBAPP._replace(namespaced=False)
    assert owner_of(cluster)(change(old, new)) == [ReconcileRequest(None, name) for name in owners]
