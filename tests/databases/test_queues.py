"""The pods of queues, with real servers: messages survive them, and passwords follow the Secret."""

import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from config.api.appstack import AppStack
from controller.reconcilers.appstack import APP_STACK
from controller.runtime.plan import Apply, Observed
from kube.resource import JsonObject
from tests.databases.binaries import RABBITMQ, nats_client, nats_server, program
from tests.databases.instances import free_port
from tests.databases.pods import SECONDS, Machine, Pod
from tests.waiting import until

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PASSWORD = "12345678901234567890123456789e12"  # only digits, but for a letter that numbers may have
ANOTHER = "another0password0of0a0new0Secret"


def template(type: str) -> JsonObject:
    """The pod template of a queue."""
    metadata = {"name": "shop", "namespace": "eu", "uid": "1"}
    stack = AppStack.model_validate({"metadata": metadata, "spec": {"queue": {"type": type}}})
    writes = [each for step in APP_STACK.plan(stack, Observed(), NOW).steps for each in step.writes]
    (found,) = (
        write.object["spec"]["template"]
        for write in writes
        if isinstance(write, Apply) and write.object["kind"] == "StatefulSet"
    )
    return dict(found)


class Queue:
    """The pod of a queue on this machine, and a client."""

    def __init__(self, type: str, machine: Machine, port: str) -> None:
        """Take its software, and the port that stands for the planned one."""
        self.type, self.machine, self.port = type, machine, port
        self.template = template(type)

    def pod(self, password: str = PASSWORD) -> Pod:
        """Start a new pod with the volume, and wait until its readiness probe succeeds."""
        self.machine.secrets[f"shop-queue-{self.type}-credentials"] = {"password": password}
        pod = Pod(
            self.machine, "shop-queue-0", self.template, {self.type: self.machine.volume("data")}
        )
        until(lambda: not self._listens())  # the last processes of an earlier pod
        process = pod.start(self.type)

        def is_ready() -> bool:
            assert process.poll() is None, pod.logged()
            return self._is_ready(pod)

        until(is_ready, within=SECONDS, problem=pod.logged)
        return pod

    def _is_ready(self, pod: Pod) -> bool:
        (container,) = pod.spec["containers"]
        probe = container["readinessProbe"]
        if "exec" in probe:
            return pod.exec(self.type, *map(pod.here, probe["exec"]["command"])).returncode == 0
        return self._listens()

    def _listens(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", int(self.port)), SECONDS):
            return True
        return False

    def send(self, text: str, password: str = PASSWORD) -> subprocess.CompletedProcess[str]:
        """Publish a persistent message, with the server's acknowledgement."""
        url = f"{self._scheme}://app:{password}@127.0.0.1:{self.port}"
        if self.type == "nats":
            return run(nats_client(), "publish", text, NATS_URL=url)
        declared = run(program("amqp-declare-queue"), f"--url={url}", "--queue=orders", "--durable")
        if declared.returncode:
            return declared
        arguments = ("--routing-key=orders", "--persistent", f"--body={text}")
        return run(program("amqp-publish"), f"--url={url}", *arguments)

    def take(self, password: str = PASSWORD) -> str:
        """Return the oldest message, and acknowledge it."""
        url = f"{self._scheme}://app:{password}@127.0.0.1:{self.port}"
        if self.type == "nats":
            done = run(nats_client(), "receive", NATS_URL=url)
        else:
            done = run(program("amqp-get"), f"--url={url}", "--queue=orders")
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    @property
    def _scheme(self) -> str:
        return "nats" if self.type == "nats" else "amqp"


def run(command: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a client to its end."""
    return subprocess.run(
        [command, *arguments], env=environment, capture_output=True, text=True, timeout=SECONDS
    )


@pytest.fixture
def directory() -> Iterator[Path]:
    """A directory that pods may enter."""
    path = Path(tempfile.mkdtemp(prefix="gw-"))
    yield path
    shutil.rmtree(path)


@pytest.fixture
def nats(directory: Path) -> Queue:
    """NATS, whose image has its server on the path."""
    (programs := directory / "bin").mkdir()
    shutil.copy(nats_server(), programs / "nats-server")
    machine = Machine(directory, programs)
    machine.names |= {"4222": str(free_port()), "8222": str(free_port())}
    return Queue("nats", machine, machine.names["4222"])


@pytest.fixture
def rabbitmq(directory: Path) -> Iterator[Queue]:
    """RabbitMQ, beside Erlang's port mapper, which would otherwise outlive it."""
    machine = Machine(directory, RABBITMQ)
    port, mapper = str(free_port()), str(free_port())
    machine.names |= {"5672": port}
    machine.environment |= {
        "ERL_EPMD_PORT": mapper,
        "RABBITMQ_DIST_PORT": str(free_port()),
        "RABBITMQ_ENABLED_PLUGINS_FILE": "/dev/null",
    }
    command = [program("epmd"), "-port", mapper, "-address", "127.0.0.1"]
    with subprocess.Popen(command) as epmd:
        yield Queue("rabbitmq", machine, port)
        epmd.kill()


def check(queue: Queue) -> None:
    """Messages survive a shutdown and kill -9; a new Secret's password is the only one."""
    with queue.pod() as pod:
        for text in ("one", "two", "three"):
            assert queue.send(text).returncode == 0, pod.logged()
        assert queue.send("no", "wrong").returncode != 0
        pod.signal(queue.type, signal.SIGTERM)
    with queue.pod(ANOTHER) as pod:
        assert queue.send("no").returncode != 0
        assert queue.send("four", ANOTHER).returncode == 0
        pod.kill()
    with queue.pod(ANOTHER) as pod:
        assert [queue.take(ANOTHER) for _ in range(3)] == ["one", "two", "three"]
        pod.kill()


@pytest.mark.databases("rabbitmq-server", "amqp-tools")
def test_rabbitmq(rabbitmq: Queue) -> None:
    """RabbitMQ keeps persistent messages of durable queues."""
    check(rabbitmq)


@pytest.mark.controlplane
def test_nats(nats: Queue) -> None:
    """NATS keeps the messages of streams."""
    check(nats)
