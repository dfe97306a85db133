"""No request and no client harms another: during an attack, a well-behaved client sees no failure."""

import asyncio
import json
import os
import random
import secrets
import ssl
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web
from aiohttp.test_utils import TestServer
from cryptography.hazmat.primitives.asymmetric import ec

from certs import issue_ca, issue_serving
from config.api.policy import AdmissionPolicy, ClusterAdmissionPolicy
from config.api.policy_exception import PolicyException
from config.crds import definition
from controller.fake_apiserver import FakeApiServer
from tests.controlplane.gobuild import build
from tests.gatewright.processes.test_webhook_process import kubeconfig
from tests.webhook.registries.conftest import SmallRegistry
from tests.webhook.registries.hostile import ATTACKS
from tests.webhook.registries.signing import bundle, pem
from tests.webhook.server.conftest import Wire, review, write_pair
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
from webhook.policy_sets.catalogue import catalogue
from webhook.server.cluster_data import INGRESS, LIMIT_RANGE, NAMESPACES
from webhook.server.cluster_policies import RESOURCES

pytestmark = pytest.mark.long

SECONDS = float(os.environ.get("ATTACK_SECONDS", "4"))
WORKERS = 4
KEY = ec.generate_private_key(ec.SECP256R1())
SIGNED = f"sha256:{'a' * 64}"
TIMEOUT = 3.0  # seconds
P99 = 0.25  # seconds
MEMORY = 256  # MB
NEED_NO_CLUSTER = {"now"}


def policies() -> str:
    """Return a policy set of all policies that need no parameters and no look-ups."""
    documents = []
    for policy in catalogue().values():
        try:
            needs = policy.needed(policy.params())
        except ValueError:
            continue  # it has a parameter without a default
        if not needs - NEED_NO_CLUSTER and not policy.always:
            metadata, spec = {"name": policy.name}, {"policy": policy.name}
            kind = {"apiVersion": "gatewright.io/v1alpha1", "kind": "ClusterAdmissionPolicy"}
            documents.append({**kind, "metadata": metadata, "spec": spec})
    return yaml.safe_dump_all(documents)


@dataclass
class Client:
    """A client like the API server: keep-alive, a time-out of 3 seconds, no retries."""

    port: int
    health: int
    trusts: ssl.SSLContext
    address: str = "127.0.0.1"
    body: bytes = json.dumps(review("good")).encode()
    workers: int = WORKERS
    ends: bool = False  # whether the process is not ready any more in between
    latencies: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    is_stopped: bool = False

    async def run(self) -> None:
        """Send reviews until stopped."""
        await asyncio.gather(self._kubelet(), *(self._worker() for _ in range(self.workers)))

    async def _kubelet(self) -> None:
        """Ask whether the process is healthy and ready, with a kubelet's time-out of a second."""
        while not self.is_stopped and not self.ends:
            for path in ("/healthz", "/readyz"):
                try:
                    async with asyncio.timeout(1):
                        reader, writer = await asyncio.open_connection("127.0.0.1", self.health)
                        writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
                        status = await reader.readline()
                        writer.transport.abort()
                    if b" 200 " not in status:
                        self.failures.append(f"{path}: {status!r}")
                except (OSError, TimeoutError) as error:
                    self.failures.append(f"{path}: {error!r}")
            await asyncio.sleep(0.2)

    async def _worker(self) -> None:
        wire = None
        while not self.is_stopped:
            started = time.perf_counter()
            try:
                async with asyncio.timeout(TIMEOUT):
                    if wire is None:
                        wire = Wire(
                            *await asyncio.open_connection(
                                "127.0.0.1",
                                self.port,
                                ssl=self.trusts,
                                local_addr=(self.address, 0),
                            )
                        )
                    answer = await wire.post(self.body, "/validate?timeout=3s")
                if answer.status != 200 or answer.response["uid"] != "u-1":
                    self.failures.append(f"{answer.status} {answer.body!r}")
                is_last = answer.headers.get("connection") == "close"
            except (OSError, EOFError, TimeoutError) as error:
                self.failures.append(repr(error))
                is_last = True
            self.latencies.append(time.perf_counter() - started)
            if is_last and wire is not None:
                wire.writer.transport.abort()
                wire = None
            await asyncio.sleep(0.01)
        if wire is not None:
            wire.writer.transport.abort()


