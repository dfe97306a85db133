"""A real Kubernetes control plane on loopback: separate processes that a test can kill, stop and restart."""

import json
import signal
import time
import uuid
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any, Self

from tests.controlplane import flags
from tests.controlplane.api import Api
from tests.controlplane.audit import POLICY, AuditLog, matches
from tests.controlplane.binaries import PARTS, find_binaries
from tests.controlplane.credentials import (
    certificate_user,
    make_credentials,
    token_user,
    write_kubeconfig,
)
from tests.controlplane.gobuild import MissingToolError
from tests.controlplane.host import LOOPBACK, Host
from tests.controlplane.kubectl import Kubectl
from tests.controlplane.processes import Process, Reaper, free_ports
from tests.controlplane.resources import Resources

READY_WITHIN = 60.0
NODES = ("node-1", "node-2", "node-3")


class ControlPlaneError(Exception):
    """A component died or did not become ready; the message ends with its log."""


class ControlPlane:
    """One running control plane. Its methods block: in a coroutine, call them through `asyncio.to_thread`."""

    def __init__(
        self,
        directory: Path,
        parts: Iterable[str] | None = None,
        *,
        audit: bool = True,
        service_accounts: bool | None = None,
        host: Host = LOOPBACK,
        api_server_flags: Iterable[str] = (),
    ) -> None:
        """Prepare everything, start nothing (`ControlPlane.start` does both)."""
        self.binaries = find_binaries()
        self.parts = tuple(parts or (part for part in PARTS if part in self.binaries))
        if missing := [part for part in self.parts if part not in self.binaries]:
            raise MissingToolError(
                f"the control plane has no {', '.join(missing)} (KUBEBUILDER_ASSETS)"
            )
        directory.mkdir(parents=True, exist_ok=True)
        controllers = "kube-controller-manager" in self.parts
        self._service_accounts = controllers if service_accounts is None else service_accounts
        self.directory = directory.resolve()
        self.host = host
        self.api_server_flags = tuple(api_server_flags)
        self._ports = free_ports(3)
        self._credentials = make_credentials(self.directory / "pki", host.address)
        self.url = f"https://{host.address}:{self._ports[0]}"
        self.ca_file = self._credentials.ca
        self.etcd = Api(f"http://{host.address}:{self._ports[1]}", self.ca_file, "")
        self.tokens = self._credentials.tokens
        self.token = self.tokens["admin"]
        self.kubeconfig = self.kubeconfig_for("admin")
        self.kubectl = Kubectl(
            self.binaries["kubectl"], self.directory, self.kubeconfig, self._check_alive
        )
        self.api = Api(self.url, self.ca_file, self.token)
        self.resources = Resources(self.api)
        self.audit_log = AuditLog(self.directory / "audit.log") if audit else None
        self._reaper = Reaper()
        self._processes = {
            part: Process(
                part,
                [*host.enter, str(self.binaries[part]), *self._flags(part)],
                self.directory / f"{part}.log",
                self._reaper,
            )
            for part in self.parts
        }

    @classmethod
    def start(
        cls,
        directory: Path,
        *,
        parts: Iterable[str] | None = None,
        audit: bool = True,
        service_accounts: bool | None = None,
        host: Host = LOOPBACK,
        api_server_flags: Iterable[str] = (),
    ) -> Self:
        """Start `parts` (default: all that this machine has) in a new `directory`, and wait until they are ready.

        With `service_accounts`, pods need a ServiceAccount; by default they do if a controller creates one.
        """
        plane = cls(
            directory,
            parts,
            audit=audit,
            service_accounts=service_accounts,
            host=host,
            api_server_flags=api_server_flags,
        )
        try:
            plane.start_parts()
        except BaseException:
            plane.close()
            raise
        return plane

    def start_parts(self) -> None:
        """Start all parts, killing those that run, and wait until they are ready."""
        first = ("etcd", "kube-apiserver")
        for part in first:
            self.restart(part)
        others = [process for part, process in self._processes.items() if part not in first]
        for process in others:
            process.kill()
            process.start()
        for process in others:
            self._wait_ready(process.name)

    def close(self) -> None:
        """Kill every part and wait for its end. The files stay."""
        for process in reversed(self._processes.values()):
            process.kill()
        self.api.close()
        self.etcd.close()
        self._reaper.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    # Faults

    def kill(self, part: str) -> None:
        """End a part with SIGKILL."""
        self._processes[part].kill()

    def restart(self, part: str) -> None:
        """Start a part, after killing it if it runs, with its ports and data as before; return when it is ready."""
        self._processes[part].kill()
        self._processes[part].start()
        self._wait_ready(part)

    def stop(self, part: str) -> None:
        """Freeze a part with SIGSTOP: its connections stay open without answers."""
        self._processes[part].signal(signal.SIGSTOP)

    def cont(self, part: str) -> None:
        """Resume a frozen component."""
        self._processes[part].signal(signal.SIGCONT)

    @property
    def pids(self) -> dict[str, int]:
        """Process ids of the parts that were not killed."""
        return {part: process.pid for part, process in self._processes.items() if process.pid}

    # Clients

    def kubeconfig_for(self, user: str, *, namespace: str = "default") -> Path:
        """Write a kubeconfig for one of `tokens`: admin, or alice (group developers) and bob, who have no rights."""
        return self._write_kubeconfig(user, token_user(self.tokens[user]), namespace)

    def certificate_kubeconfig(self, user: str, *groups: str, namespace: str = "default") -> Path:
        """Write a kubeconfig with a client certificate for any user and groups."""
        certificate, key = self._credentials.authority.client_certificate(user, *groups)
        return self._write_kubeconfig(
            f"{user}-certificate", certificate_user(certificate, key), namespace
        )

    def service_account_kubeconfig(self, namespace: str, name: str) -> Path:
        """Write a kubeconfig with a fresh token of a ServiceAccount."""
        account = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}"
        requested = {"spec": {"expirationSeconds": 24 * 3600}}
        code, answer = self.api.request("POST", f"{account}/token", requested)
        if code != 201:
            raise ControlPlaneError(f"a token of {account}: {code} {answer.decode()}")
        token = json.loads(answer)["status"]["token"]
        return self._write_kubeconfig(
            f"system:serviceaccount:{namespace}:{name}", token_user(token), namespace
        )

    def create_namespace(self, name: str) -> None:
        """Create a namespace and wait until pods can be created in it."""
        code, answer = self.api.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        if code != 201:
            raise ControlPlaneError(f"creating namespace {name}: {code} {answer.decode()}")
        if "kube-controller-manager" in self.parts:
            self._wait(
                f"ServiceAccount of {name}", lambda: self.api.found(_default_service_account(name))
            )

    def delete_namespace(self, name: str) -> None:
        """Begin to delete a namespace."""
        self.api.request("DELETE", f"/api/v1/namespaces/{name}")

    # Requests counted at the API server

    def audit_mark(self) -> int:
        """Return the offset in the audit log after all requests that were answered so far."""
        return self._audit_barrier()[1]

    def audit_events(
        self,
        since: int = 0,
        *,
        user: str | None = None,
        verb: str | Collection[str] | None = None,
        resource: str | None = None,
        namespace: str | None = None,
    ) -> list[dict[str, Any]]:
        """Return the requests since a mark as audit.k8s.io Events, those that match: see `audit.matches`."""
        log, end = self._audit_barrier()
        return [
            event
            for event in log.events(since, end)
            if matches(event, user=user, verb=verb, resource=resource, namespace=namespace)
        ]

    def _audit_barrier(self) -> tuple[AuditLog, int]:
        """Send a request and wait for its line: then all earlier requests are in the log too."""
        if not self.audit_log:
            raise ControlPlaneError("this control plane was started without an audit log")
        log, begin, barrier = self.audit_log, self.audit_log.size(), uuid.uuid4().hex
        self._wait("API server", lambda: self.api.found(f"/version?barrier={barrier}"))
        self._wait(
            "audit log", lambda: any(barrier in event["requestURI"] for event in log.events(begin))
        )
        return log, log.size()

    # Starting

    def _flags(self, part: str) -> list[str]:
        port, etcd_port, peer_port = self._ports
        match part:
            case "etcd":
                return flags.etcd(self.directory / "etcd", self.host, etcd_port, peer_port)
            case "kube-apiserver":
                audit = None
                if self.audit_log:
                    policy = self.directory / "audit-policy.yaml"
                    policy.write_text(POLICY)
                    audit = (policy, self.audit_log.path)
                return flags.kube_apiserver(
                    self._credentials,
                    self.host,
                    etcd_port,
                    port,
                    audit=audit,
                    service_accounts=self._service_accounts,
                    more=self.api_server_flags,
                )
            case "kube-controller-manager":
                return flags.kube_controller_manager(
                    self._credentials, self.kubeconfig_for(f"system:{part}")
                )
            case "kube-scheduler":
                return flags.kube_scheduler(self.kubeconfig_for(f"system:{part}"))
            case "hollow-kubelet":
                return flags.hollow_kubelet(self.kubeconfig_for(part), NODES)
            case _:
                raise ValueError(f"{part!r} is none of {', '.join(PARTS)}")

    def _write_kubeconfig(self, name: str, user: dict[str, str], namespace: str) -> Path:
        path = self.directory / "kubeconfigs" / f"{name}.{namespace}".replace(":", "-")
        return write_kubeconfig(
            path, url=self.url, ca=self.ca_file, name=name, user=user, namespace=namespace
        )

    def _wait_ready(self, part: str) -> None:
        signs: dict[str, Callable[[], bool]] = {
            "etcd": lambda: self.etcd.found("/health"),
            "kube-apiserver": lambda: self.api.found("/readyz"),
            "kube-controller-manager": lambda: self.api.found(_default_service_account("default")),
            "hollow-kubelet": lambda: all(
                self.api.found(f"/api/v1/nodes/{node}") for node in NODES
            ),
        }
        if part in signs:
            self._wait(part, signs[part])

    def _wait(self, what: str, sign: Callable[[], bool]) -> None:
        """Poll until a condition holds, a component dies, or the time is up."""
        deadline = time.monotonic() + READY_WITHIN
        while not sign():
            self._check_alive()
            if time.monotonic() > deadline:
                tails = "\n".join(process.tail(8) for process in self._processes.values())
                raise ControlPlaneError(f"{what}: not ready after {READY_WITHIN:.0f} s\n{tails}")
            time.sleep(0.03)

    def _check_alive(self) -> None:
        for process in self._processes.values():
            if process.died:
                raise ControlPlaneError(f"{process.name} died\n{process.tail()}")


def _default_service_account(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
