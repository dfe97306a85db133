"""The parts of aiohttp that the webhook overrides: each test fails if aiohttp no longer calls them as expected."""

import inspect
import json
import sys

import pytest
from aiohttp import web

from tests.webhook.server.conftest import TlsRecords, review
from webhook.server.protocol import FIRST_READ, HttpAnswer, HttpConnection, HttpServer

REPLACED = [
    (web.Server, HttpServer, "connection_lost"),
    (web.RequestHandler, HttpConnection, "connection_made"),
    (web.RequestHandler, HttpConnection, "data_received"),
    (web.RequestHandler, HttpConnection, "resume_reading"),
    (web.RequestHandler, HttpConnection, "handle_error"),
    (web.StreamResponse, HttpAnswer, "prepare"),
    (web.StreamResponse, HttpAnswer, "write_eof"),
    (web.StreamResponse, HttpAnswer, "force_close"),
]


@pytest.mark.parametrize(("base", "ours", "name"), REPLACED)
def test_a_replaced_method_takes_what_aiohttp_passes(base, ours, name):
    """Its parameters have the names and defaults of aiohttp's."""
    theirs = inspect.signature(getattr(base, name)).parameters
    replaced = inspect.signature(getattr(ours, name)).parameters
    assert [(each.name, each.kind, each.default) for each in theirs.values()] == [
        (parameter.name, parameter.kind, parameter.default) for parameter in replaced.values()
    ]


def test_nothing_else_of_aiohttp_is_replaced():
    """The classes define nothing that aiohttp's do, except for what the module lists."""
    replaced = {(ours, name) for _, ours, name in REPLACED} | {(HttpAnswer, "keep_alive")}
    for ours in (HttpServer, HttpConnection, HttpAnswer):
        names = {name for name in vars(ours) if not name.startswith(("__", "_abc"))}
        assert {(ours, name) for name in names if hasattr(ours.__base__, name)} == {
            each for each in replaced if each[0] is ours
        }


async def test_aiohttp_uses_nothing_else_of_an_answer(start, monkeypatch):
    """An answer does not call aiohttp's `__init__`, so it has none of its other attributes."""
    used = set()

    class Watched(HttpAnswer):
        def __getattribute__(self, name):
            if sys._getframe(1).f_code.co_filename.endswith("web_protocol.py"):
                used.add(name)
            return super().__getattribute__(name)

    monkeypatch.setattr("webhook.server.exchange.HttpAnswer", Watched)
    async with start() as webhook:
        assert (await webhook.post(review())).status == 200
        assert (await webhook.post(b"{}")).status == 400
    assert used == {"prepare", "write_eof", "keep_alive", "__http_exception__"}


async def test_the_head_and_the_body_of_an_answer_are_one_tls_record(webhook):
    """Two writes would be two packets, and two reads for the client."""
    body = json.dumps(review()).encode()
    head = b"POST /validate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    async with TlsRecords.connected(webhook) as wire:
        await wire.send(head + b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        answer = await wire.receive()
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["response"]["allowed"] is True


async def test_a_body_waits_until_its_head_is_accepted(start, monkeypatch):
    """The handler sees no more than the first read of it before it accepts the head."""
    seen = []
    accept = HttpConnection.accept

    def accepting(connection):
        seen.append(connection._current_request.content.total_bytes)
        accept(connection)

    monkeypatch.setattr(HttpConnection, "accept", accepting)
    async with start() as webhook:
        answer = await webhook.post(review(object={"kind": "Pod", "a": "x" * 200_000}))
    assert answer.status == 200
    assert seen[0] <= FIRST_READ


async def test_a_connection_that_ends_is_forgotten(webhook):
    """The server hears of it from aiohttp, no matter which side ends it."""
    async with webhook.connected() as wire:
        await wire.post(review())
        assert webhook.counted("gatewright_webhook_connections") == 1
    await webhook.until_counted(0, "gatewright_webhook_connections")
