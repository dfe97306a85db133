"""A Watch keeps its Store correct whatever the API server does."""

import asyncio
import base64
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from copy import deepcopy
from typing import Any
from urllib.parse import urlsplit

import orjson
import pytest

import kube.client
import kube.watch
from gatewright.testing.fake_apiserver import FakeApiServer
from gatewright.testing.fake_apiserver.requests import Requests
from kube.client import Client
from kube.credentials import load
from kube.errors import ServerError
from kube.resource import Resource, definition_of
from kube.store import Change, Store
from kube.watch import Watch, event_in
from tests.controlplane.plane import ControlPlane
from tests.fakes.proxy import Proxy
from tests.kube.conftest import CONFIG_MAP, CRD, GIZMO, GIZMO_CRD, NAMESPACE, Api, prepared, type_of
from tests.waiting import WITHIN, eventually

WELL_TYPED = ("name", "namespace", "uid", "creationTimestamp")


class Following:
    """A running Watch, its notifications, and its pauses after failures (which are shortened)."""

    def __init__(self, client: Client, resource: Resource, **options: Any) -> None:
        self.store = Store(resource)
        self.changes: asyncio.Queue[Change] = asyncio.Queue()
        self.delays: list[float] = []
        self._failed = asyncio.Event()
        options = {"sleep": self._sleep, "uniform": lambda low, high: high} | options
        self.watch = Watch(client, resource, self.store, **options)
        self.store.subscribers.append(self.changes.put_nowait)

    async def _sleep(self, seconds: float) -> None:
        self.delays.append(seconds)
        self._failed.set()
        await asyncio.sleep(0.01)

    async def next(self) -> tuple[str, str]:
        """Return kind and key of the next change."""
        change = await asyncio.wait_for(self.changes.get(), WITHIN)
        return (type_of(change), change.key)

    async def failures(self, number: int) -> None:
        """Return after this many back-off waits."""
        while len(self.delays) < number:
            self._failed.clear()
            await asyncio.wait_for(self._failed.wait(), WITHIN)

    async def synced(self) -> None:
        """Return when the store has all that existed at the start."""
        await asyncio.wait_for(self.store.synced.wait(), WITHIN)


@pytest.fixture
async def server() -> AsyncIterator[FakeApiServer]:
    """A fake API server."""
    async with FakeApiServer() as server:
        yield server


@pytest.fixture
async def client(server: FakeApiServer) -> AsyncIterator[Client]:
    """A client of it."""
    async with Client(server.endpoint) as client:
        yield client


@asynccontextmanager
async def following(
    client: Client, resource: Resource = CONFIG_MAP, **options: Any
) -> AsyncIterator[Following]:
    """Run a Watch."""
    follower = Following(client, resource, **options)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(follower.watch.run())
        yield follower
        task.cancel()


def put(server: FakeApiServer, name: str, **data: str) -> dict[str, Any]:
    """Create a ConfigMap by another client."""
    return server.create(
        CONFIG_MAP, {"metadata": {"name": name, "namespace": "default"}, "data": data}
    )


def watching(number: int) -> Any:
    """Return whether this many watches have been opened."""
    return lambda requests: sum(each.code == 200 for each in requests.watches) >= number


def requested(requests: Requests) -> list[str]:
    """Return the lists, as "list", and the version that each watch went on from."""
    return [each.query["resourceVersion"] if each.watch else "list" for each in requests.log]


async def test_the_initial_list_comes_first(server: FakeApiServer, client: Client) -> None:
    """At the start, all objects are added as initial, then the store is synced at the version of the list."""
    put(server, "one")
    last = put(server, "two")
    async with following(client) as follower:
        await follower.synced()
        assert follower.store.keys() == ["default/one", "default/two"]
        assert follower.store.resource_version >= int(last["metadata"]["resourceVersion"])
        assert follower.watch.last_heard is not None
    assert [follower.changes.get_nowait().initial for _ in range(2)] == [True, True]


