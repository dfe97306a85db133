"""What policies look up: by a request the first time, from a watch from then on, and never a guess."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from controller.fake_apiserver import FakeApiServer
from kube.client import Client
from kube.errors import ServerError, Unreachable
from kube.resource import Resource
from tests.webhook.server.conftest import answered
from webhook.engine import Attributes
from webhook.server.look_ups import BUDGET, INGRESS, LIMIT_RANGE, SCALED, WORKLOADS, LookUps
from webhook.server.namespaces import NAMESPACE

DEPLOYMENT = SCALED["apps", "deployments"]
LIMITS = {"limits": [{"type": "Container", "max": {"cpu": "1"}}]}


def request(namespace: str = "shop", *, resource: str = "pods", group: str = "", subresource: str = "") -> Attributes:
    """Make a request about something named it."""
    kind = "Scale" if subresource else "Pod"
    return Attributes("u", "UPDATE", group, "v1", kind, group, resource, subresource, name="it", namespace=namespace)


@pytest.fixture
async def server() -> AsyncIterator[FakeApiServer]:
    """An API server with a LimitRange and an Ingress in each of two namespaces, and a Deployment."""
    async with FakeApiServer() as fake:
        for name in ("shop", "lab"):
            fake.create(NAMESPACE, {"metadata": {"name": name}})
            fake.create(LIMIT_RANGE, {"metadata": {"name": f"{name}-limits", "namespace": name}, "spec": LIMITS})
            rules = [{"host": f"{name}.example.com"}, {}]
            fake.create(INGRESS, {"metadata": {"name": "front", "namespace": name}, "spec": {"rules": rules}})
        fake.create(DEPLOYMENT, {"metadata": {"name": "it", "namespace": "shop"}, "spec": {"replicas": 3}})
        yield fake


@pytest.fixture
async def look_ups(server: FakeApiServer) -> AsyncIterator[LookUps]:
    """Look-ups whose watches run."""
    async with Client(server.endpoint) as client:
        made = LookUps(client)
        running = asyncio.create_task(made.run())
        yield made
        running.cancel()


def asked(server: FakeApiServer, plural: str) -> list[bool]:
    """Return the requests for a resource so far: whether each was a watch."""
    return [each.watch for each in server.requests.log if each.path.endswith(f"/{plural}")]


async def synced(look_ups: LookUps, resource: object) -> None:
    """Wait until the watch of a resource has everything."""
    async with asyncio.timeout(10):
        await look_ups._stores[resource].synced.wait()


async def test_nothing_is_watched_that_nobody_needs(server, look_ups):
    """No policy that needs it, no watch and no memory for it."""
    await asyncio.sleep(0)
    assert server.requests.log == []


async def test_limit_ranges_are_those_of_the_namespace(server, look_ups):
    """Listed the first time, then from one watch, with what changed since."""
    assert [each["metadata"]["name"] for each in await answered(look_ups.limit_ranges(request()))] == ["shop-limits"]
    await synced(look_ups, LIMIT_RANGE)
    server.requests.clear()
    for namespace in ("shop", "lab"):
        (found,) = await answered(look_ups.limit_ranges(request(namespace)))
        assert (found["metadata"]["name"], found["spec"]) == (f"{namespace}-limits", LIMITS)
    assert await answered(look_ups.limit_ranges(request("elsewhere"))) == []
    assert await answered(look_ups.limit_ranges(request("sho"))) == []
    assert server.requests.log == []


async def test_what_changes_is_seen(server, look_ups):
    """A LimitRange that is new, and one that is gone."""
    await answered(look_ups.limit_ranges(request()))
    await synced(look_ups, LIMIT_RANGE)
    server.create(LIMIT_RANGE, {"metadata": {"name": "more", "namespace": "shop"}})
    server.delete(LIMIT_RANGE, "shop-limits", "shop")
    async with asyncio.timeout(10):
        while [each["metadata"]["name"] for each in await answered(look_ups.limit_ranges(request()))] != ["more"]:  # noqa: ASYNC110
            await asyncio.sleep(0.002)  # nothing else tells of it
    assert asked(server, "limitranges").count(True) == 1


async def test_budgets_and_workloads_are_those_of_the_namespace(server, look_ups):
    """Whatever runs replicas of a template, of every kind; a WebApp does so by its Deployment."""
    server.create(BUDGET, {"metadata": {"name": "keep", "namespace": "shop"}})
    server.create(BUDGET, {"metadata": {"name": "keep", "namespace": "lab"}})
    server.create(SCALED["apps", "statefulsets"], {"metadata": {"name": "db", "namespace": "shop"}})
    server.create(SCALED["apps", "replicasets"], {"metadata": {"name": "it-1", "namespace": "lab"}})
    for _ in range(2):  # by list, and from the watch
        assert [each["metadata"]["name"] for each in await answered(look_ups.disruption_budgets(request()))] == ["keep"]
        found = [(each["kind"], each["metadata"]["name"]) for each in await answered(look_ups.workloads(request()))]
        assert found == [("Deployment", "it"), ("StatefulSet", "db")]
        for resource in (BUDGET, *WORKLOADS):
            await synced(look_ups, resource)


async def test_ingresses_are_everybodys_in_short(server, look_ups):
    """Of all namespaces, with nothing but name and hosts, by list and from the watch alike."""
    everyones = [
        {"namespace": "lab", "name": "front", "hosts": ["lab.example.com"]},
        {"namespace": "shop", "name": "front", "hosts": ["shop.example.com"]},
    ]
    assert await answered(look_ups.ingresses(request())) == everyones
    await synced(look_ups, INGRESS)
    assert await answered(look_ups.ingresses(request("lab"))) == everyones


async def test_what_is_scaled_is_read_as_it_is_now(server, look_ups):
    """The parent of a /scale; of what is gone the API server will say so itself."""
    scaling = request(group="apps", resource="deployments", subresource="scale")
    assert (await look_ups.parent(scaling))["spec"] == {"replicas": 3}
    server.delete(DEPLOYMENT, "it", "shop")
    assert await look_ups.parent(scaling) == {}


async def test_the_pod_of_a_session_is_read(server, look_ups):
    """Its labels are what an objectSelector selects exec and attach by."""
    session = request(resource="pods", subresource="exec")
    assert await look_ups.parent(session) == {}
    assert [each.path for each in server.requests.log] == ["/api/v1/namespaces/shop/pods/it"]


async def test_what_an_added_kind_scales_is_read_too(server):
    """Kinds of installed packages may have a /scale like ours."""
    gadgets = Resource("things.example", "v1", "deployments", "Gadget")
    scaling = request(group="things.example", resource="deployments", subresource="scale")
    async with Client(server.endpoint) as client:
        assert await LookUps(client, [gadgets]).parent(scaling) == {}
        assert await LookUps(client).parent(scaling) == {}
    assert [each.path for each in server.requests.log] == ["/apis/things.example/v1/namespaces/shop/deployments/it"]


async def test_what_the_api_server_has_is_asked_now_and_then(server, monkeypatch):
    """Of what it may be without; once for a while, and anew after it."""
    gadgets = Resource("things.example", "v1", "gadgets", "Gadget")
    async with Client(server.endpoint) as client:
        of = LookUps(client, (), [DEPLOYMENT, gadgets])
        assert await answered(of.served(request())) == await answered(of.served(request())) == {("apps", "deployments")}
        asked_once = len(server.requests.log)
        monkeypatch.setattr(of, "_ask_again", 0.0)
        assert await answered(of.served(request())) == {("apps", "deployments")}
    assert (asked_once, len(server.requests.log)) == (3, 6)


@pytest.mark.parametrize(
    "other",
    [
        request(group="apps", resource="deployments"),
        request(resource="pods", subresource="resize"),
        request(group="x.io", resource="things", subresource="scale"),
    ],
    ids=["the object itself", "another subresource", "a kind that is not known"],
)
async def test_nothing_is_asked_where_nothing_known_is_scaled(server, look_ups, other):
    """No request is made in vain."""
    assert await look_ups.parent(other) == {}
    assert server.requests.log == []


async def test_an_api_server_that_fails_is_an_error(server, look_ups):
    """Whoever asks decides what that means: nothing found is something else."""
    server.fail(100, 500)
    with pytest.raises(ServerError):
        await answered(look_ups.limit_ranges(request()))
    with pytest.raises(ServerError):
        await look_ups.parent(request(group="apps", resource="deployments", subresource="scale"))


async def test_what_was_read_is_known_while_the_api_server_is_away(server, look_ups):
    """The last that was heard is better than nothing to judge by; what is read anew is an error."""
    await answered(look_ups.limit_ranges(request()))
    await synced(look_ups, LIMIT_RANGE)
    await server.stop()
    assert len(await answered(look_ups.limit_ranges(request()))) == 1
    with pytest.raises(Unreachable):
        await look_ups.parent(request(group="apps", resource="deployments", subresource="scale"))
