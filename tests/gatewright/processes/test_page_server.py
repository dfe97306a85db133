"""The server of metrics and probes: its answers, slow clients and busy event loops."""

import asyncio
import logging
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from contextlib import ExitStack, suppress
from http import HTTPStatus

import pytest

from gatewright.processes import page_server
from gatewright.processes.page_server import PageResponse, serve_pages

LOOPBACK = ("127.0.0.1", 0)
WITHOUT_DESCRIPTORS = """
import asyncio, logging, os, resource, socket, urllib.request
from gatewright.processes.page_server import PageResponse, serve_pages

class Noted(logging.StreamHandler):
    def emit(self, record):
        super().emit(record)
        loop.call_soon_threadsafe(logged.set)

async def main():
    global loop, logged
    loop, logged = asyncio.get_running_loop(), asyncio.Event()
    async with serve_pages([(("127.0.0.1", 0), {"/": lambda _: PageResponse(b"ok")})]) as (address,):
        clients = [socket.socket() for _ in range(20)]
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        taken = []
        try:
            while True:
                taken.append(os.open("/dev/null", os.O_RDONLY))
        except OSError:
            pass
        for client in clients:
            client.connect(address)
        await logged.wait()
        for each in [*taken, *(client.detach() for client in clients)]:
            os.close(each)
        page = f"http://127.0.0.1:{address[1]}/"
        print(await asyncio.to_thread(lambda: urllib.request.urlopen(page).read().decode()), flush=True)
        os._exit(0)  # asyncio accepts again after a second, and fails if the listener is closed by then

logging.basicConfig(format="%(levelname)s %(message)s", handlers=[Noted()])
asyncio.run(main())
"""


def here(accept: str) -> PageResponse:
    """Return a page with the Accept header."""
    return PageResponse.line(HTTPStatus.OK, f"accept: {accept}")


async def exchanged(address, request: bytes) -> list[str]:
    """Return the response lines of a request, read until the server closes the connection."""
    reader, writer = await asyncio.open_connection(*address)
    writer.write(request)
    answer = await reader.read()
    writer.close()
    return answer.decode().split("\r\n")


def get(path: str) -> bytes:
    """Return a request for a page."""
    return f"GET {path} HTTP/1.1\r\nHost: here\r\n\r\n".encode()


@pytest.mark.parametrize(
    ("request_line", "status", "body"),
    [
        ("GET /here HTTP/1.1", "HTTP/1.1 200 OK", "accept: text/*\n"),
        ("GET /here?verbose HTTP/1.0", "HTTP/1.0 200 OK", "accept: text/*\n"),
        ("HEAD /here HTTP/1.1", "HTTP/1.1 200 OK", ""),
        ("GET / HTTP/1.1", "HTTP/1.1 404 Not Found", "not found; pages: /here\n"),
        ("DELETE /here HTTP/1.1", "HTTP/1.1 405 Method Not Allowed", "GET only\n"),
    ],
)
async def test_each_request_has_one_answer(request_line, status, body):
    """Pages answer GET and HEAD; other requests get an error with a reason."""
    async with serve_pages([(LOOPBACK, {"/here": here})]) as (address,):
        first, *lines = await exchanged(
            address, f"{request_line}\r\nHost: here\r\naccept: text/*\r\n\r\n".encode()
        )
    headers = dict(line.split(": ") for line in lines[:-2])
    del headers["Date"]
    expected = {
        "Content-Type": "text/plain; charset=utf-8",
        "Content-Length": str(len(body) or len("accept: text/*\n")),
        "Server": "gatewright",
    }
    if "HTTP/1.1" in status:
        expected["Connection"] = "close"
    if "405" in status:
        expected["Allow"] = "GET, HEAD"
    assert (first, headers, lines[-1]) == (status, expected, body)


@pytest.mark.parametrize("sent", ["GET /here HTTP/1.1", "GET /here SMTP", "\x16\x03\x01", ""])
async def test_other_protocols_get_400_and_no_log_line(caplog, sent):
    """A client of another protocol, or one without a Host, gets 400."""
    async with serve_pages([(LOOPBACK, {"/here": here})]) as (address,):
        answer = await exchanged(address, f"{sent}\r\nno header\r\n\r\n".encode())
    assert (answer[0], caplog.messages) == ("HTTP/1.0 400 Bad Request", [])


async def test_a_page_may_finish_in_a_thread(caplog):
    """Slow work runs in a thread; an error there is answered with 500."""
    threads: list[threading.Thread] = []

    def finished() -> PageResponse:
        threads.append(threading.current_thread())
        return PageResponse.line(HTTPStatus.OK, "done")

    pages = {"/long": lambda accept: finished, "/wrong": lambda accept: lambda: 1 / 0}
    async with serve_pages([(LOOPBACK, pages)]) as (address,):
        assert (await exchanged(address, get("/long")))[-1] == "done\n"
        assert (await exchanged(address, get("/wrong")))[0] == "HTTP/1.1 500 Internal Server Error"
    assert threading.current_thread() not in threads
    assert [type(each.exc_info[1]) for each in caplog.records] == [ZeroDivisionError]