async def test_changes_follow(server: FakeApiServer, client: Client) -> None:
    """Later changes are reported with the old and new entry, once the store has them."""
    async with following(client) as follower:
        await follower.synced()
        put(server, "one", a="1")
        assert await follower.next() == ("added", "default/one")
        changed = server.change(CONFIG_MAP, "one", {"data": {"a": "2"}}, "default")
        change = await follower.changes.get()
        assert not change.initial
        assert change.old
        assert change.new
        assert (change.old.object["data"], change.new.object["data"]) == ({"a": "1"}, {"a": "2"})
        assert follower.store.resource_version == int(changed["metadata"]["resourceVersion"])
        server.delete(CONFIG_MAP, "one", "default")
        assert await follower.next() == ("deleted", "default/one")
        assert follower.store.get("default/one") is None


async def test_a_store_has_the_version_of_each_event_it_delivers(
    server: FakeApiServer, client: Client
) -> None:
    """When an event or a deletion found by a list is delivered, the store already has its version."""
    reached: list[tuple[str, int]] = []
    async with following(client) as follower:
        store = follower.store
        store.subscribers.append(
            lambda change: reached.append((type_of(change), store.resource_version))
        )
        await follower.synced()
        await server.requests.until(watching(1))
        made = put(server, "one")
        await follower.next()
        server.delete(CONFIG_MAP, "one", "default")
        await follower.next()
        put(server, "two")
        await follower.next()
        for watcher in server.watches.open:
            watcher.silent = True
        server.delete(CONFIG_MAP, "two", "default")
        server.expire_watches()
        await follower.next()
    first = int(made["metadata"]["resourceVersion"])
    assert reached == [
        ("added", first),
        ("deleted", first + 1),
        ("added", first + 2),
        ("deleted", first + 3),
    ]


async def test_bookmarks_move_the_version(server: FakeApiServer, client: Client) -> None:
    """A bookmark advances the version without changes of objects; a broken watch continues from it."""
    async with following(client) as follower:
        await server.requests.until(watching(1))
        namespace = server.create(NAMESPACE, {"metadata": {"name": "other"}})
        server.bookmark()
        put(server, "one")
        await follower.next()
        server.cut_watches()
        await server.requests.until(watching(2))
    assert int(requested(server.requests)[-1]) > int(namespace["metadata"]["resourceVersion"])


@pytest.mark.parametrize("end", ["close_watches", "cut_watches"])
async def test_a_broken_watch_continues_where_it_was(
    server: FakeApiServer, client: Client, end: str
) -> None:
    """Whether it ends properly or within a line, nothing is listed again, and no event is missed."""
    async with following(client) as follower:
        await follower.synced()
        before = str(follower.store.resource_version)
        last = put(server, "one")
        await follower.next()
        getattr(server, end)()
        put(server, "two")
        assert await follower.next() == ("added", "default/two")
    version = last["metadata"]["resourceVersion"]
    assert requested(server.requests) == ["list", before, version]


async def test_the_end_of_a_custom_resources_watch_causes_a_new_list(
    server: FakeApiServer, client: Client
) -> None:
    """The CRD may have changed, and what this watch delivered was read by the older schema."""
    server.create(CRD, deepcopy(GIZMO_CRD))
    async with following(client, GIZMO) as follower:
        await follower.synced()
        await server.requests.until(watching(1))
        server.create(GIZMO, {"metadata": {"name": "one", "namespace": "default"}})
        await follower.next()
        server.close_watches()
        await server.requests.until(watching(2))
    assert [each == "list" for each in requested(server.requests)] == [True, False, True, False]


