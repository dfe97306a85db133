"""Slow, greedy and vanishing clients, and a drain without lost requests."""

import asyncio
import gc
import json
import logging
import resource
import socket
import ssl
from contextlib import AsyncExitStack

import pytest
from aiohttp import web

from tests.waiting import WITHIN
from tests.webhook.server.conftest import TlsRecords, Wire, bind, review, without_collector
from webhook.engine import NAMESPACE_LABELS, Engine, Policy, Violation
from webhook.server import connections
from webhook.server.protocol import HttpConnection
from webhook.server.tls_records import MAX_SHORT_RECORDS

WAITING = Engine(
    [bind(Policy("waiting", validate=lambda request, _: iter(()), needs=(NAMESPACE_LABELS,)))]
)
HEAD = b"POST /validate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize(
    "begun",
    [
        b"POST /validate HTTP/1.1\r\nHost: x\r\n",
        HEAD + b"Content-Length: 1000\r\n\r\n{",
    ],
)
async def test_an_incomplete_request_is_cut_off(start, begun):
    """Header and body have a deadline; other clients are served meanwhile."""
    async with (
        start(request_seconds=0.2) as webhook,
        webhook.connected() as slow,
        asyncio.timeout(WITHIN),
    ):
        await slow.send(begun)
        assert (await webhook.post(review())).status == 200
        assert await slow.ended()
        # On a busy machine the connection of the other client may be late, too.
        assert webhook.counted("gatewright_webhook_connections_cut_total", reason="too-slow") >= 1


async def test_a_client_without_a_handshake_is_cut_off(start):
    """The TLS handshake has a deadline."""
    async with start(request_seconds=0.2) as webhook, asyncio.timeout(WITHIN):
        reader, writer = await asyncio.open_connection("127.0.0.1", webhook.port)
        assert await reader.read() == b""
        writer.transport.abort()


