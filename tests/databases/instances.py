"""Runs a planned PostgreSQL with the real programs: each instance on its own address, its Jobs on demand."""

import socket
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from config.api.postgresql import PostgreSQL
from controller.reconcilers.postgresql import POSTGRESQL
from controller.reconcilers.postgresql_pods import script
from controller.runtime.plan import Apply, CreateOnly, Observed
from kube.resource import JsonObject
from tests.databases.pods import SECONDS, Machine, Pod
from tests.waiting import until

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PASSWORDS = {"password": "it's a \\secret: 1", "replication-password": "also' \\:this"}


def planned(name: str, **spec: Any) -> dict[tuple[str, str], JsonObject]:
    """Return all children of a PostgreSQL, by kind and name."""
    object = PostgreSQL.model_validate(
        {"metadata": {"name": name, "namespace": "default", "uid": "1"}, "spec": spec}
    )
    writes = [
        write for step in POSTGRESQL.plan(object, Observed(), NOW).steps for write in step.writes
    ]
    made = [write.object for write in writes if isinstance(write, Apply | CreateOnly)]
    return {(each["kind"], each["metadata"]["name"]): each for each in made}


@dataclass
class Database:
    """A PostgreSQL object's pods on one machine."""

    machine: Machine
    name: str
    spec: JsonObject = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Plan it, and assign addresses to its hosts and passwords to its Secrets."""
        self.plan(**self.spec)
        for ordinal in range(5):
            self.machine.names[f"{self.name}-{ordinal}.{self.name}-headless"] = self.address(
                ordinal
            )
        self.machine.names[self.name] = self.address(0)
        self.machine.names["5432"] = str(free_port())
        self.machine.secrets[f"{self.name}-credentials"] = {"username": "postgres", **PASSWORDS}

    def plan(self, **spec: Any) -> None:
        """Plan the object with another spec."""
        self.objects = planned(self.name, **spec)
        for (kind, name), object in self.objects.items():
            if kind == "ConfigMap":
                self.machine.config_maps[name] = object["data"]

    def address(self, ordinal: int) -> str:
        """Return the address of an instance."""
        return f"127.0.0.{10 + ordinal}"

    def data(self, ordinal: int) -> Path:
        """Return the data directory of an instance."""
        return self.machine.volume(f"data-{ordinal}") / "pgdata"

    def instance(self, ordinal: int) -> Pod:
        """Return an instance's pod, not yet started."""
        template = self.objects["StatefulSet", self.name]["spec"]["template"]
        claims = {"data": self.machine.volume(f"data-{ordinal}")}
        return Pod(self.machine, f"{self.name}-{ordinal}", template, claims)

    def initialize(self, pod: Pod) -> None:
        """Create a data directory as Patroni does."""
        encoding = ("--encoding=UTF8", "--locale=C.UTF-8", "--data-checksums")
        data = f"--pgdata={self.data(self.ordinal(pod))}"
        done = pod.exec("postgres", "initdb", data, "--username=postgres", *encoding)
        assert done.returncode == 0, done.stderr

    def serve(self, pod: Pod) -> Pod:
        """Start a primary with the settings of patroni.yml, and set the passwords as its callback does."""
        data, address = self.data(self.ordinal(pod)), self.address(self.ordinal(pod))
        scripts = self.machine.config_maps[f"{self.name}-scripts"]
        settings = yaml.safe_load(pod.here(scripts["patroni.yml"]))["postgresql"]
        (data / "pg_hba.conf").write_text("".join(f"{line}\n" for line in settings["pg_hba"]))
        parameters = settings["parameters"] | {"listen_addresses": address, "data_directory": data}
        options = [f"--{name}={value}" for name, value in parameters.items()]
        process = pod.start("postgres", command=["postgres", "-D", str(data), *options])

        def is_up() -> bool:
            assert process.poll() is None, pod.logged()
            return pod.exec("postgres", "pg_isready", "--quiet").returncode == 0

        until(is_up, within=SECONDS, problem=pod.logged)
        callback = [*map(pod.here, script("passwords.sh")), "on_start", "primary", self.name]
        done = pod.exec("postgres", *callback)
        assert done.returncode == 0, done.stderr
        return pod

    @staticmethod
    def ordinal(pod: Pod) -> int:
        """Return the ordinal of an instance."""
        return int(pod.name.rpartition("-")[2])

    def job(self, kind: str, name: str, **secrets: str) -> Pod:
        """Return the pod of a Job or CronJob; `secrets` are users' passwords."""
        for user, password in secrets.items():
            self.machine.secrets[f"{self.name}-user-{user.replace('_', '-')}"] = {
                "password": password
            }
        (spec,) = (
            each["spec"]
            for (its, called), each in self.objects.items()
            if its == kind and called.startswith(name)
        )
        template = (
            spec["jobTemplate"]["spec"]["template"] if kind == "CronJob" else spec["template"]
        )
        return Pod(
            self.machine, name, template, {f"{self.name}-backup": self.machine.volume("backup")}
        )


def psql(pod: Pod, sql: str, database: str = "postgres") -> str:
    """Return the result of a query that runs in the pod without a password."""
    said = pod.exec("postgres", "psql", "-U", "postgres", "-XAt", "-c", sql, PGDATABASE=database)
    assert said.returncode == 0, said.stderr
    return said.stdout.strip()


def free_port() -> int:
    """Return a free port."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
