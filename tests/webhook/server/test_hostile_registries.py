"""No registry harms a review: during an attack, a well-behaved client sees no failure."""

import asyncio
import secrets
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from cryptography.hazmat.primitives.asymmetric import ec

from tests.waiting import WITHIN, eventually
from tests.webhook.registries.conftest import SmallRegistry
from tests.webhook.registries.hostile import ATTACKS
from tests.webhook.registries.signing import bundle, pem
from tests.webhook.server.attacked import (
    SECONDS,
    WORKERS,
    Server,
    attacked,
)
from tests.webhook.server.hostile import (
    pod,
)
from webhook.server.cluster_policies import RESOURCES

pytestmark = [pytest.mark.long, pytest.mark.quiet]

KEY = ec.generate_private_key(ec.SECP256R1())
SIGNED = f"sha256:{'a' * 64}"


@pytest.fixture
async def server(tmp_path: Path, unused_tcp_port_factory) -> AsyncIterator[Server]:
    """A webhook that answers."""
    async with attacked(tmp_path, unused_tcp_port_factory) as running:
        yield running


async def put_image_policies_in_force(server: Server) -> bytes:
    """Want images signed, pinned and attested; return a review of an image that was verified."""
    names = [f"{host}/team" for host in server.registries]
    entry = {"images": [*names, server.registries[1]], "keys": [pem(KEY)]}
    specs: dict[str, Any] = {
        "image-pins": {"images": names},
        "image-signatures": {"signatures": [entry]},
    }
    for name, params in specs.items():
        spec = {"policy": name, "params": params}
        server.api_server.create(RESOURCES[0], {"metadata": {"name": name}, "spec": spec})
    containers = [{"name": "app", "image": f"{server.registries[0]}/team/shop@{SIGNED}"}]
    body = pod(spec={"containers": containers})
    async with server.client() as wire, asyncio.timeout(WITHIN):
        unsigned = pod(spec={"containers": [{"name": "app", "image": f"{names[0]}/evil"}]})

        async def is_in_force() -> bool:
            return b"image-signatures" in (await wire.post(unsigned)).body

        await eventually(is_in_force)
        answer = await wire.post(body)
        assert b"image-signatures" not in answer.body
    return body


@asynccontextmanager
async def registries(server: Server) -> AsyncIterator[None]:
    """Run the hostile registry, and one with the image that the good client runs."""
    small = SmallRegistry()
    small.attach(SIGNED, bundle(KEY, SIGNED))
    good, hostile = (int(each.rpartition(":")[2]) for each in server.registries)
    command = (sys.executable, "-m", "tests.webhook.registries.hostile", str(hostile))
    process = await asyncio.create_subprocess_exec(*command)
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", small.answer)
    try:
        async with TestServer(application, port=good):
            yield
    finally:
        process.kill()
        await process.wait()


def unknown_images(host: str, attack: str, number: int) -> bytes:
    """Return a review of a pod with images that were never looked up."""
    digests = [secrets.token_hex(32) for _ in range(number)]
    images = [f"{host}/{attack}/of-{digest}@sha256:{digest}" for digest in digests]
    return pod(spec={"containers": [{"name": each[-9:], "image": each} for each in images]})


@pytest.mark.parametrize("number", [10])
@pytest.mark.parametrize("attack", ATTACKS)
async def test_no_registry_harms_a_review(server: Server, attack: str, number: int) -> None:
    """New images are looked up in it all the time, while verified images of another registry are admitted."""
    async with registries(server):
        body = await put_image_policies_in_force(server)
        counts = Counter[str]()
        end = time.monotonic() + SECONDS

        async def attacker() -> None:
            while time.monotonic() < end:
                async with server.client() as wire:
                    images = unknown_images(server.registries[1], attack, number)
                    answer = await wire.post(images, "/validate?timeout=3s")
                await asyncio.sleep(0.2)
                is_denied = b"- image-signatures: " in answer.body
                counts["denied" if is_denied else f"{answer.status} {answer.body!r}"] += 1

        async with server.asked(body=body), asyncio.TaskGroup() as attackers:
            for _ in range(WORKERS):
                attackers.create_task(attacker())
        print(attack, dict(counts))
        assert counts.keys() == {"denied"}