async def test_a_blocked_loop_is_reported():
    """While the loop of the process is blocked, the answer is 503 with the waiting time."""
    found: list[tuple[int, str]] = []
    blocked, told = threading.Event(), threading.Event()

    def blocking(_: str) -> PageResponse:
        blocked.set()
        told.wait(10)
        return PageResponse.line(HTTPStatus.OK, "too late")

    def ask(address) -> None:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{address[1]}/", timeout=60)
        except urllib.error.HTTPError as error:
            with error:
                found.append((error.code, error.read().decode()))
        told.set()

    async with serve_pages([(LOOPBACK, {"/": blocking})], page_timeout=0.05) as (address,):
        asking = threading.Thread(target=ask, args=(address,))
        asking.start()
        await asyncio.to_thread(blocked.wait, 10)
        await asyncio.to_thread(asking.join)
    assert found == [(503, "the event loop has not answered for 0.05 s\n")]


async def test_while_the_loop_is_blocked_the_last_answer_is_repeated():
    """The kubelet does not restart a process because of a short pause."""
    found: list[str] = []
    told = threading.Event()

    def ask(address) -> None:
        with urllib.request.urlopen(f"http://127.0.0.1:{address[1]}/", timeout=60) as answer:
            found.append(answer.read().decode())
        told.set()

    async with serve_pages(
        [(LOOPBACK, {"/": lambda _: PageResponse.line(HTTPStatus.OK, "well")})], page_timeout=0.05
    ) as (address,):
        await asyncio.to_thread(ask, address)
        told.clear()
        asking = threading.Thread(target=ask, args=(address,))
        asking.start()
        told.wait(10)  # blocks the loop until there is an answer
        asking.join()
    assert found == ["well\n", "well\n"]


async def test_a_failing_page_is_an_internal_error(caplog):
    """The client gets 500, and the log has the error."""

    def failing(_: str) -> PageResponse:
        raise LookupError("nothing is known")

    async with serve_pages([(LOOPBACK, {"/": failing})]) as (address,):
        answer = await exchanged(address, get("/"))
    assert answer[0] == "HTTP/1.1 500 Internal Server Error"
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("gatewright.listeners", logging.ERROR)
    assert record.message == "Error handling request from 127.0.0.1"
    assert record.exc_info[0] is LookupError


async def test_a_slow_client_is_disconnected(monkeypatch):
    """A request must be complete within a time limit; an incomplete one gets no answer."""
    monkeypatch.setattr(page_server, "WHOLE_REQUEST", 0.05)
    async with serve_pages([(LOOPBACK, {"/here": here})]) as (address,):
        assert await exchanged(address, b"GET /here HTT") == [""]


@pytest.mark.long
async def test_a_client_that_does_not_read_is_disconnected(monkeypatch):
    """An answer is kept for a limited time."""
    monkeypatch.setattr(page_server, "WHOLE_REQUEST", 0.2)
    large = PageResponse(b"." * 16_000_000)
    async with serve_pages([(LOOPBACK, {"/large": lambda _: large})]) as (address,):
        reader, writer = await asyncio.open_connection(*address)
        writer.write(get("/large"))
        await asyncio.sleep(0.5)
        with suppress(ConnectionResetError):
            assert len(await reader.read()) < len(large.body)
        writer.close()


async def test_an_endless_head_is_rejected():
    """The server stores no more than the limit."""
    async with serve_pages([(LOOPBACK, {"/here": here})]) as (address,):
        reader, writer = await asyncio.open_connection(*address)
        writer.write(b"GET /here HTTP/1.1\r\n" + b"a: b\r\n" * 100_000)
        with suppress(ConnectionResetError):  # the kernel decides which of the two comes first
            assert (await reader.readline()) == b"HTTP/1.0 400 Bad Request\r\n"
        writer.close()


async def test_open_connections_do_not_block_new_ones(monkeypatch):
    """Beyond the limit the oldest connection is closed, so that a probe always gets one."""
    monkeypatch.setattr(page_server, "MAX_CONNECTIONS", 3)
    async with serve_pages([(LOOPBACK, {"/here": here})]) as (address,):
        held = [await asyncio.open_connection(*address) for _ in range(3)]
        assert (await exchanged(address, get("/here")))[0] == "HTTP/1.1 200 OK"
        assert await held[0][0].read() == b""
        for _, writer in held:
            writer.close()


@pytest.mark.long
def test_without_file_descriptors_there_is_one_log_line():
    """Probes are answered again as soon as there are some; meanwhile the log stays short."""
    ended = subprocess.run(
        [sys.executable, "-c", WITHOUT_DESCRIPTORS], capture_output=True, text=True, timeout=60
    )
    assert (ended.returncode, ended.stdout) == (0, "ok\n")
    assert ended.stderr == (
        "WARNING cannot accept connections for metrics and probes: Too many open files\n"
    )


async def test_without_a_host_every_interface_is_listened_on(unused_tcp_port):
    """IPv4, and IPv6 if available."""
    families = [("127.0.0.1", socket.AF_INET)]
    with ExitStack() as stack:
        try:
            stack.enter_context(socket.create_server(("::1", 0), family=socket.AF_INET6))
            families.append(("::1", socket.AF_INET6))
        except OSError:
            pass
    async with serve_pages([((None, unused_tcp_port), {"/here": here})]) as (address,):
        assert address == (None, unused_tcp_port)
        for host, _ in families:
            assert (await exchanged((host, unused_tcp_port), get("/here")))[0] == "HTTP/1.1 200 OK"


async def test_connections_are_closed_at_the_end():
    """The thread has ended too."""
    async with serve_pages([(LOOPBACK, {"/here": here})]) as (address,):
        reader, writer = await asyncio.open_connection(*address)
        assert (await exchanged(address, get("/here")))[0] == "HTTP/1.1 200 OK"
        assert "listeners" in {thread.name for thread in threading.enumerate()}
    assert await reader.read() == b""
    writer.close()
    assert "listeners" not in {thread.name for thread in threading.enumerate()}