async def test_plain_http_is_rejected(webhook):
    """Without TLS there is no answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", webhook.port)
    writer.write(b"POST /validate HTTP/1.1\r\n\r\n")
    assert b"HTTP/1.1 200" not in await Wire(reader, writer).rest()
    writer.transport.abort()


async def test_single_bytes_do_not_extend_the_deadline(start):
    """The deadline is for the whole request."""
    async with (
        start(request_seconds=0.3) as webhook,
        webhook.connected() as slow,
        asyncio.timeout(WITHIN),
    ):
        await slow.send(b"POST /validate HTTP/1.1\r\nX: ")

        async def drip() -> None:
            try:
                while True:
                    await slow.send(b"x")
                    await asyncio.sleep(0.05)
            except ConnectionError:
                pass

        dripping = asyncio.create_task(drip())
        assert await slow.ended()
        dripping.cancel()


async def test_a_second_request_has_a_deadline_too(start):
    """An earlier good request does not exempt the connection."""
    async with (
        start(request_seconds=0.2) as webhook,
        webhook.connected() as slow,
        asyncio.timeout(WITHIN),
    ):
        assert (await slow.post(review())).status == 200
        await slow.send(HEAD)
        assert await slow.ended()


def at_length(_, __):
    """Return a large response."""
    yield Violation("metadata.name", "x" * 1_000_000, "be brief", "shorten it")


@pytest.mark.long
async def test_an_unread_response_is_abandoned(start):
    """A client that sends requests without reading is cut off."""
    engine = Engine([bind(Policy("at-length", validate=at_length))])
    async with (
        start(engine, request_seconds=0.2) as webhook,
        webhook.connected() as greedy,
        asyncio.timeout(WITHIN),
    ):
        greedy.writer.transport.pause_reading()
        body = json.dumps(review()).encode()
        greedy.writer.write((HEAD + b"Content-Length: %d\r\n\r\n%b" % (len(body), body)) * 1000)
        await webhook.until_counted(
            1, "gatewright_webhook_connections_cut_total", reason="too-slow"
        )


async def test_an_idle_connection_is_kept(start):
    """There is no time limit between two requests."""
    async with start(request_seconds=0.1) as webhook, webhook.connected() as idle:
        assert (await idle.post(review())).status == 200
        await asyncio.sleep(0.3)  # longer than the deadline and the sweep
        assert (await idle.post(review())).status == 200


async def test_a_flood_of_connections_does_not_displace_the_api_server(start):
    """Beyond the share of an address, its oldest connection without a request is closed; one with a request stays."""
    async with (
        start(most_connections=6, idle_seconds=0) as webhook,
        webhook.connected() as api_server,
    ):
        assert (await api_server.post(review())).status == 200
        async with webhook.connected() as first, webhook.connected(), webhook.connected() as last:
            assert await first.ended()
            assert (await api_server.post(review())).status == 200
            assert (await last.post(review())).status == 200
        assert webhook.counted("gatewright_webhook_connections_cut_total", reason="too-many") == 1


async def test_an_idle_connection_makes_room_for_a_new_one(start):
    """The connection idle for the longest time is closed."""
    async with (
        start(most_connections=4, idle_seconds=0) as webhook,
        webhook.connected() as old,
        webhook.connected() as busy,
    ):
        for wire in (old, busy):
            assert (await wire.post(review())).status == 200
        async with webhook.connected() as new:
            assert await old.ended()
            for wire in (busy, new):
                assert (await wire.post(review())).status == 200


async def test_connections_that_were_never_used_make_room_at_once(start):
    """The oldest of them is closed for each new one, which is answered; one with a request stays."""
    async with start(most_connections=6) as webhook, AsyncExitStack() as stack:
        used = await stack.enter_async_context(webhook.connected())
        assert (await used.post(review())).status == 200
        for _ in range(10):
            await stack.enter_async_context(webhook.connected())
        for _ in range(10):
            assert (await webhook.post(review())).status == 200
        assert (await used.post(review())).status == 200


async def test_descriptors_that_run_out_are_one_line(start, monkeypatch, caplog):
    """A waiting client gets a connection when one is free again."""
    monkeypatch.setattr(connections, "ACCEPT_AGAIN_SECONDS", 0.01)
    async with start() as webhook:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        with socket.create_connection(("127.0.0.1", webhook.port)) as waiting:
            resource.setrlimit(resource.RLIMIT_NOFILE, (waiting.fileno() + 1, hard))
            try:
                await asyncio.sleep(0.2)
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert (await webhook.post(review())).status == 200
    assert [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING] == [
        "no connection can be accepted: Too many open files"
    ]


async def test_many_connections_from_one_address_end_no_other(start):
    """An address has at most half of the connections that the others leave."""
    async with (
        start(most_connections=5, idle_seconds=0) as webhook,
        webhook.connected() as api_server,
    ):
        assert (await api_server.post(review())).status == 200
        async with (
            webhook.connected(address="127.0.0.2") as first,
            webhook.connected(address="127.0.0.2"),
            webhook.connected(address="127.0.0.2"),
        ):
            assert await first.ended()
        assert (await api_server.post(review())).status == 200


async def test_a_busy_connection_is_never_closed_for_a_new_one(start):
    """If all are busy, the new one is rejected before its handshake."""
    asked, told = asyncio.Event(), asyncio.Event()

    async def look_up(_):
        asked.set()
        await told.wait()
        return {}

    async with start(WAITING, look_ups={NAMESPACE_LABELS: look_up}, most_connections=2) as webhook:
        answer = asyncio.create_task(webhook.post(review()))
        await asked.wait()
        with pytest.raises(OSError):  # noqa: PT011
            async with webhook.connected():
                pass
        told.set()
        assert (await answer).status == 200


@pytest.mark.long
async def test_a_request_in_tiny_pieces_is_read_slowly_and_cut_off(start, monkeypatch):
    """Each read costs as much as a review, so single bytes would starve other clients."""
    reads = []
    parse = web.RequestHandler.data_received

    def read(connection, data):
        if data:
            reads.append(data)
        parse(connection, data)

    monkeypatch.setattr(web.RequestHandler, "data_received", read)
    async with (
        start(request_seconds=0.5) as webhook,
        webhook.connected() as slow,
        asyncio.timeout(WITHIN),
    ):
        sent = 0

        async def drip() -> None:
            nonlocal sent
            await slow.send(HEAD + b"Content-Length: 100000\r\n\r\n")
            try:
                while True:
                    await slow.send(b"x")
                    sent += 1
                    await asyncio.sleep(0)
            except (ConnectionError, ssl.SSLError):
                pass

        dripping = asyncio.create_task(drip())
        assert await slow.ended()
        await dripping
        assert webhook.counted("gatewright_webhook_connections_cut_total", reason="too-slow") == 1
        assert len(reads) < 20 < sent


async def test_few_tls_records_of_one_byte_are_read_at_once(start, monkeypatch):
    """Each record costs as much as a large one: the rest is read later, after others are served."""
    reads = []
    parse = web.RequestHandler.data_received

    def read(connection, data):
        reads.append(len(data))
        parse(connection, data)

    monkeypatch.setattr(web.RequestHandler, "data_received", read)
    body = json.dumps(review()).encode()
    async with start() as webhook, TlsRecords.connected(webhook) as wire, asyncio.timeout(WITHIN):
        head = HEAD + b"Content-Length: %d\r\n\r\n" % len(body)
        await wire.send(head + body[:-100])
        await wire.send_one_by_one(body[-100:])
        assert b"200 OK" in await wire.receive()
        assert max(each for each in reads if each < len(head)) == MAX_SHORT_RECORDS


@pytest.mark.long
async def test_a_client_of_tiny_tls_records_is_read_ever_less_often(start, monkeypatch):
    """The records may contain whole requests: a client never gets more than its share."""
    pauses = []
    pause = HttpConnection._pause

    def pausing(connection, small_reads):
        pauses.append(small_reads)
        pause(connection, small_reads)

    monkeypatch.setattr(HttpConnection, "_pause", pausing)
    request = HEAD + b"Content-Length: 2\r\n\r\n{}"
    async with start() as webhook, TlsRecords.connected(webhook) as wire, asyncio.timeout(WITHIN):
        await wire.send_one_by_one(request * 2)
        for _ in range(2):
            assert b"400 Bad Request" in await wire.receive()
    assert pauses == list(range(pauses[0], pauses[0] + len(pauses)))
    assert len(pauses) >= 2 * len(request) // MAX_SHORT_RECORDS


async def test_a_client_that_disconnects_leaves_nothing_behind(webhook, caplog):
    """No traceback, no connection, no request in flight."""
    for _ in range(50):
        async with webhook.connected() as wire:
            await wire.send(HEAD + b"Content-Length: 1000\r\n\r\n{")
    assert (await webhook.post(review())).status == 200
    await webhook.until_counted(0, "gatewright_webhook_connections")
    await webhook.until_counted(
        0, "controller_runtime_webhook_requests_in_flight", webhook="validate"
    )
    assert not [record for record in caplog.records if record.exc_info]


@pytest.mark.parametrize(
    "sent",
    [
        b"GARBAGE\r\n\r\n",
        HEAD + b"X: y\r\n" * 2000 + b"\r\n",
        HEAD + b"Content-Length: 1000\r\n\r\n{",
    ],
    ids=["no HTTP", "too many headers", "half a body"],
)
async def test_a_bad_connection_is_freed_without_the_garbage_collector(webhook, sent):
    """The collector runs rarely, and a connection takes tens of kilobytes."""
    with without_collector():
        for _ in range(10):
            async with webhook.connected() as wire:
                await wire.send(sent)
        await webhook.until_counted(0, "gatewright_webhook_connections")
        await asyncio.sleep(0)
        assert (
            sum(isinstance(each, HttpConnection) for each in gc.get_objects()) <= 1
        )  # the last one is being freed


async def test_pipelined_requests_are_answered_in_order(webhook):
    """A thousand requests are sent without waiting for answers."""
    async with webhook.connected() as wire:
        for number in range(100):
            body = json.dumps(review(uid=f"u-{number}")).encode()
            wire.writer.write(HEAD + b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        assert [(await wire.answer()).response["uid"] for _ in range(100)] == [
            f"u-{number}" for number in range(100)
        ]


async def test_while_draining_each_response_closes_its_connection(start):
    """New connections are still served; the drain ends when all are closed."""
    async with (
        start(linger_seconds=0.2) as webhook,
        webhook.connected() as old,
        asyncio.timeout(WITHIN),
    ):
        assert "connection" not in (await old.post(review())).headers
        draining = asyncio.create_task(webhook.connections.drain())
        async with webhook.connected() as new:
            for wire in (old, new):
                answer = await wire.post(review())
                assert (answer.status, answer.headers["connection"]) == (200, "close")
                assert await wire.ended()
        await draining


@pytest.mark.long
async def test_a_drain_lasts_as_long_as_clients_open_connections(start):
    """An endpoint that is removed late costs no request."""
    linger = 2.0
    loop = asyncio.get_running_loop()
    async with start(linger_seconds=linger) as webhook, asyncio.timeout(WITHIN):
        draining = asyncio.create_task(webhook.connections.drain())
        began = loop.time()
        while loop.time() < began + 1.5 * linger:
            assert (await webhook.post(review())).status == 200
            assert not draining.done()
            await asyncio.sleep(linger / 40)
        await draining


async def test_a_request_in_flight_is_answered_before_the_end(start):
    """The drain waits for requests that began before it."""
    asked, told = asyncio.Event(), asyncio.Event()

    async def look_up(_):
        asked.set()
        await told.wait()
        return {}

    async with start(WAITING, look_ups={NAMESPACE_LABELS: look_up}, linger_seconds=0) as webhook:
        async with asyncio.TaskGroup() as group:
            answer = group.create_task(webhook.post(review()))
            await asked.wait()
            draining = group.create_task(webhook.connections.drain())
            told.set()
            await draining
        assert answer.result().status == 200


async def test_the_grace_period_ends_the_drain(start):
    """An idle client does not delay the end of the process."""
    async with (
        start(linger_seconds=0, grace_seconds=0.1) as webhook,
        webhook.connected() as idle,
        asyncio.timeout(WITHIN),
    ):
        await idle.post(review())
        await webhook.connections.drain()
    assert await idle.ended()


@pytest.mark.long
async def test_no_request_fails_while_the_webhook_drains_under_load(start):
    """Clients with keep-alive connections, like the API server's, see no failure."""
    async with start(linger_seconds=0.5) as webhook:
        stopped, counts = asyncio.Event(), []

        async def keep_asking() -> None:
            count = 0
            while not stopped.is_set():
                async with webhook.connected() as wire:
                    last = False
                    while not last and not stopped.is_set():
                        answer = await wire.post(review())
                        assert answer.status == 200
                        count += 1
                        last = answer.headers.get("connection") == "close"
            counts.append(count)

        async with asyncio.TaskGroup() as group:
            for _ in range(10):
                group.create_task(keep_asking())
            await webhook.until_counted(10, "gatewright_webhook_connections")
            draining = group.create_task(webhook.connections.drain())
            await asyncio.sleep(0.4)  # the endpoint is removed: no new connections
            stopped.set()
            await draining
        assert len(counts) == 10
        assert min(counts) > 0


async def test_a_port_in_use_is_one_clear_line(start):
    """The error names the address."""
    async with start() as webhook:
        with pytest.raises(
            OSError,
            match=f"cannot listen on 127.0.0.1:{webhook.port}: address already in use; choose another address",
        ):
            async with start(port=webhook.port):
                pass
