"""A webhook on loopback with the test's policies, and clients for it."""

import asyncio
import gc
import json
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import uvloop
from prometheus_client import CollectorRegistry

from certs import KeyPair, issue_ca, issue_serving
from tests.waiting import eventually
from webhook.engine import BoundPolicy, Engine, Params, Patch, Policy, Request, Violation
from webhook.engine.match import Match
from webhook.server.admission import AdmissionHandler
from webhook.server.certificate_pairs import PairFiles, PairSecret
from webhook.server.connections import Connections, ServerConfig
from webhook.server.metrics import WebhookMetrics
from webhook.server.serve import listening
from webhook.server.tls import ServingCertificate

NAME = "gatewright-webhook.gatewright-system.svc"


def pytest_asyncio_loop_factories():
    """Run these tests on the event loop of the product."""
    return {"uvloop": uvloop.new_event_loop}


def names(request: Request, _: Params) -> Iterator[Violation]:
    """Report objects named bad, and raise on those named broken."""
    name = request.string("metadata.name")
    if name == "broken":
        raise RuntimeError("the secret of life")
    if name == "bad":
        yield Violation("metadata.name", "bad", "objects must be good", "rename it")


def labels(_: Request, __: Params) -> Iterator[Patch]:
    """Label every object."""
    yield Patch(("metadata", "labels", "seen"), "yes")


NAMES = Policy("names", validate=names, kinds="pods")
LABELS = Policy("labels", mutate=labels, kinds="pods")


def bind(policy: Policy, **changes: Any) -> BoundPolicy:
    """Return a policy in force everywhere, with Deny and Fail."""
    bound = BoundPolicy(
        policy.name, policy, policy.params(), Match(()), frozenset({"Deny"}), fails_closed=True
    )
    return replace(bound, **changes)


ENGINE = Engine([bind(NAMES), bind(LABELS)])


@dataclass
class Policies:
    """The engine in force."""

    engine: Engine | None = field(default_factory=lambda: ENGINE)


def review(name: str = "good", **request: Any) -> dict[str, Any]:
    """Return a review of a pod as the API server sends it."""
    body = {
        "uid": "u-1",
        "operation": "CREATE",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "name": name,
        "namespace": "shop",
        "userInfo": {"username": "jane"},
        "object": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}},
    }
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": body | request,
    }


