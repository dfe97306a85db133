"""What wakes a controller, as one says it in controller-runtime's words."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from prometheus_client import CollectorRegistry

from controller.fake_apiserver import FakeApiServer
from controller.runtime.parent import controller_reference, is_controlled_by
from controller.runtime.plan import Object
from controller.runtime.result import Request, Result
from controller.runtime.runtime import Runtime
from controller.runtime.wakes import itself
from controller.runtime.watching import For, Owns, Watches
from kube.resource import Resource
from tests.controller.runtime.conftest import CONFIGMAP, NAMESPACE
from tests.kube.conftest import DEPLOYMENT

SERVICE = Resource("", "v1", "services", "Service")
SHOP = Request(NAMESPACE, "shop")


@asynccontextmanager
async def woken(server: FakeApiServer, *watched: For | Owns | Watches) -> AsyncIterator[asyncio.Queue[Request]]:
    """The requests that a controller gets, one by one."""
    requests: asyncio.Queue[Request] = asyncio.Queue()

    async def reconcile(request: Request) -> Result:
        requests.put_nowait(request)
        return Result()

    runtime = Runtime(server.endpoint, CollectorRegistry(), identity="the-test")
    runtime.control("test", reconcile, *watched, workers=1)
    stop = asyncio.Event()
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        group.create_task(runtime.run(stop))
        try:
            yield requests
        finally:
            stop.set()


def named(name: str, **metadata: object) -> Object:
    """An object of a name."""
    return {"metadata": {"name": name, "namespace": NAMESPACE, **metadata}}


async def test_a_change_of_a_spec_wakes_and_a_status_does_not(server: FakeApiServer) -> None:
    """What a controller writes into the status must not wake it."""
    async with woken(server, For(DEPLOYMENT)) as requests:
        server.create(DEPLOYMENT, named("shop") | {"spec": {"replicas": 1}})
        assert await requests.get() == SHOP
        server.change(DEPLOYMENT, "shop", {"status": {"replicas": 1}}, NAMESPACE, "status")
        server.create(DEPLOYMENT, named("other"))
        assert await requests.get() == Request(NAMESPACE, "other")


async def test_whoever_wants_to_is_woken_by_a_status(server: FakeApiServer) -> None:
    """With another predicate."""
    async with woken(server, For(DEPLOYMENT, wakes=itself)) as requests:
        server.create(DEPLOYMENT, named("shop"))
        assert await requests.get() == SHOP
        server.change(DEPLOYMENT, "shop", {"status": {"replicas": 1}}, NAMESPACE, "status")
        assert await requests.get() == SHOP


async def test_a_child_wakes_its_owner(server: FakeApiServer) -> None:
    """Whatever changes in it; others of its kind wake nobody."""
    shop = server.create(DEPLOYMENT, named("shop"))
    async with woken(server, For(DEPLOYMENT), Owns(CONFIGMAP)) as requests:
        assert await requests.get() == SHOP
        server.create(CONFIGMAP, named("foreign"))
        child = server.create(CONFIGMAP, named("child", ownerReferences=[controller_reference(DEPLOYMENT, shop)]))
        assert await requests.get() == SHOP
        assert requests.empty()
        assert is_controlled_by(child, shop)
        assert not is_controlled_by(shop, shop)


async def test_others_wake_what_the_map_says(server: FakeApiServer) -> None:
    """Of the object before the change and after it, each once."""

    def labelled(configmap: Object) -> list[Request]:
        return [Request(NAMESPACE, configmap["metadata"]["labels"]["for"])]

    async with woken(server, For(DEPLOYMENT), Watches(CONFIGMAP, labelled)) as requests:
        server.create(CONFIGMAP, named("settings", labels={"for": "shop"}))
        assert await requests.get() == SHOP
        server.change(CONFIGMAP, "settings", {"metadata": {"labels": {"for": "search"}}}, NAMESPACE)
        assert [await requests.get(), await requests.get()] == [SHOP, Request(NAMESPACE, "search")]


def test_children_are_somebodys() -> None:
    """Owns without For, or with two, does not say whose."""
    runtime = Runtime(FakeApiServer().endpoint, CollectorRegistry(), identity="the-test")

    async def reconcile(request: Request) -> Result:
        raise AssertionError(request)

    for watched in ([Owns(CONFIGMAP)], [For(DEPLOYMENT), For(SERVICE), Owns(CONFIGMAP)]):
        with pytest.raises(ValueError, match=r"^Owns\(configmaps\) takes exactly one For beside it: whose they are$"):
            runtime.control("test", reconcile, *watched)


async def test_a_cache_that_nobody_would_fill_is_an_error(server: FakeApiServer) -> None:
    """Whoever asks for it within a reconcile is told."""
    told: asyncio.Queue[str] = asyncio.Queue()
    runtime = Runtime(server.endpoint, CollectorRegistry(), identity="the-test")

    async def reconcile(request: Request) -> Result:
        assert runtime.caches.of(DEPLOYMENT).get(request.key) is not None
        with pytest.raises(RuntimeError) as error:
            runtime.caches.of(SERVICE)
        told.put_nowait(str(error.value))
        return Result()

    runtime.control("test", reconcile, For(DEPLOYMENT))
    server.create(DEPLOYMENT, named("shop"))
    stop = asyncio.Event()
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        group.create_task(runtime.run(stop))
        assert await told.get() == "services are not watched: caches are asked for before the runtime runs"
        stop.set()
