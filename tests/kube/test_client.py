"""The client: time-outs, the write gate, metrics, and errors with URL and reason."""

import asyncio
import logging
import ssl
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gatewright.testing.fake_apiserver import FakeApiServer
from kube.client import Client
from kube.endpoint import CredentialsError, Endpoint, static_token, tls
from kube.errors import ApiError, NotFound, ServerError, TooManyRequests, Unauthorized, Unreachable
from tests.kube.conftest import CONFIG_MAP, NAMESPACE, SECRET
from tests.kube.tls import serving

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
NAMED = {"metadata": {"name": "one", "namespace": "default"}}


@asynccontextmanager
async def listening(answer: Handler) -> AsyncIterator[str]:
    """Serve TCP by hand, and be done with every connection at the end; gives the URL."""
    connections: set[asyncio.Task[None] | None] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.add(asyncio.current_task())
        await answer(reader, writer)
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    await asyncio.gather(*filter(None, connections))


async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Read the request, and never answer."""
    await reader.read()


async def half(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Break off in the middle of the answer."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(
        b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"meta'
    )


async def elsewhere(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Redirect the client to another server."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(
        b"HTTP/1.1 307 Temporary Redirect\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"
    )


async def test_a_request_to_a_silent_server_times_out() -> None:
    """Each request has a timeout; the error has the address and the waiting time."""
    async with listening(never) as url, Client(Endpoint(url), timeout=0.1) as client:
        with pytest.raises(Unreachable) as caught:
            await client.get(NAMESPACE, "default")
    assert str(caught.value) == f"cannot reach the API server at {url}: no response within 0.1 s"


async def test_a_watch_that_is_not_opened_is_given_up() -> None:
    """The timeout applies until a stream begins."""
    async with listening(never) as url, Client(Endpoint(url), timeout=0.1) as client:
        with pytest.raises(Unreachable):
            async with client.lines("/api/v1/namespaces?watch=true"):
                pass


async def test_a_stream_may_last_longer_than_a_request() -> None:
    """Once a stream is open, it is the reader's to bound."""
    async with FakeApiServer() as server, Client(server.endpoint, timeout=0.1) as client:
        server.watches.second = 0.3
        async with client.lines("/api/v1/configmaps?watch=true&timeoutSeconds=1") as stream:
            assert [lines async for lines in stream] == []


async def test_an_answer_that_breaks_off_is_a_failure() -> None:
    """An incomplete response is an error."""
    async with listening(half) as url, Client(Endpoint(url)) as client:
        with pytest.raises(
            Unreachable, match="the connection closed before the response was complete"
        ):
            await client.get(NAMESPACE, "default")


async def test_a_refused_connection_is_an_error() -> None:
    """The error reports a refused connection, with the address."""
    async with listening(never) as url:
        pass
    async with Client(Endpoint(url)) as client:
        with pytest.raises(Unreachable) as caught:
            await client.get(NAMESPACE, "default")
    assert str(caught.value) == f"cannot reach the API server at {url}: connection refused"


async def test_an_unknown_name_is_a_failure() -> None:
    """The error names an unknown host."""
    async with Client(Endpoint("https://absent.invalid:6443")) as client:
        with pytest.raises(
            Unreachable, match=r"at https://absent\.invalid:6443: unknown host name"
        ):
            await client.get(NAMESPACE, "default")


async def test_no_redirect_is_followed() -> None:
    """The token is not sent to another server."""
    async with listening(elsewhere) as url, Client(Endpoint(url)) as client:
        with pytest.raises(ApiError) as caught:
            await client.get(NAMESPACE, "default")
    assert caught.value.code == 307


async def test_a_trusted_server_is_reached(tmp_path: Path) -> None:
    """The authority of the endpoint verifies the server, also with a server name that differs from the address."""
    context, authority = serving(tmp_path, "127.0.0.1")
    security = tls("test", authorities=authority.read_bytes())
    async with FakeApiServer(tls=context) as server:
        for name in (None, "api.example.test"):
            async with Client(Endpoint(server.url, ssl=security, server_hostname=name)) as client:
                assert await client.get(NAMESPACE, "default")


@pytest.mark.parametrize("problem", ["another authority", "another host"])
async def test_an_untrusted_server_is_refused(tmp_path: Path, problem: str) -> None:
    """The error reports a certificate of another authority, or for another address."""
    context, authority = serving(
        tmp_path, "127.0.0.1" if problem == "another authority" else "127.0.0.2"
    )
    security = tls(
        "test", authorities=authority.read_bytes() if problem == "another host" else None
    )
    async with (
        FakeApiServer(tls=context) as server,
        Client(Endpoint(server.url, ssl=security)) as client,
    ):
        with pytest.raises(Unreachable, match="its certificate is not trusted"):
            await client.get(NAMESPACE, "default")


async def test_a_server_that_does_not_speak_tls_is_refused() -> None:
    """The error for an https address of a server without TLS has the reason."""
    async with (
        FakeApiServer() as server,
        Client(Endpoint(server.url.replace("http:", "https:"))) as client,
    ):
        with pytest.raises(Unreachable, match="the TLS handshake failed"):
            await client.get(NAMESPACE, "default")


async def test_without_verification_any_server_will_do(tmp_path: Path) -> None:
    """insecure-skip-tls-verify disables the verification."""
    context, _ = serving(tmp_path, "127.0.0.2")
    security = tls("test", authorities=None, verify=False)
    assert security.verify_mode is ssl.CERT_NONE
    async with (
        FakeApiServer(tls=context) as server,
        Client(Endpoint(server.url, ssl=security)) as client,
    ):
        assert await client.get(NAMESPACE, "default")