@dataclass(frozen=True)
class Answer:
    """A response on a connection."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def response(self) -> dict[str, Any]:
        """The response of the review."""
        return json.loads(self.body)["response"]


class Wire:
    """One TLS connection on which a test controls every byte."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def send(self, data: bytes) -> None:
        """Send bytes unchanged."""
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self) -> Answer:
        """Read one response."""
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.split("\r\n")[:-2]
        headers = {key.lower(): value for key, _, value in (line.partition(": ") for line in lines)}
        body = await self.reader.readexactly(int(headers.get("content-length", 0)))
        return Answer(int(first.split()[1]), headers, body)

    async def post(self, body: bytes | dict, path: str = "/validate", **headers: str) -> Answer:
        """Send a review and read the response; an empty value omits a header."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        shown = {"Host": NAME, "Content-Type": "application/json", "Content-Length": str(len(data))}
        shown |= {key.replace("_", "-"): value for key, value in headers.items()}
        lines = "".join(f"{key}: {value}\r\n" for key, value in shown.items() if value)
        await self.send(f"POST {path} HTTP/1.1\r\n{lines}\r\n".encode() + data)
        return await self.answer()

    async def rest(self) -> bytes:
        """Return the bytes that the server sends until it closes the connection."""
        said = b""
        try:
            while data := await self.reader.read(65536):
                said += data
        except (ConnectionError, ssl.SSLError):
            pass
        return said

    async def ended(self) -> bool:
        """Wait for the server to close the connection."""
        await self.rest()
        return True


class TlsRecords:
    """A connection on which a test decides what is in each TLS record."""

    def __init__(self, reader, writer, trusts):
        self._reader, self._writer = reader, writer
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = trusts.wrap_bio(self._incoming, self._outgoing, server_hostname=NAME)

    @classmethod
    @asynccontextmanager
    async def connected(cls, webhook):
        """Connect, and complete the handshake."""
        reader, writer = await asyncio.open_connection("127.0.0.1", webhook.port)
        wire = cls(reader, writer, webhook.trusts)
        await wire._until_done(wire._tls.do_handshake)
        yield wire
        writer.transport.abort()

    async def _until_done(self, act):
        while True:
            try:
                return act()
            except ssl.SSLWantReadError:
                self._writer.write(self._outgoing.read())
                data = await self._reader.read(65536)
                if not data:
                    raise ConnectionError("closed by the server") from None
                self._incoming.write(data)

    async def send(self, data):
        """Send one record."""
        self._tls.write(data)
        self._writer.write(self._outgoing.read())

    async def send_one_by_one(self, data):
        """Send a record for each byte, all of them in one write."""
        for index in range(len(data)):
            self._tls.write(data[index : index + 1])
        self._writer.write(self._outgoing.read())

    async def receive(self):
        """Return the content of the next record."""
        return await self._until_done(lambda: self._tls.read(65536))


@contextmanager
def without_collector() -> Iterator[None]:
    """Disable the garbage collector; `gc.get_objects()` has only objects that are new since then."""
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


async def answered(found: Any) -> Any:
    """Return the result of a look-up, cached or from the API server."""
    return await found if asyncio.iscoroutine(found) else found


@dataclass
class Webhook:
    """A listening webhook."""

    connections: Connections
    policies: Policies
    registry: CollectorRegistry
    certificate: ServingCertificate
    directory: Path
    trusts: ssl.SSLContext

    @property
    def port(self) -> int:
        """The address of the webhook."""
        return self.connections.port

    @asynccontextmanager
    async def connected(
        self, trusts: ssl.SSLContext | None = None, address: str = "127.0.0.1"
    ) -> AsyncIterator[Wire]:
        """Connect to the webhook, from a given loopback address."""
        reader, writer = await asyncio.open_connection(
            "127.0.0.1",
            self.port,
            ssl=trusts or self.trusts,
            server_hostname=NAME,
            local_addr=(address, 0),
        )
        try:
            yield Wire(reader, writer)
        finally:
            writer.transport.abort()

    async def post(self, body: bytes | dict, path: str = "/validate", **headers: str) -> Answer:
        """Send one review over a new connection."""
        async with self.connected() as wire:
            return await wire.post(body, path, **headers)

    def counted(self, name: str, **labels: str) -> float:
        """Return a metric's value."""
        return self.registry.get_sample_value(name, labels) or 0.0

    async def until_counted(self, value: float, name: str, **labels: str) -> None:
        """Wait for a metric to have a value; there is no event for it."""
        await eventually(lambda: self.counted(name, **labels) == value)


@pytest.fixture(scope="session")
def authority() -> KeyPair:
    """The CA that clients trust."""
    return issue_ca("gatewright", datetime.now(UTC))


def write_pair(pair: KeyPair, directory: Path) -> None:
    """Write a pair into a directory under the names of a TLS Secret."""
    (directory / "tls.crt").write_bytes(pair.certificate)
    (directory / "tls.key").write_bytes(pair.key)


def trust(*authorities: KeyPair) -> ssl.SSLContext:
    """Create a client that trusts only these authorities."""
    return ssl.create_default_context(
        cadata=b"".join(each.certificate for each in authorities).decode()
    )


@pytest.fixture(scope="session")
def pair(authority) -> KeyPair:
    """A serving pair that clients accept."""
    return issue_serving(authority, [NAME], ["127.0.0.1"], datetime.now(UTC))


@pytest.fixture(scope="session")
def trusts(authority) -> ssl.SSLContext:
    """The TLS context of clients."""
    return trust(authority)


@pytest.fixture
def start(pair, trusts, tmp_path):
    """Return a context manager that runs a webhook with the test's arguments."""

    @asynccontextmanager
    async def run(
        engine: Engine | None = ENGINE,
        *,
        look_ups=None,
        with_pair=True,
        source: PairFiles | PairSecret | None = None,
        certificate=None,
        record=None,
        callers=None,
        **config: Any,
    ) -> AsyncIterator[Webhook]:
        if with_pair:
            write_pair(pair, tmp_path)
        registry = CollectorRegistry()
        metrics = WebhookMetrics(registry)
        source = source or PairFiles(tmp_path / "tls.crt", tmp_path / "tls.key")
        certificate = ServingCertificate(source, metrics, **(certificate or {}))
        policies = Policies(engine)
        settings = ServerConfig(**{"host": "127.0.0.1", "port": 0} | config)
        handler = AdmissionHandler(policies, metrics, look_ups or {}, record, callers)
        async with listening(settings, handler, certificate, metrics) as connections:
            yield Webhook(connections, policies, registry, certificate, tmp_path, trusts)

    return run


@pytest.fixture
async def webhook(start) -> AsyncIterator[Webhook]:
    """A webhook with default settings."""
    async with start() as running:
        yield running
