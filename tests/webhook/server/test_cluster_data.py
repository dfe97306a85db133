"""Look-ups of policies: the first by a request, later ones from a watch, never a guess."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gatewright.testing.fake_apiserver import FakeApiServer
from kube.client import Client
from kube.endpoint import Endpoint
from kube.errors import ApiError, ServerError, Unreachable
from kube.resource import Resource
from tests.kube.servers import answering
from tests.waiting import WITHIN, eventually
from webhook.engine import Attributes
from webhook.engine.look_ups import BUDGET, INGRESS, LIMIT_RANGE, SCALERS, WORKLOADS
from webhook.review import attributes
from webhook.server.cluster_data import NAMESPACES, LookUps

_, DEPLOYMENT, REPLICA_SET, STATEFUL_SET = WORKLOADS
HORIZONTAL_POD_AUTOSCALER, SCALED_OBJECT = SCALERS
LIMITS = {"limits": [{"type": "Container", "max": {"cpu": "1"}}]}


def request(
    namespace: str = "shop", *, resource: str = "pods", group: str = "", subresource: str = ""
) -> Attributes:
    """Make a request about something named it."""
    kind = "Scale" if subresource else "Pod"
    return Attributes(
        "u",
        "UPDATE",
        group,
        "v1",
        kind,
        group,
        resource,
        subresource,
        name="it",
        namespace=namespace,
    )


@pytest.fixture
async def server() -> AsyncIterator[FakeApiServer]:
    """An API server with a LimitRange and an Ingress in each of two namespaces, and a Deployment."""
    async with FakeApiServer() as fake:
        for name in ("shop", "lab"):
            fake.create(NAMESPACES, {"metadata": {"name": name}})
            fake.create(
                LIMIT_RANGE,
                {"metadata": {"name": f"{name}-limits", "namespace": name}, "spec": LIMITS},
            )
            rules = [{"host": f"{name}.example.com"}, {}]
            fake.create(
                INGRESS,
                {"metadata": {"name": "front", "namespace": name}, "spec": {"rules": rules}},
            )
        fake.create(
            DEPLOYMENT, {"metadata": {"name": "it", "namespace": "shop"}, "spec": {"replicas": 3}}
        )
        yield fake


@pytest.fixture
async def look_ups(server: FakeApiServer) -> AsyncIterator[LookUps]:
    """Look-ups whose watches run."""
    async with Client(server.endpoint) as client:
        made = LookUps(client)
        running = asyncio.create_task(made.run())
        yield made
        running.cancel()
        await asyncio.wait([running])


def asked(server: FakeApiServer, plural: str) -> list[bool]:
    """Return the requests for a resource so far, and whether each was a watch."""
    return [each.watch for each in server.requests.log if each.path.endswith(f"/{plural}")]


def sent(server: FakeApiServer) -> list[str]:
    """Return the paths of all requests so far, except those of the watch of Namespaces."""
    return [each.path for each in server.requests.log if not each.path.endswith("/namespaces")]


async def names(look_ups: LookUps, name: str) -> list[str]:
    """Return the names of the objects that a look-up finds."""
    return [each["metadata"]["name"] for each in await look_ups.objects(name, request())]


async def synced(look_ups: LookUps, resource: object) -> None:
    """Wait until the watch of a resource is synced."""
    async with asyncio.timeout(WITHIN):
        await look_ups._stores[resource].synced.wait()


async def test_unneeded_resources_are_not_watched(server, look_ups):
    """Without a policy that needs it, a resource takes no watch and no memory."""
    await asyncio.sleep(0)
    assert sent(server) == []


async def test_kinds_that_are_not_served_have_no_objects(server, look_ups):
    """Without an operator, its objects are none: by a list, and once the watch knows it."""
    assert await names(look_ups, "autoscalers") == []
    await eventually(lambda: look_ups._stores[SCALED_OBJECT].absent)
    await synced(look_ups, HORIZONTAL_POD_AUTOSCALER)
    server.requests.clear()
    assert await names(look_ups, "autoscalers") == []
    assert sent(server) == []


async def test_limit_ranges_are_those_of_the_namespace(server, look_ups):
    """The first request lists them; later ones use one watch."""
    assert await names(look_ups, "limit_ranges") == ["shop-limits"]
    await synced(look_ups, LIMIT_RANGE)
    server.requests.clear()
    for namespace in ("shop", "lab"):
        (found,) = await look_ups.objects("limit_ranges", request(namespace))
        assert (found["metadata"]["name"], found["spec"]) == (f"{namespace}-limits", LIMITS)
    assert list(await look_ups.objects("limit_ranges", request("elsewhere"))) == []
    assert list(await look_ups.objects("limit_ranges", request("sho"))) == []
    assert sent(server) == []


OPENAPI = json.dumps(
    {
        "components": {
            "schemas": {
                "org.example.v1.Gadget": {
                    "type": "object",
                    "properties": {"size": {"type": "integer"}},
                    "x-kubernetes-group-version-kind": [
                        {"group": "example.org", "version": "v1", "kind": "Gadget"}
                    ],
                }
            }
        }
    }
).encode()


def written(*kinds: str, filler: str = "") -> Attributes:
    """Return the attributes of a review that creates a policy object with a rule."""
    spec = {"match": {"any": [{"kinds": kinds}]}, "validations": [{"expression": "true"}]}
    kind = {"group": "gatewright.io", "version": "v1alpha1", "kind": "ClusterAdmissionPolicy"}
    policies = {**kind, "resource": "clusteradmissionpolicies"}
    del policies["kind"]
    object = {"kind": kind["kind"], "metadata": {"name": filler}, "spec": spec}
    about = {"uid": "u", "operation": "CREATE", "kind": kind, "resource": policies}
    body = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {**about, "object": object},
    }
    return attributes(json.dumps(body).encode())


async def test_types_of_custom_kinds_are_those_that_the_api_server_serves():
    """A policy object is checked by the kinds that it names; one that is too large asks nothing."""
    size = b"Content-Length: %d\r\n\r\n" % len(OPENAPI)
    found = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" + size + OPENAPI
    missing = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
    async with answering([found], [found], [missing]) as server:
        async with Client(Endpoint(server.url)) as client:
            look_ups = LookUps(client)
            for filler in ("", "x" * 40_000):  # decoded before, and after
                about = written("example.org/v1/Gadget", filler=filler)
                types = (await look_ups.schemas(about))()
                assert types.kinds == {"example.org/v1/Gadget": "example.org/v1/Gadget"}
            types = (await look_ups.schemas(written("other.org/v1/Gadget")))()
            assert types.kinds == {}
            for about in (written("Deployment"), written("a.org/v1/A", filler="x" * 70_000)):
                assert (await look_ups.schemas(about))().kinds == {}
        asked = [request.split()[1].decode() for _, request in server.requests]
    gadget = "/openapi/v3/apis/example.org/v1"
    assert asked == [gadget, gadget, "/openapi/v3/apis/other.org/v1"]


async def test_changes_are_visible(server, look_ups):
    """A new and a deleted LimitRange are seen."""
    await look_ups.objects("limit_ranges", request())
    await synced(look_ups, LIMIT_RANGE)
    server.create(LIMIT_RANGE, {"metadata": {"name": "more", "namespace": "shop"}})
    server.delete(LIMIT_RANGE, "shop-limits", "shop")

    async def are_visible() -> bool:
        return await names(look_ups, "limit_ranges") == ["more"]

    await eventually(are_visible)
    assert asked(server, "limitranges").count(True) == 1


async def test_budgets_and_workloads_are_those_of_the_namespace(server, look_ups):
    """Every workload kind counts; a WebApp counts by its Deployment."""
    server.create(BUDGET, {"metadata": {"name": "keep", "namespace": "shop"}})
    server.create(BUDGET, {"metadata": {"name": "keep", "namespace": "lab"}})
    server.create(STATEFUL_SET, {"metadata": {"name": "db", "namespace": "shop"}})
    server.create(REPLICA_SET, {"metadata": {"name": "it-1", "namespace": "lab"}})
    for _ in range(2):  # by list, and from the watch
        assert [
            object["metadata"]["name"]
            for object in await look_ups.objects("disruption_budgets", request())
        ] == ["keep"]
        found = [
            (object["kind"], object["metadata"]["name"])
            for object in await look_ups.objects("workloads", request())
        ]
        assert found == [("Deployment", "it"), ("StatefulSet", "db")]
        for resource in (BUDGET, *WORKLOADS):
            await synced(look_ups, resource)


async def test_ingresses_of_all_namespaces_have_names_and_hosts_only(server, look_ups):
    """Both listed and watched Ingresses are reduced to names and hosts."""
    everyones = [
        {"namespace": "lab", "name": "front", "hosts": ["lab.example.com"]},
        {"namespace": "shop", "name": "front", "hosts": ["shop.example.com"]},
    ]
    assert list(await look_ups.objects("ingresses", request())) == everyones
    await synced(look_ups, INGRESS)
    assert list(await look_ups.objects("ingresses", request("lab"))) == everyones


async def test_the_scaled_object_is_read_live(server, look_ups):
    """It is the parent of a /scale; if it is gone, the API server reports that itself."""
    scaling = request(group="apps", resource="deployments", subresource="scale")
    assert (await look_ups.parent(scaling))["spec"] == {"replicas": 3}
    server.delete(DEPLOYMENT, "it", "shop")
    assert await look_ups.parent(scaling) == {}


async def test_the_pod_of_a_session_is_read(server, look_ups):
    """An objectSelector selects exec, attach and eviction by its labels."""
    for subresource in ("exec", "eviction"):
        assert await look_ups.parent(request(resource="pods", subresource=subresource)) == {}
    assert sent(server) == ["/api/v1/namespaces/shop/pods/it"] * 2


async def test_the_scaled_object_of_an_added_kind_is_read(server):
    """Kinds of installed packages may have /scale."""
    gadgets = Resource("things.example", "v1", "deployments", "Gadget")
    scaling = request(group="things.example", resource="deployments", subresource="scale")
    async with Client(server.endpoint) as client:
        assert await LookUps(client, [gadgets]).parent(scaling) == {}
    assert sent(server) == ["/apis/things.example/v1/namespaces/shop/deployments/it"]


async def test_optional_apis_are_discovered_periodically(server, monkeypatch):
    """The result is cached for a while, then refreshed."""
    gadgets = Resource("things.example", "v1", "gadgets", "Gadget")
    async with Client(server.endpoint) as client:
        of = LookUps(client, (), [DEPLOYMENT, gadgets])
        assert (
            await of.served_resources(request())
            == await of.served_resources(request())
            == {("apps", "deployments")}
        )
        asked_once = len(sent(server))
        monkeypatch.setattr(of, "_ask_again", 0.0)
        assert await of.served_resources(request()) == {("apps", "deployments")}
    assert (asked_once, len(sent(server))) == (3, 6)


@pytest.mark.parametrize(
    "other",
    [
        request(group="apps", resource="deployments"),
        request(resource="pods", subresource="resize"),
    ],
    ids=["the object itself", "another subresource"],
)
async def test_without_a_scaled_object_nothing_is_requested(server, look_ups, other):
    """An object has no parent, nor has a subresource that is the object itself."""
    assert await look_ups.parent(other) == {}
    assert sent(server) == []


async def test_the_parent_of_an_unknown_kind_is_an_error(server, look_ups):
    """Without the parent's labels, a policy must not treat the subresource as unselected."""
    with pytest.raises(ApiError, match="the webhook does not read things"):
        await look_ups.parent(request(group="x.io", resource="things", subresource="scale"))
    assert sent(server) == []


