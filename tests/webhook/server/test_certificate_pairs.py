"""The serving pair of a Secret: served as soon as the Secret has it, and kept whatever happens to the Secret."""

import asyncio
import base64
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from certs import KeyPair, issue_serving
from controller.reconcilers.resources import SECRET
from gatewright.testing.fake_apiserver import FakeApiServer
from kube.client import Client
from kube.watched import WatchedObject
from tests.waiting import eventually
from tests.webhook.server.conftest import NAME, Webhook, review
from webhook.server.certificate_pairs import PairSecret
from webhook.server.cluster_data import NAMESPACES

NAMESPACE, TLS = "gatewright-system", "gatewright-webhook-tls"
SECRET_NAME = f"Secret {NAMESPACE}/{TLS}"
NEVER = 3600.0  # seconds between two polls: what is noticed sooner is noticed by the watch


@pytest.fixture
async def server() -> AsyncIterator[FakeApiServer]:
    """An API server without the Secret."""
    async with FakeApiServer() as fake:
        fake.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
        yield fake


@pytest.fixture
async def source(server: FakeApiServer) -> AsyncIterator[PairSecret]:
    """The Secret, watched."""
    async with Client(server.endpoint) as client:
        watched = WatchedObject.of(client, SECRET, NAMESPACE, TLS)
        watching = asyncio.create_task(watched.run())
        yield PairSecret(watched)
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


def secret(**data: bytes) -> dict:
    """Return the Secret with this data."""
    encoded = {f"tls.{name}": base64.b64encode(value).decode() for name, value in data.items()}
    return {"metadata": {"name": TLS, "namespace": NAMESPACE}, "data": encoded}


def whole(pair: KeyPair) -> dict:
    """Return the Secret with a pair."""
    return secret(crt=pair.certificate, key=pair.key)


async def serial(webhook: Webhook) -> str:
    """Shake hands and return the serial number of the certificate served."""
    async with webhook.connected() as wire:
        return wire.writer.get_extra_info("peercert")["serialNumber"]


async def test_the_first_pair_is_served_as_soon_as_the_secret_has_it(start, server, source, pair):
    """The webhook runs before the Secret exists, names the missing Secret, and then serves without polling."""
    async with start(with_pair=False, source=source, poll_seconds=NEVER) as webhook:
        ready = webhook.certificate.ready
        assert ready() == f"{SECRET_NAME}: not read yet"
        server.create(SECRET, secret())
        await eventually(lambda: ready() == f"{SECRET_NAME}: has no tls.crt and no tls.key")
        server.change(SECRET, TLS, whole(pair), NAMESPACE)
        await eventually(lambda: ready() is None)
        assert (await webhook.post(review())).status == 200


async def test_a_secret_that_does_not_exist_is_named(start, source):
    """Polling detects it, since a missing object has no event."""
    async with start(with_pair=False, source=source, poll_seconds=0.01) as webhook:
        await eventually(lambda: webhook.certificate.ready() == f"{SECRET_NAME}: does not exist")


async def test_a_missing_right_is_named(start, server, source):
    """Readiness has the API server's own words."""
    server.fail(1000, 403)
    async with start(with_pair=False, source=source, poll_seconds=0.01) as webhook:
        await eventually(lambda: "403" in webhook.certificate.ready())


async def test_each_rotation_is_served_at_the_next_handshake(start, server, source, authority):
    """Without a poll, while an old connection continues."""
    pairs = [issue_serving(authority, [NAME], [], datetime.now(UTC)) for _ in range(5)]
    server.create(SECRET, whole(pairs[0]))
    async with start(with_pair=False, source=source, poll_seconds=NEVER) as webhook:
        await eventually(lambda: webhook.certificate.ready() is None)
        async with webhook.connected() as old:
            seen = {await serial(webhook)}
            for number, pair in enumerate(pairs[1:], 2):
                server.change(SECRET, TLS, whole(pair), NAMESPACE)
                await webhook.until_counted(number, "certwatcher_read_certificate_total")
                seen.add(await serial(webhook))
            assert len(seen) == 5
            assert (await old.post(review())).status == 200


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ({}, f"{SECRET_NAME}: has no tls.crt and no tls.key"),
        ({"crt": b"x", "key": b""}, f"{SECRET_NAME}: has no tls.key"),
        ({"crt": b"x", "key": b"y"}, "certificate is not valid PEM"),
    ],
)
async def test_a_broken_pair_keeps_the_last_good_one(
    start, server, source, pair, caplog, data, reason
):
    """One log line has the fault, and reports that the last pair stays."""
    server.create(SECRET, whole(pair))
    async with start(with_pair=False, source=source, poll_seconds=NEVER) as webhook:
        await eventually(lambda: webhook.certificate.ready() is None)
        server.change(SECRET, TLS, {"data": None}, NAMESPACE)
        await eventually(lambda: "the last good one stays in force" in caplog.text)
        server.change(SECRET, TLS, secret(**data), NAMESPACE)
        await eventually(lambda: reason in caplog.text)
        assert webhook.certificate.ready() is None
        assert (await webhook.post(review())).status == 200


async def test_the_last_pair_outlives_its_secret_and_the_api_server(start, server, source, pair):
    """A deleted Secret and an unavailable API server do not affect clients."""
    server.create(SECRET, whole(pair))
    async with start(with_pair=False, source=source, poll_seconds=0.01) as webhook:
        await eventually(lambda: webhook.certificate.ready() is None)
        server.delete(SECRET, TLS, NAMESPACE)
        await eventually(lambda: webhook.counted("certwatcher_read_certificate_errors_total") > 0)
        await server.stop()
        assert webhook.certificate.ready() is None
        assert (await webhook.post(review())).status == 200