@dataclass
class Server:
    """A webhook in a separate process, and the API server that it reads policy objects from."""

    process: asyncio.subprocess.Process
    port: int
    health: int
    directory: Path
    api_server: FakeApiServer
    registries: tuple[str, str]  # where a good and a hostile one may be

    @property
    def trusts(self) -> ssl.SSLContext:
        """The CA bundle for its clients."""
        return ssl.create_default_context(cafile=str(self.directory / "ca.crt"))

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Wire]:
        """Connect to the webhook."""
        wire = Wire(*await asyncio.open_connection("127.0.0.1", self.port, ssl=self.trusts))
        try:
            yield wire
        finally:
            wire.writer.transport.abort()

    @property
    def peak(self) -> float:
        """The peak memory of the process in megabytes."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return int(next(line.split()[1] for line in lines if line.startswith("VmHWM:"))) / 1024

    @asynccontextmanager
    async def asked(self, highest: float = P99, **differs: Any) -> AsyncIterator[Client]:
        """Run a well-behaved client and check its results; its p99 must be below the highest."""
        client = Client(self.port, self.health, self.trusts, **differs)
        running = asyncio.create_task(client.run())
        await asyncio.sleep(0.3)
        yield client
        client.is_stopped = True
        await running
        latencies = sorted(client.latencies)
        p99 = latencies[int(len(latencies) * 0.99)]
        print(
            f"{len(latencies)} calls, {len(client.failures)} failed, p99 {p99 * 1000:.0f} ms, {self.peak:.0f} MB"
        )
        assert client.failures == []
        assert len(latencies) > 5 * client.workers
        assert p99 < highest
        assert self.peak < MEMORY

    async def attack(self, name: str) -> None:
        """Let a hostile client run for a while."""
        arguments = (name, str(self.port), str(self.directory / "ca.crt"), str(SECONDS))
        await self.attacked_by(sys.executable, "-m", "tests.webhook.server.hostile", *arguments)

    async def attacked_by(self, *command: str, sent: bytes = b"") -> None:
        """Let a hostile program run for a while."""
        attacker = await asyncio.create_subprocess_exec(*command, stdin=asyncio.subprocess.PIPE)
        try:
            async with asyncio.timeout(SECONDS + 20):
                await attacker.communicate(sent)
            assert attacker.returncode == 0
        finally:
            if attacker.returncode is None:
                attacker.kill()


@pytest.fixture
async def server(tmp_path: Path, unused_tcp_port_factory) -> AsyncIterator[Server]:
    """A webhook that answers."""
    now = datetime.now(UTC)
    ca = issue_ca("hostile", now)
    (tmp_path / "ca.crt").write_bytes(ca.certificate)
    write_pair(issue_serving(ca, [], ["127.0.0.1"], now), tmp_path)
    (tmp_path / "policies.yaml").write_text(policies())
    port, metrics, health, *others = (unused_tcp_port_factory() for _ in range(5))
    good, hostile = (f"127.0.0.1:{each}" for each in others)
    async with FakeApiServer() as api_server:
        for kind in (ClusterAdmissionPolicy, AdmissionPolicy, PolicyException):
            api_server.define(definition(kind))
        api_server.create(NAMESPACES, {"metadata": {"name": "shop"}})
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "gatewright", "webhook"),
            *("--kubeconfig", str(kubeconfig(tmp_path / "kubeconfig", api_server.url))),
            *("--policies", str(tmp_path / "policies.yaml")),
            *("--tls-cert", str(tmp_path / "tls.crt"), "--tls-key", str(tmp_path / "tls.key")),
            *("--listen", f"127.0.0.1:{port}", "--metrics-listen", f"127.0.0.1:{metrics}"),
            *("--health-listen", f"127.0.0.1:{health}"),
            *("--insecure-registries", good, "--insecure-registries", hostile),
            stderr=asyncio.subprocess.DEVNULL,
        )
        running = Server(process, port, health, tmp_path, api_server, (good, hostile))
        try:
            await until_it_answers(running)
            yield running
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


async def until_it_answers(server: Server) -> None:
    """Wait until a review is answered."""
    async with asyncio.timeout(30):
        while True:
            try:
                wire = Wire(
                    *await asyncio.open_connection("127.0.0.1", server.port, ssl=server.trusts)
                )
                answer = await wire.post(review("good"))
                wire.writer.transport.abort()
                if answer.status == 200:
                    return
            except (OSError, EOFError):
                pass
            await asyncio.sleep(0.1)


@pytest.mark.parametrize("attack", [*BODIES, *SLOW])
async def test_no_client_harms_another(server: Server, attack: str) -> None:
    """Expensive bodies, sent five times a second, and clients that send slowly or nothing."""
    async with server.asked():
        await server.attack(attack)


@pytest.mark.parametrize("sent", [b"", request(pod())], ids=["a body", "reviews"])
async def test_tls_records_of_one_byte_harm_nobody(server: Server, sent: bytes) -> None:
    """A program in Go sends several times as many as one in Python."""
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
    """They take turns, however many connections one of them has."""
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
    server.api_server.create(NAMESPACES, {"metadata": {"name": "other"}})
    for number in range(50):
        server.api_server.create(
            RESOURCES[1], COSTLY | {"metadata": {"name": f"p{number}", "namespace": "shop"}}
        )
    async with server.client() as wire, asyncio.timeout(30):
        while b"shop/p49" not in (await wire.post(pod())).body:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    async with server.asked(body=json.dumps(review(namespace="other")).encode()):
        await server.attack("pod")


@pytest.mark.parametrize("seed", range(int(os.environ.get("TENANTS", "6"))))
async def test_nothing_that_a_tenant_writes_harms_another_namespace(
    server: Server, seed: int
) -> None:
    """Policies and exceptions at random, replaced one after the other, and reviews that they judge."""
    draw = random.Random(seed)
    server.api_server.create(NAMESPACES, {"metadata": {"name": "other"}})
    counts = Counter[str]()
    async with server.asked(body=json.dumps(review(namespace="other")).encode()):
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            for each in objects(draw):
                resource = RESOURCES[2 if each["kind"] == "PolicyException" else 1]
                if server.api_server.get(resource, "it", "shop") is not None:
                    server.api_server.delete(resource, "it", "shop")
                server.api_server.create(resource, each)
                counts[each["kind"]] += 1
            await asyncio.sleep(0.1)  # until it is in force
            async with asyncio.TaskGroup() as attackers:
                for path, body in reviews(draw):
                    attackers.create_task(send(server, path, body, counts))
    print(f"seed {seed}: {dict(counts)}")


async def test_looked_up_objects_of_tenants_harm_nobody(server: Server) -> None:
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
    server.api_server.create(NAMESPACES, {"metadata": {"name": "other"}})
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
    """Send a tenant's review, and count what is answered."""
    async with server.client() as wire:
        answer = await wire.post(body, f"{path}?timeout=3s")
    response = json.loads(answer.body)["response"] if answer.status == 200 else {}
    code = response.get("status", {}).get("code", answer.status)
    counts[f"answered {code}"] += 1


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
    async with server.client() as wire, asyncio.timeout(30):
        unsigned = pod(spec={"containers": [{"name": "app", "image": f"{names[0]}/evil"}]})
        while b"image-signatures" not in (await wire.post(unsigned)).body:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
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
    """Return a review of a pod with images that no registry was asked about before."""
    digests = [secrets.token_hex(32) for _ in range(number)]
    images = [f"{host}/{attack}/of-{digest}@sha256:{digest}" for digest in digests]
    return pod(spec={"containers": [{"name": each[-9:], "image": each} for each in images]})


@pytest.mark.parametrize("number", [10])
@pytest.mark.parametrize("attack", ATTACKS)
async def test_no_registry_harms_a_review(server: Server, attack: str, number: int) -> None:
    """It is asked about new images all the time, while verified images of another one are admitted."""
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


async def test_it_ends_within_40_seconds_without_a_failed_call(server: Server) -> None:
    """Open connections do not matter: idle after a request, in the middle of one, or without any."""
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