async def test_an_api_server_that_fails_is_an_error(server, look_ups):
    """The caller distinguishes an error from an empty result."""
    server.fail(100, 500)
    with pytest.raises(ServerError):
        await look_ups.objects("limit_ranges", request())
    with pytest.raises(ServerError):
        await look_ups.parent(request(group="apps", resource="deployments", subresource="scale"))


async def test_cached_objects_survive_an_outage(server, look_ups):
    """Watched objects stay available; live reads are errors."""
    await look_ups.objects("limit_ranges", request())
    await synced(look_ups, LIMIT_RANGE)
    await server.stop()
    assert len(list(await look_ups.objects("limit_ranges", request()))) == 1
    with pytest.raises(Unreachable):
        await look_ups.parent(request(group="apps", resource="deployments", subresource="scale"))


def ok(answer: dict[str, Any]) -> bytes:
    """Return an answer with status 200."""
    body = json.dumps(answer).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (
        len(body),
        body,
    )


@pytest.mark.parametrize(
    "answer",
    [
        {"kind": "List", "items": []},
        {},
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "another"}},
        {"apiVersion": "v1", "kind": "Namespace", "metadata": ["shop"]},
    ],
    ids=["a List", "nothing", "another one", "malformed"],
)
async def test_an_answer_about_something_else_is_an_error(answer):
    """It proves neither that the namespace has no labels, nor that it exists."""
    async with answering(*[[ok(answer)]] * 2) as server, Client(Endpoint(server.url)) as client:
        for look_up in (LookUps(client).namespace_labels, LookUps(client).namespace):
            with pytest.raises(ServerError, match="the response is not the Namespace shop"):
                await look_up(request())


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (
            {"kind": "List", "metadata": {}, "items": []},
            'the response is no list of limitranges: kind "List"',
        ),
        (
            {"kind": "Status", "metadata": {}},
            'the response is no list of limitranges: kind "Status"',
        ),
        ({}, "the response is not a List"),
    ],
)
async def test_a_list_of_something_else_is_an_error(answer, reason):
    """It does not prove that there are no objects."""
    async with answering([ok(answer)]) as server, Client(Endpoint(server.url)) as client:
        with pytest.raises(ServerError, match=reason):
            await LookUps(client).objects("limit_ranges", request())


async def test_the_types_of_the_reviewed_kind_are_read_once_a_minute():
    """A mutation of it merges by them; those of Kubernetes' own kinds are known."""
    size = b"Content-Length: %d\r\n\r\n" % len(OPENAPI)
    found = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" + size + OPENAPI
    gadget = request(group="example.org", resource="gadgets")._replace(kind="Gadget")
    async with answering([found]) as server, Client(Endpoint(server.url)) as client:
        look_ups = LookUps(client)
        assert (await look_ups.schemas(request()))().types == {}
        for _ in range(2):
            types = (await look_ups.schemas(gadget))().types
            assert types["example.org/v1/Gadget"]["size"] == ":integer"
        assert len(server.requests) == 1