@pytest.mark.parametrize("way", ["status", "event"])
async def test_an_expired_version_causes_a_new_list(
    server: FakeApiServer, client: Client, caplog: pytest.LogCaptureFixture, way: str
) -> None:
    """After a 410, as a status or in the stream, missing objects are deleted, and a new uid is a new object.

    This is normal, so there is no warning.
    """
    caplog.set_level(logging.INFO, "gatewright.kube.watch")
    for name in ("kept", "deleted", "again"):
        put(server, name)
    async with following(client) as follower:
        await follower.synced()
        await server.requests.until(watching(1))
        [await follower.next() for _ in range(3)]
        server.watches.silent = True
        if way == "status":
            server.fail(1, 410, watch=True)
        for watcher in server.watches.open:
            watcher.silent = True
        server.delete(CONFIG_MAP, "deleted", "default")
        server.delete(CONFIG_MAP, "again", "default")
        put(server, "again")
        put(server, "new")
        server.watches.silent = False
        server.storage.compact()
        server.close_watches()
        told = [await follower.next() for _ in range(4)]
        assert told[:2] == [("deleted", "default/again"), ("added", "default/again")]
        assert sorted(told[2:]) == [("added", "default/new"), ("deleted", "default/deleted")]
    assert requested(server.requests)[-2] == "list"
    expired = [each.levelname for each in caplog.records if "410 Expired" in each.getMessage()]
    assert expired == ["INFO"]


