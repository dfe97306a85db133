"""A webhook under attack, and a well-behaved client that must see no failure."""

import asyncio
import json
import os
import ssl
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from certs import issue_ca, issue_serving
from config.api.policy import AdmissionPolicy, ClusterAdmissionPolicy
from config.api.policy_exception import PolicyException
from config.crds import definition
from gatewright.testing.fake_apiserver import FakeApiServer
from tests.gatewright.processes.test_webhook_process import kubeconfig
from tests.waiting import eventually
from tests.webhook.server.conftest import Wire, review, write_pair
from webhook.policy_sets.catalogue import catalogue
from webhook.server.cluster_data import NAMESPACES

SECONDS = float(os.environ.get("ATTACK_SECONDS", "2"))  # the workflow of the forge attacks longer
WORKERS = 4
TIMEOUT = 3.0  # seconds
P99 = 2.0  # seconds; 0.25 on an idle machine, and up to 1.2 with six test processes on two cores
PROBE_TIMEOUT = 4  # seconds, as in the chart
GROWTH = 192  # MB during one attack
MEMORY = 512  # MB in all, the chart's limit: one webhook bears many attacks
NEED_NO_CLUSTER = {"now"}


def policies() -> str:
    """Return a policy set of all policies that need no parameters and no look-ups."""
    documents = []
    for policy in catalogue().values():
        try:
            needs = policy.needed_look_ups(policy.params())
        except ValueError:
            continue  # the policy has a parameter without a default
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
    ends: bool = False  # whether the process stops being ready during the attack
    latencies: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    is_stopped: bool = False

    async def run(self) -> None:
        """Send reviews until stopped."""
        await asyncio.gather(self._kubelet(), *(self._worker() for _ in range(self.workers)))

    async def _kubelet(self) -> None:
        """Probe /healthz and /readyz as the kubelet does."""
        while not self.is_stopped and not self.ends:
            for path in ("/healthz", "/readyz"):
                try:
                    async with asyncio.timeout(PROBE_TIMEOUT):
                        status = await self._probe(path)
                    if b" 200 " not in status:
                        self.failures.append(f"{path}: {status!r}")
                except (OSError, TimeoutError) as error:
                    self.failures.append(f"{path}: {error!r}")
            await asyncio.sleep(0.2)

    async def _probe(self, path: str) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.health)
        try:
            writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            return await reader.readline()
        finally:
            writer.transport.abort()

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
    registries: tuple[str, str]  # addresses of a valid and a hostile registry

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

    def reset_peak(self) -> float:
        """Let the peak memory begin again at the present memory; return that in megabytes."""
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")
        return self.memory("VmRSS")

    def memory(self, name: str) -> float:
        """Return the memory of the process in megabytes: VmRSS, or its peak, VmHWM."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return int(next(line.split()[1] for line in lines if line.startswith(f"{name}:"))) / 1024

    @asynccontextmanager
    async def asked(self, highest: float = P99, **differs: Any) -> AsyncIterator[Client]:
        """Run a well-behaved client and check its results; its p99 must be below the highest."""
        before = self.reset_peak()
        client = Client(self.port, self.health, self.trusts, **differs)
        running = asyncio.create_task(client.run())
        await asyncio.sleep(0.3)
        yield client
        client.is_stopped = True
        await running
        latencies = sorted(client.latencies)
        p99, peak = latencies[int(len(latencies) * 0.99)], self.memory("VmHWM")
        print(
            f"{len(latencies)} calls, {len(client.failures)} failed, p99 {p99 * 1000:.0f} ms, {peak:.0f} MB"
        )
        assert not client.failures, client.failures
        assert len(latencies) > 2 * client.workers
        assert p99 < highest
        assert peak - before < GROWTH
        assert peak < MEMORY

    async def attack(self, name: str) -> None:
        """Run a hostile client for some seconds."""
        arguments = (name, str(self.port), str(self.directory / "ca.crt"), str(SECONDS))
        await self.attacked_by(sys.executable, "-m", "tests.webhook.server.hostile", *arguments)

    async def attacked_by(self, *command: str, sent: bytes = b"") -> None:
        """Run a hostile program for some seconds."""
        attacker = await asyncio.create_subprocess_exec(*command, stdin=asyncio.subprocess.PIPE)
        try:
            async with asyncio.timeout(SECONDS + 60):  # it has a low priority
                await attacker.communicate(sent)
            assert attacker.returncode == 0
        finally:
            if attacker.returncode is None:
                attacker.kill()
                await attacker.wait()


@asynccontextmanager
async def attacked(
    tmp_path: Path, unused_tcp_port_factory: Callable[[], int]
) -> AsyncIterator[Server]:
    """Run a webhook that answers."""
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
        for namespace in ("shop", "other"):
            api_server.create(NAMESPACES, {"metadata": {"name": namespace}})
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

    async def answers() -> bool:
        try:
            async with server.client() as wire:
                return (await wire.post(review("good"))).status == 200
        except (OSError, EOFError):
            return False

    await eventually(answers)
