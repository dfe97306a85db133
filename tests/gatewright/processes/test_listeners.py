"""The HTTP listeners of a process."""

import socket

import aiohttp
import pytest
from prometheus_client import Counter

from gatewright.processes.listeners import ProcessHealth, listening
from gatewright.processes.page_server import ListenError


@pytest.fixture
async def client():
    """An HTTP client."""
    async with aiohttp.ClientSession() as session:
        yield session


async def get(client, address, path) -> tuple[int, str]:
    """Fetch a page of a listener."""
    async with client.get(f"http://{address[0]}:{address[1]}{path}") as response:
        return response.status, await response.text()


async def test_readiness_names_each_check(client):
    """Each check has a line, and the status is 503 while one of them fails."""
    wrong: list[str] = ["not loaded"]
    observed = ProcessHealth(
        ready={"certificate": lambda: None, "policies": lambda: wrong[0] if wrong else None}
    )
    async with listening(observed, ("127.0.0.1", 0), ("127.0.0.1", 0)) as (_, health):
        assert await get(client, health, "/readyz") == (
            503,
            "[+] certificate\n[-] policies: not loaded\nfailed\n",
        )
        wrong.clear()
        assert await get(client, health, "/readyz") == (200, "[+] certificate\n[+] policies\nok\n")
        assert await get(client, health, "/healthz") == (200, "ok\n")


async def test_metrics_and_health_have_a_listener_each(client):
    """Each serves only its own pages."""
    observed = ProcessHealth()
    Counter("reviews", "Reviews.", registry=observed.registry).inc()
    async with listening(observed, ("127.0.0.1", 0), ("127.0.0.1", 0)) as (metrics, health):
        assert "reviews_total 1.0" in (await get(client, metrics, "/metrics"))[1]
        assert (await get(client, health, "/metrics"))[0] == 404
        assert (await get(client, metrics, "/readyz"))[0] == 404


async def test_one_listener_is_shared_when_the_addresses_are_the_same(client, unused_tcp_port):
    """One port serves both pages."""
    address = ("127.0.0.1", unused_tcp_port)
    async with listening(ProcessHealth(), address, address) as (metrics, health):
        assert metrics == health
        assert (await get(client, address, "/metrics"))[0] == 200
        assert (await get(client, address, "/healthz"))[0] == 200


async def test_a_failing_listener_closes_the_others(client, unused_tcp_port):
    """If the second address is taken, the first is released."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        both = ("127.0.0.1", unused_tcp_port), taken.getsockname()
        with pytest.raises(ListenError, match="cannot listen on "):
            async with listening(ProcessHealth(), *both):
                pass
    with pytest.raises(aiohttp.ClientConnectorError):
        await get(client, both[0], "/metrics")