async def test_a_list_that_changes_too_fast_is_read_at_once(
    server: FakeApiServer, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an expired continue token, the next list is read without pages; later lists have pages again."""
    monkeypatch.setattr(kube.client, "PAGE", 1)
    put(server, "one")
    put(server, "two")
    server.fail(1, 410, method="GET", path="configmaps", query="continue")
    async with following(client) as follower:
        await follower.synced()
        await server.requests.until(watching(1))
        server.expire_watches()
        await server.requests.until(watching(2))
    assert follower.store.keys() == ["default/one", "default/two"]
    lists = [each.query for each in server.requests.log if not each.watch]
    assert [each.get("limit") for each in lists] == ["1", "1", None, "1", "1"]


@pytest.mark.parametrize(
    "answer",
    [
        {"code": 503},
        {"code": 502, "garbage": "<html>"},
        {"code": 200, "garbage": "<html>"},
        {"code": 200, "garbage": "[]\n"},
        {"code": 200, "garbage": '{"type":"ADDED","object":{}}\n'},
        {"code": 200, "garbage": '{"type":"ERROR","object":{"kind":"Status","code":500}}\n'},
    ],
)
async def test_failures_are_waited_out_ever_longer(
    server: FakeApiServer, client: Client, answer: Any
) -> None:
    """A response that is not of the API causes no event; the pauses double up to 30 s."""
    server.fail(7, **answer, watch=True)
    async with following(client) as follower:
        await follower.failures(7)
        put(server, "one")
        assert await follower.next() == ("added", "default/one")
        assert follower.delays == [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30]
        assert follower.watch.problem is None


@pytest.mark.parametrize(
    ("asked", "waited"), [("7", 7), ("0", 0.8), ("86400", 60), ("soon", 0.8), ("-5", 0.8)]
)
async def test_retry_after_delays_the_next_watch(
    server: FakeApiServer, client: Client, asked: str, waited: float
) -> None:
    """Retry-After counts if it is longer than the client's own pause, up to a minute."""
    server.fail(1, 429, watch=True, retry_after=asked)
    async with following(client) as follower:
        await follower.failures(1)
    assert follower.delays == [waited]


async def test_a_watch_that_ends_at_once_is_a_failure(
    server: FakeApiServer, client: Client
) -> None:
    """A server that closes every watch immediately does not cause a hot loop."""
    async with following(client) as follower:
        await server.requests.until(watching(1))
        for number in range(2, 5):
            server.close_watches()
            await server.requests.until(watching(number))
    assert follower.delays == [0.8, 1.6, 3.2]


async def test_a_resource_that_is_gone_has_no_objects(
    server: FakeApiServer, client: Client
) -> None:
    """When its CRD is deleted, all objects are deleted; when the CRD comes back, objects are listed again."""
    gizmo = {"metadata": {"name": "one", "namespace": "default"}, "spec": {"size": 1}}
    server.create(CRD, deepcopy(GIZMO_CRD))
    server.create(GIZMO, gizmo)
    async with following(client, GIZMO) as follower:
        served: asyncio.Queue[bool] = asyncio.Queue()
        follower.store.on_served.append(lambda: served.put_nowait(not follower.store.absent))
        await follower.synced()
        await server.requests.until(watching(1))
        assert await follower.next() == ("added", "default/one")
        for watcher in server.watches.open:
            watcher.silent = True
        server.delete(CRD, GIZMO_CRD["metadata"]["name"])
        server.close_watches()
        assert await follower.next() == ("deleted", "default/one")
        assert await served.get() is False
        server.create(CRD, deepcopy(GIZMO_CRD))
        server.create(GIZMO, gizmo)
        assert await follower.next() == ("added", "default/one")
        assert await served.get() is True
        assert served.empty()


@pytest.mark.parametrize("discovery", ["good", "HTML", "none"])
async def test_a_404_alone_empties_nothing(
    server: FakeApiServer, client: Client, discovery: str
) -> None:
    """A load balancer's 404 on a watch deletes no object unless discovery says that the resource is gone."""
    put(server, "one")
    async with following(client) as follower:
        await follower.synced()
        await server.requests.until(watching(1))
        assert await follower.next() == ("added", "default/one")
        server.fail(2, 404, watch=True, garbage="<html>not here</html>")
        if discovery == "HTML":
            server.fail(3, 404, watch=False, garbage="<html>not here</html>")
        if discovery == "none":
            server.fail(1, 503, watch=False)
        server.close_watches()
        put(server, "two")
        assert await follower.next() == ("added", "default/two")
        assert follower.store.keys() == ["default/one", "default/two"]
        assert not follower.store.absent


async def test_a_watch_that_ends_without_an_event_causes_a_new_list(
    server: FakeApiServer, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that does not even send a bookmark may have an older state, so that our version is in its future."""
    monkeypatch.setattr(kube.watch, "SHORT_WATCH", 0)
    monkeypatch.setattr(kube.watch, "SILENT_WATCH", 0)
    monkeypatch.setattr(kube.watch, "RELIST_INTERVAL", 0)
    async with following(client):
        await server.requests.until(watching(1))
        server.close_watches()
        await server.requests.until(watching(2))
    version = str(server.storage.version)
    assert requested(server.requests) == ["list", version, "list", version]


async def test_an_absent_server_is_tried_every_few_seconds(
    server: FakeApiServer, client: Client
) -> None:
    """While the server is unreachable the pauses stay short; afterwards the watch resumes at its version."""
    async with following(client) as follower:
        await follower.synced()
        last = put(server, "one")
        await follower.next()
        await server.stop()
        await follower.failures(5)
        assert max(follower.delays) == 5
        assert (
            follower.watch.problem
            == f"cannot reach the API server at {server.url}: connection refused"
        )
        put(server, "two")
        await server.start()
        assert await follower.next() == ("added", "default/two")
        assert follower.watch.problem is None
    assert requested(server.requests)[-1] == last["metadata"]["resourceVersion"]


async def test_a_problem_is_named_and_logged_once(
    server: FakeApiServer, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    """Lost rights appear in `problem` for readiness.

    There is one warning for all retries, and one line at the end.
    """
    caplog.set_level(logging.INFO, "gatewright.kube.watch")
    server.fail(4, 403, watch=True)
    async with following(client) as follower:
        await server.requests.until(lambda requests: len(requests.watches) == 3)
        assert "403 Forbidden" in (follower.watch.problem or "")
        put(server, "one")
        await follower.next()
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    assert vars(caplog.records[0])["fields"]["resource"] == "configmaps"


@pytest.mark.parametrize(("optional", "level"), [(True, "INFO"), (False, "WARNING")])
async def test_an_optional_resource_that_is_not_installed_is_no_warning(
    client: Client, caplog: pytest.LogCaptureFixture, optional: bool, level: str
) -> None:
    """One line, however often it is looked for."""
    caplog.set_level(logging.INFO, "gatewright.kube.watch")
    absent = Resource("monitoring.coreos.com", "v1", "servicemonitors", "ServiceMonitor")
    async with following(client, resource=absent, optional=optional) as follower:
        await eventually(lambda: follower.watch.problem is not None)
    message = 'cannot watch servicemonitors: 404 NotFound: servicemonitors "" not found'
    assert [(each.levelname, each.getMessage()) for each in caplog.records] == [(level, message)]


@pytest.mark.parametrize("is_installed", [False, True])
async def test_an_absent_resource_is_listed_again_once_its_crd_serves_it(
    server: FakeApiServer, client: Client, is_installed: bool
) -> None:
    """Until then there is one watch of the CRD, by its name, and no request.

    The CRD does not exist, or does not serve the version.
    """
    unserved = deepcopy(GIZMO_CRD)
    unserved["spec"]["versions"][0]["served"] = False
    if is_installed:
        server.create(CRD, unserved)
    async with following(client, resource=GIZMO, optional=True) as follower:
        await server.requests.until(watching(1))
        assert follower.store.absent
        if is_installed:
            server.change(CRD, GIZMO_CRD["metadata"]["name"], {"metadata": {"labels": {"a": "b"}}})
            server.change(CRD, GIZMO_CRD["metadata"]["name"], {"spec": GIZMO_CRD["spec"]})
        else:
            server.create(CRD, unserved | {"spec": GIZMO_CRD["spec"]})
        await follower.synced()
        assert not follower.store.absent
        await server.requests.until(watching(2))
    crds, gizmos = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", f"{GIZMO.root}/gizmos"
    about_crds = [each for each in server.requests.log if each.path == crds]
    assert {each.query["fieldSelector"] for each in about_crds} == {
        f"metadata.name={definition_of(GIZMO)}"
    }
    made = [(each.path, each.watch) for each in server.requests.log if each.path in (crds, gizmos)]
    found = [(crds, False), (crds, True), (gizmos, False), (gizmos, True)]
    assert made == [(gizmos, False), *found]


async def test_an_absent_resource_is_listed_again_after_a_while(
    server: FakeApiServer, client: Client
) -> None:
    """The API of a newer server, or of an aggregated one, has no CRD."""
    lists = [f"{GIZMO.root}/gizmos"] * 3

    def uniform(low: float, high: float) -> float:
        return 0.01 if (low, high) == kube.watch.WATCH_SECONDS else high

    async with following(client, resource=GIZMO, optional=True, uniform=uniform):
        await server.requests.until(
            lambda requests: [each.path for each in requests.log if each.path in lists] == lists
        )


async def test_without_a_right_to_see_its_crd_an_absent_resource_is_listed_with_backoff(
    server: FakeApiServer, client: Client
) -> None:
    """A Role in one namespace gives no right to see CRDs; the installation is noticed all the same."""
    server.fail(1000, 403, path="customresourcedefinitions")
    async with following(client, resource=GIZMO, optional=True) as follower:
        await follower.failures(3)
        assert follower.delays[:3] == [0.8, 1.6, 3.2]
        server.create(CRD, GIZMO_CRD)
        await follower.synced()


@pytest.mark.parametrize("namespaced", [False, True])
async def test_an_optional_cluster_scoped_resource_may_be_forbidden(
    server: FakeApiServer, client: Client, namespaced: bool
) -> None:
    """With a Role in one namespace alone, the start does not wait for it; later rights are noticed."""
    plural, kind = ("configmaps", "ConfigMap") if namespaced else ("namespaces", "Namespace")
    resource = Resource("", "v1", plural, kind, namespaced=namespaced)
    server.fail(2, 403)
    async with following(client, resource=resource, optional=True) as follower:
        await eventually(lambda: follower.watch.problem is not None)
        store = follower.watch.store
        assert (store.known.is_set(), store.absent) == (not namespaced, not namespaced)
        await eventually(store.synced.is_set)
        assert not store.absent


async def test_a_429_of_a_watch_is_no_warning(
    server: FakeApiServer, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    """A 429, such as "storage is (re)initializing" after a change of a CRD, is retried."""
    caplog.set_level(logging.INFO, "gatewright.kube.watch")
    server.fail(1, 429, watch=True)
    async with following(client) as follower:
        put(server, "one")
        await follower.next()
        await server.requests.until(watching(1))
    assert [each.levelname for each in caplog.records if "429" in each.getMessage()] == ["INFO"]


async def test_metadata_alone_is_kept(server: FakeApiServer, client: Client) -> None:
    """A metadata-only watch has labels and owners, and never the data."""
    put(server, "one", password="hunter2")
    async with following(client, metadata_only=True) as follower:
        await follower.synced()
        entry = follower.store.entry("default/one")
        assert entry
        assert b"hunter2" not in entry.raw


async def test_a_watch_can_be_of_a_part(server: FakeApiServer, client: Client) -> None:
    """Namespace and selectors limit the list and the watch."""
    put(server, "one")
    server.create(
        CONFIG_MAP, {"metadata": {"name": "two", "namespace": "default", "labels": {"app": "x"}}}
    )
    server.create(
        CONFIG_MAP,
        {"metadata": {"name": "three", "namespace": "kube-system", "labels": {"app": "x"}}},
    )
    async with following(client, namespace="default", labels="app=x") as follower:
        await follower.synced()
        assert follower.store.keys() == ["default/two"]


async def test_lines_may_be_long(server: FakeApiServer, client: Client) -> None:
    """An event may have more than a megabyte."""
    async with following(client) as follower:
        await follower.synced()
        put(server, "one", a="x" * 1_500_000)
        assert await follower.next() == ("added", "default/one")


@pytest.mark.controlplane("etcd", "kube-apiserver")
async def test_the_api_server_drops_metadata_of_a_wrong_type(
    control_plane: ControlPlane, namespace: str
) -> None:
    """Lists and watches have only well-typed metadata, even of an object that was malformed in etcd."""
    malformed = {
        "labels": {"a": 1},
        "annotations": ["a"],
        "finalizers": [7],
        "ownerReferences": [{"controller": True, "uid": 1}],
        "generation": "3",
        "deletionTimestamp": 7,
    }
    async with Client(await load(control_plane.kubeconfig)) as client:
        api = await prepared(Api(client, namespace))
        created = await api.gizmo("one")
        key = f"/registry/{GIZMO.group}/{GIZMO.plural}/{namespace}/one"
        async with following(client, resource=GIZMO, namespace=namespace) as follower:
            assert await follower.next() == ("added", f"{namespace}/one")
            metadata = {name: created["metadata"][name] for name in WELL_TYPED}
            put_into_etcd(control_plane, key, {**created, "metadata": metadata | malformed})
            assert await follower.next() == ("modified", f"{namespace}/one")
            watched = follower.store.get(f"{namespace}/one")
        (listed,) = [each async for each in client.list(GIZMO, namespace)]
        for found in (watched, listed):
            assert found is not None
            del found["metadata"]["resourceVersion"]
            assert found["metadata"] == {**metadata, "generation": 1}


def put_into_etcd(plane: ControlPlane, key: str, object: dict[str, Any]) -> None:
    """Store an object behind the API server's back, by etcd's JSON gateway."""
    texts = {"key": key.encode(), "value": orjson.dumps(object)}
    body = {name: base64.b64encode(text).decode() for name, text in texts.items()}
    code, answer = plane.etcd.request("POST", "/v3/kv/put", body)
    assert code == 200, answer


@pytest.mark.parametrize("field", ["name", "uid", "resourceVersion"])
def test_an_object_without_an_identity_is_no_event(field: str) -> None:
    """The watch fails and begins again, with back-off."""
    metadata = {"name": "a", "uid": "b", "resourceVersion": "1"}
    event = {"type": "ADDED", "object": {"metadata": metadata}}
    assert event_in(orjson.dumps(event)) == ("ADDED", event["object"])
    del metadata[field]
    with pytest.raises(ServerError, match="an object has no name, uid or resourceVersion"):
        event_in(orjson.dumps(event))


@pytest.mark.parametrize(
    "line", [b"{", b"7", b'{"type": "BOOKMARK", "object": {"metadata": {}}}', b'{"type": "ERROR"}']
)
def test_a_line_that_is_no_event(line: bytes) -> None:
    """The watch fails and begins again, with back-off."""
    with pytest.raises(ServerError, match="a line of the watch is not an event"):
        event_in(line)


@pytest.mark.controlplane("etcd", "kube-apiserver")
async def test_a_killed_api_server_is_found_again(own_control_plane: Any) -> None:
    """After a kill -9 and a restart no event is missed, and the store is current soon after the server is back."""
    plane = await asyncio.to_thread(own_control_plane, parts=("etcd", "kube-apiserver"))
    async with Client(await load(plane.kubeconfig)) as client:
        for name in ("kept", "deleted"):
            await client.create(CONFIG_MAP, {"metadata": {"name": name, "namespace": "default"}})
        async with following(client, sleep=asyncio.sleep, namespace="default") as follower:
            await follower.synced()
            plane.kill("kube-apiserver")
            await asyncio.to_thread(plane.restart, "kube-apiserver")
            await client.delete(CONFIG_MAP, "deleted", "default")
            await client.create(CONFIG_MAP, {"metadata": {"name": "new", "namespace": "default"}})
            told = []
            while ("added", "default/new") not in told or (
                "deleted",
                "default/deleted",
            ) not in told:
                told.append(await follower.next())
            assert {"default/kept", "default/new"} <= set(follower.store.keys())
            assert follower.store.entry("default/deleted") is None


@pytest.mark.controlplane("etcd", "kube-apiserver")
async def test_an_idle_kind_is_no_warning_and_a_dead_connection_is(
    own_control_plane: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The API server sends no bookmarks for a kind without events, so that silence alone is no fault."""
    monkeypatch.setattr(kube.watch, "BOOKMARK_LIMIT", 4.0)
    monkeypatch.setattr(kube.watch, "UNMARKED_SECONDS", (2, 2))
    plane = await asyncio.to_thread(own_control_plane, parts=("etcd", "kube-apiserver"))
    endpoint, target = await load(plane.kubeconfig), urlsplit(plane.url)
    told = "configmaps changed while the watch was silent; the connection was dead"

    def made(name: str) -> dict[str, Any]:
        return {"metadata": {"name": name, "namespace": "default"}}

    async with Proxy(target.hostname or "", target.port or 0) as proxy:
        through = endpoint._replace(url=f"https://{target.hostname}:{proxy.port}")
        async with (
            Client(through) as client,
            Client(endpoint) as user,
            following(client, namespace="default") as follower,
        ):
            await follower.synced()
            await asyncio.sleep(10)
            await user.create(CONFIG_MAP, made("one"))
            assert await follower.next() == ("added", "default/one")
            assert caplog.messages == []
            heard = follower.watch.last_heard
            await eventually(lambda: follower.watch.last_heard != heard)  # its next watch is open
            proxy.silence()
            await user.create(CONFIG_MAP, made("two"))
            assert await follower.next() == ("added", "default/two")
            await user.create(CONFIG_MAP, made("three"))
            assert await follower.next() == ("added", "default/three")
    assert caplog.messages == [told]