async def test_writes_pass_the_gate() -> None:
    """Each write asks the gate and sends nothing if it raises; reads and dry runs do not ask."""
    is_open = False

    def gate() -> None:
        if not is_open:
            raise PermissionError

    async with FakeApiServer() as server, Client(server.endpoint, write_gate=gate) as client:
        server.requests.clear()
        writes = (
            client.create(CONFIG_MAP, NAMED),
            client.replace(CONFIG_MAP, NAMED),
            client.patch(CONFIG_MAP, "one", {}, "default"),
            client.apply(CONFIG_MAP, NAMED, field_manager="us"),
            client.delete(CONFIG_MAP, "one", "default"),
        )
        for write in writes:
            with pytest.raises(PermissionError):
                await write
        assert server.requests.log == []
        await client.get(NAMESPACE, "default")
        await client.create(CONFIG_MAP, NAMED, dry_run=True)
        assert server.requests.writes == []
        is_open = True
        await client.create(CONFIG_MAP, NAMED)
    assert [each.path for each in server.requests.writes] == [
        "/api/v1/namespaces/default/configmaps"
    ]


async def test_every_answer_is_counted() -> None:
    """The observer gets method and code, also of failures: 0 means no response."""
    heard: list[tuple[str, int]] = []
    server = FakeApiServer()
    async with (
        server,
        Client(server.endpoint, on_response=lambda *each: heard.append(each)) as client,
    ):
        await client.create(CONFIG_MAP, NAMED)
        with pytest.raises(NotFound):
            await client.get(CONFIG_MAP, "absent", "default")
        await server.stop()
        with pytest.raises(Unreachable):
            await client.get(CONFIG_MAP, "one", "default")
    assert heard == [("POST", 201), ("GET", 404), ("GET", 0)]


async def test_the_error_of_a_429_has_its_retry_after() -> None:
    """The error of a 429 has the server's Retry-After; the client itself does not retry."""
    async with FakeApiServer() as server, Client(server.endpoint) as client:
        server.fail(1, 429, retry_after="7")
        with pytest.raises(TooManyRequests) as caught:
            await client.get(NAMESPACE, "default")
        assert caught.value.retry_after == 7
        assert len(server.requests.log) == 1


@pytest.mark.parametrize("code", [200, 502])
async def test_an_html_page_is_an_error(code: int) -> None:
    """HTML of a proxy on the way is an error of the server's, without its text."""
    async with FakeApiServer() as server, Client(server.endpoint) as client:
        server.fail(1, code, garbage="<html>hunter2</html>")
        with pytest.raises(ServerError) as caught:
            await client.get(NAMESPACE, "default")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "[]",
        "{",
        "null",
        "{}",
        '{"metadata":{},"items":{}}',
        '{"metadata":{},"items":[{"a":NaN}]}',
    ],
)
async def test_a_response_that_is_not_a_list_is_an_error(answer: str) -> None:
    """A response that is not a list of the API is an error."""
    async with FakeApiServer() as server, Client(server.endpoint) as client:
        server.fail(1, 200, garbage=answer)
        with pytest.raises(ServerError):
            _ = [each async for each in client.list(CONFIG_MAP)]


async def test_requests_have_gatewrights_user_agent() -> None:
    """The user agent is Gatewright's; the proxy of the environment is not used."""
    async with (
        FakeApiServer() as server,
        Client(server.endpoint, user_agent="gatewright-test/1") as client,
    ):
        await client.get(NAMESPACE, "default")
    assert server.requests.log[-1].user_agent == "gatewright-test/1"


async def test_proxies_of_the_environment_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Proxies of the environment are ignored."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    async with FakeApiServer() as server, Client(server.endpoint) as client:
        assert await client.get(NAMESPACE, "default")


async def test_a_token_is_sent_and_never_shown(caplog: pytest.LogCaptureFixture) -> None:
    """Neither the token nor a body is in an error, its causes, a log line or the endpoint's representation."""
    caplog.set_level(logging.DEBUG)
    secret = {
        "metadata": {"name": "Not_A_Name", "namespace": "default"},
        "stringData": {"a": "hunter2"},
    }
    async with FakeApiServer(token="canary-token") as server:
        endpoint = server.endpoint
        async with Client(endpoint) as client:
            shown = [repr(endpoint), repr(client)]
            for fault in (None, 400, 500, 429):
                if fault:
                    server.fail(1, fault)
                with pytest.raises(ApiError) as caught:
                    await client.create(SECRET, secret)
                shown.append("".join(traceback.format_exception(caught.value)))
            await server.stop()
            with pytest.raises(Unreachable) as unreachable:
                await client.create(SECRET, secret)
            shown.append("".join(traceback.format_exception(unreachable.value)))
    for text in (*shown, caplog.text):
        assert "canary" not in text
        assert "hunter2" not in text


async def test_a_wrong_token_is_unauthorized() -> None:
    """The token may have been renewed, so the request can be retried."""
    server = FakeApiServer(token="right")
    async with server, Client(Endpoint(server.url, authorization=static_token("wrong"))) as client:
        with pytest.raises(Unauthorized) as caught:
            await client.get(NAMESPACE, "default")
    assert caught.value.retryable


async def test_credentials_that_fail_later_are_unauthorized() -> None:
    """A missing token file or a failing plugin fails the request, not the process."""

    async def broken() -> str:
        raise CredentialsError("/token: no such file or directory")

    async with (
        FakeApiServer() as server,
        Client(Endpoint(server.url, authorization=broken)) as client,
    ):
        with pytest.raises(Unauthorized, match="no such file"):
            await client.get(NAMESPACE, "default")
        assert server.requests.log == []
