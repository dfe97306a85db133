"""An API server in the test's own process: start, stop, and functions for tests."""

import asyncio
import socket
import ssl
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Self

from aiohttp import web

from gatewright.testing.fake_apiserver.cluster import FakeCluster
from gatewright.testing.fake_apiserver.objects import parse_object
from gatewright.testing.fake_apiserver.reads import StorageReader
from gatewright.testing.fake_apiserver.refusals import StatusError
from gatewright.testing.fake_apiserver.requests import InjectedFault, Requests
from gatewright.testing.fake_apiserver.routes import Routes
from gatewright.testing.fake_apiserver.storage import Storage
from gatewright.testing.fake_apiserver.watches import CUT, END, WatchStreams
from gatewright.testing.fake_apiserver.write_request import WriteRequest
from gatewright.testing.fake_apiserver.writes import Writes
from kube.client import with_type
from kube.endpoint import Endpoint, anonymous, static_token
from kube.resource import JsonObject, Resource

NAMESPACE = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
NAMESPACES = ("default", "kube-system", "kube-node-lease")
# Iterations of the event loop until the server knows an accepted connection, and closes it.
ACCEPTED = 3


class FakeApiServer:
    """`async with FakeApiServer() as server: async with Client(server.endpoint) as client: …`.

    It stores, versions and watches objects like the real one, with conflicts, field ownership,
    /status, finalizers and garbage collection. It has no defaults or validation of built-in kinds,
    no admission except `mutate`, no RBAC, no conversion, no deletion except in the background, no
    /scale, and no controllers except for garbage collection and deletion of namespaces.
    """

    def __init__(self, *, token: str | None = None, tls: ssl.SSLContext | None = None) -> None:
        self.requests = Requests()
        self.storage = Storage()
        self.watches = WatchStreams(self.storage)
        self.url = ""
        self._writes = Writes(self.storage, now)
        self._cluster = FakeCluster(self.storage, self._writes)
        self._routes = Routes(
            self._cluster,
            StorageReader(self.storage),
            self._writes,
            self.watches,
            self.requests,
            token,
        )
        self._token = token
        self._tls = tls
        self._runner: web.AppRunner | None = None
        self._listener: socket.socket | None = None
        self._port = 0

    async def __aenter__(self) -> Self:
        for name in NAMESPACES:
            self.create(NAMESPACE, {"metadata": {"name": name}})
        await self.start()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.stop()

    @property
    def endpoint(self) -> Endpoint:
        """The endpoint for a client."""
        return Endpoint(
            self.url, authorization=static_token(self._token) if self._token else anonymous
        )

    async def start(self) -> None:
        """Listen: on a free port the first time, on the same port after `stop()`."""
        application = web.Application(client_max_size=3 * 1024 * 1024)
        application.router.add_route("*", "/{path:.*}", self._routes.answer)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        self._listener = socket.create_server(("127.0.0.1", self._port))
        await web.SockSite(self._runner, self._listener, ssl_context=self._tls).start()
        host, self._port = self._listener.getsockname()
        self.url = f"{'https' if self._tls else 'http'}://{host}:{self._port}"

    async def stop(self) -> None:
        """Stop listening and end all watches; the stored objects stay."""
        if self._runner and self._listener:
            # A closed server drops connections that it has just accepted.
            asyncio.get_running_loop().remove_reader(self._listener)
            for _ in range(ACCEPTED):
                await asyncio.sleep(0)
            self.close_watches()
            await self._runner.cleanup()
            self._runner = None

    def fail(self, times: int, code: int, **which: Any) -> None:
        """Inject a fault into the next `times` requests.

        Other fields of InjectedFault: method, path, watch, retry_after ….
        """
        self.requests.faults.append(InjectedFault(times, code, **which))

    def close_watches(self) -> None:
        """End all open watches properly."""
        for watcher in self.watches.open:
            watcher.lines.put_nowait(END)

    def cut_watches(self) -> None:
        """Break the connections of all open watches in the middle of a line."""
        for watcher in self.watches.open:
            watcher.lines.put_nowait(CUT)

    def expire_watches(self) -> None:
        """Compact the history, and end all open watches as too old."""
        self.storage.compact()
        for watcher in self.watches.open:
            watcher.refuse(StatusError(410, "too old resource version"))

    def bookmark(self) -> None:
        """Send a bookmark on all open watches."""
        for watcher in self.watches.open:
            watcher.bookmark(self.storage.version)

    def define(self, crd: JsonObject) -> None:
        """Serve the kinds of a CRD as if it had been created."""
        self._cluster.define(crd)

    def mutate(self, change: Callable[[JsonObject], JsonObject]) -> None:
        """Call a mutating webhook with each written object."""
        self._writes.mutate = change

    def create(self, resource: Resource, object: JsonObject) -> JsonObject:
        """Create an object as another client, without an HTTP request."""
        write = self._write(resource, object["metadata"].get("namespace", ""), "")
        return self._writes.create(write, parse_object(with_type(resource, object), write.kind))

    def change(
        self,
        resource: Resource,
        name: str,
        patch: JsonObject,
        namespace: str = "",
        subresource: str = "",
    ) -> JsonObject:
        """Change an object by a merge patch as another client, without an HTTP request."""
        return self._writes.merge_patch(self._write(resource, namespace, name, subresource), patch)

    def apply(
        self, resource: Resource, object: JsonObject, manager: str, subresource: str = ""
    ) -> JsonObject:
        """Apply an object as another client, without an HTTP request."""
        metadata = object["metadata"]
        write = self._write(
            resource, metadata.get("namespace", ""), metadata["name"], subresource, manager
        )
        return self._writes.apply(
            write, parse_object(with_type(resource, object), write.kind), force=True
        )[0]

    def delete(self, resource: Resource, name: str, namespace: str = "") -> None:
        """Delete an object as another client, without an HTTP request."""
        self._writes.delete(self._write(resource, namespace, name), {})

    def get(self, resource: Resource, name: str, namespace: str | None = None) -> JsonObject | None:
        """Return the stored object, or None; do not change it."""
        return self.storage.get((resource.group, resource.plural), (namespace or "", name))

    def list(self, resource: Resource, namespace: str = "") -> list[JsonObject]:
        """Return the stored objects of a resource; do not change them."""
        return [
            object for _, object in self.storage.all((resource.group, resource.plural), namespace)
        ]

    def _write(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        subresource: str = "",
        manager: str = "somebody",
    ) -> WriteRequest:
        kind = self._cluster.kind(resource.group, resource.version, resource.plural)
        return WriteRequest(kind, namespace, name, subresource, manager)


def now() -> str:
    """Return the time in the format of metadata."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
