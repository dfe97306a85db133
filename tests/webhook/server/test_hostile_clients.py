"""No request and no client harms another: during an attack, a well-behaved client sees no failure."""

import asyncio
import json
import os
import random
import time
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.controlplane.gobuild import build
from tests.waiting import WITHIN, eventually
from tests.webhook.server.attacked import (
    SECONDS,
    TIMEOUT,
    Server,
    attacked,
)
from tests.webhook.server.conftest import Wire, review
from tests.webhook.server.hostile import (
    BODIES,
    COSTLY,
    CROWDS,
    OBJECTS,
    SLOW,
    deployment,
    ingress,
    pod,
    request,
)
from tests.webhook.server.tenants import objects, reviews
from webhook.engine.look_ups import INGRESS, LIMIT_RANGE
from webhook.server.cluster_policies import RESOURCES

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory, unused_tcp_port_factory) -> AsyncIterator[Server]:
    """A webhook that bears one attack after the other."""
    async with attacked(tmp_path_factory.mktemp("shared"), unused_tcp_port_factory) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def server(shared: Server) -> AsyncIterator[Server]:
    """The webhook, without objects of earlier tests."""
    yield shared
    for resource in (*RESOURCES, INGRESS, LIMIT_RANGE):
        for object in shared.api_server.list(resource):
            metadata = object["metadata"]
            shared.api_server.delete(resource, metadata["name"], metadata.get("namespace", ""))


@pytest.mark.parametrize("attack", [*BODIES, *SLOW])
async def test_no_client_harms_another(server: Server, attack: str) -> None:
    """The attackers send expensive bodies five times per second, send slowly, or send nothing."""
    async with server.asked():
        await server.attack(attack)


@pytest.mark.parametrize("sent", [b"", request(pod())], ids=["a body", "reviews"])
async def test_tls_records_of_one_byte_harm_no_other_client(server: Server, sent: bytes) -> None:
    """The attacker is written in Go, which sends several times as many as Python."""
    program = build(Path(__file__).parent / "records", ".", "records")
    where = ("-address", f"127.0.0.1:{server.port}", "-ca", str(server.directory / "ca.crt"))
    async with server.asked():
        await server.attacked_by("nice", str(program), *where, "-seconds", str(SECONDS), sent=sent)


@pytest.mark.parametrize("attack", CROWDS)
async def test_no_address_harms_another(server: Server, attack: str) -> None:
    """A hundred connections of one address send expensive reviews, while another address sends small ones."""
    async with server.asked(address="127.0.0.2"):
        await server.attack(attack)


@pytest.mark.parametrize("attack", ["large", "large mutations", "8 MB"])
async def test_no_address_delays_the_large_reviews_of_another(server: Server, attack: str) -> None:
    """Addresses take turns, however many connections one of them has."""
    async with server.asked(TIMEOUT, address="127.0.0.2", body=deployment(600), workers=1):
        await server.attack(attack)


@pytest.mark.parametrize("name", OBJECTS)
async def test_no_policy_object_harms_a_review(server: Server, name: str) -> None:
    """The object is stored and replaced repeatedly, as a tenant may, and compiled each time."""
    async with server.asked():
        server.api_server.create(RESOURCES[1], OBJECTS[name])
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            await asyncio.sleep(0.2)
            server.api_server.change(
                RESOURCES[1], "it", {"spec": {"failurePolicy": "Ignore"}}, namespace="shop"
            )
            server.api_server.change(
                RESOURCES[1], "it", {"spec": {"failurePolicy": "Fail"}}, namespace="shop"
            )


async def test_the_policies_of_a_tenant_harm_no_other_namespace(server: Server) -> None:
    """Fifty policies, for which there is just room, cost as much as their budget allows for each review."""
    for number in range(50):
        server.api_server.create(
            RESOURCES[1], COSTLY | {"metadata": {"name": f"p{number}", "namespace": "shop"}}
        )
    async with server.client() as wire, asyncio.timeout(WITHIN):

        async def is_in_force() -> bool:
            return b"shop/p49" in (await wire.post(pod())).body

        await eventually(is_in_force)
    async with server.asked(body=json.dumps(review(namespace="other")).encode()):
        await server.attack("pod")


@pytest.mark.parametrize("seed", range(int(os.environ.get("TENANTS", "6"))))
async def test_nothing_that_a_tenant_writes_harms_another_namespace(
    server: Server, seed: int
) -> None:
    """Random policies and exceptions are replaced one after the other, while reviews are judged."""
    draw = random.Random(seed)
    counts = Counter[str]()
    async with server.asked(body=json.dumps(review(namespace="other")).encode()):
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            for object in objects(draw):
                resource = RESOURCES[2 if object["kind"] == "PolicyException" else 1]
                if server.api_server.get(resource, "it", "shop") is not None:
                    server.api_server.delete(resource, "it", "shop")
                server.api_server.create(resource, object)
                counts[object["kind"]] += 1
            await asyncio.sleep(0.1)  # until it is in force
            async with asyncio.TaskGroup() as attackers:
                for path, body in reviews(draw):
                    attackers.create_task(send(server, path, body, counts))
    print(f"seed {seed}: {dict(counts)}")


async def test_looked_up_objects_of_tenants_harm_no_other_namespace(server: Server) -> None:
    """Five thousand Ingresses, and a LimitRange of a megabyte, while policies read them in each review."""
    for name, policy in (("hosts", "unique-ingress-hosts"), ("limits", "resource-limits")):
        about = {"metadata": {"name": name}, "spec": {"policy": policy}}
        server.api_server.create(RESOURCES[0], about)
    for number in range(5000):
        metadata = {"name": f"i{number}", "namespace": "shop", "annotations": {"a": "x" * 300}}
        rules = [{"host": f"h{number}.example.com"}]
        server.api_server.create(INGRESS, {"metadata": metadata, "spec": {"rules": rules}})
    limits = [{"type": "Container", "default": {f"r{n}": "1" for n in range(100)}}] * 700
    metadata = {"name": "large", "namespace": "shop"}
    server.api_server.create(LIMIT_RANGE, {"metadata": metadata, "spec": {"limits": limits}})
    counts = Counter[str]()
    until = time.monotonic() + 15
    while counts["answered 200"] < 20 and time.monotonic() < until:  # the watches begin
        await send(server, "/validate", ingress(2), counts)
        await asyncio.sleep(0.2)
    async with server.asked(body=json.dumps(review(namespace="other")).encode()):
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            async with asyncio.TaskGroup() as attackers:
                for body in (ingress(2), deployment(3)) * 3:
                    attackers.create_task(send(server, "/validate", body, counts))
    print(dict(counts))


async def send(server: Server, path: str, body: bytes, counts: Counter[str]) -> None:
    """Send a tenant's review, and count the responses."""
    async with server.client() as wire:
        answer = await wire.post(body, f"{path}?timeout=3s")
    response = json.loads(answer.body)["response"] if answer.status == 200 else {}
    code = response.get("status", {}).get("code", answer.status)
    counts[f"answered {code}"] += 1


async def test_it_ends_within_40_seconds_without_a_failed_call(
    tmp_path: Path, unused_tcp_port_factory
) -> None:
    """Open connections do not matter: idle after a request, in the middle of one, or without any."""
    async with attacked(tmp_path, unused_tcp_port_factory) as server:
        held = [
            Wire(*await asyncio.open_connection("127.0.0.1", server.port, ssl=server.trusts))
            for _ in range(3)
        ]
        await held[0].post(review("good"))
        await held[1].send(b"POST /validate HTTP/1.1\r\n")
        async with server.asked(ends=True) as client:
            started = time.monotonic()
            server.process.terminate()
            await asyncio.sleep(3)  # the endpoint is removed
            client.is_stopped = True
        await server.process.wait()
        assert time.monotonic() - started < 40
        assert server.process.returncode == 0
        for wire in held:
            wire.writer.transport.abort()
