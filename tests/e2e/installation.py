"""Webhook and controller as separate processes with the shipped rights; tests play the kubelet."""

import json
import shutil
import ssl
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from tests.controlplane.audit import WRITES
from tests.controlplane.plane import ControlPlane
from tests.e2e import manifests
from tests.e2e.conftest import CONFIG, Cluster
from tests.gatewright.started import Gatewright, registered

OURS = "gatewright-system"
TLS = "gatewright-webhook-tls"
CONTROLLER = f"system:serviceaccount:{OURS}:gatewright-controller-manager"
PRODUCTION = (CONFIG / "policies/production.yaml").read_text()
SERVICES = """\
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata: {name: services}
spec:
  policy: service-types
  match: {any: [{namespaces: [production]}]}
"""
POLICIES = ("--policies-config-map", "gatewright-policies")
BOTH = {"validate", "mutate"}


@dataclass(frozen=True)
class Installation(Cluster):
    """A cluster with Gatewright installed."""

    webhook: Gatewright
    controller: Gatewright

    def served_certificate(self) -> str:
        """Return the certificate that the webhook serves."""
        address = urlsplit(self.webhook.url)
        assert address.hostname is not None
        assert address.port is not None
        return ssl.get_server_certificate((address.hostname, address.port))

    def write_policies(self, text: str) -> None:
        """Write the policies' ConfigMap, as an upgrade of the chart does."""
        patch = json.dumps({"data": {"preset.yaml": text}})
        self.kubectl(
            "patch", "configmap", "gatewright-policies", "-n", OURS, "--type=merge", "-p", patch
        )

    def is_registered(self) -> bool:
        """Return whether the API server calls the webhook."""
        return registered(self.plane) == BOTH

    def bring_up(self) -> None:
        """Start the processes that do not run, and wait until they are ready and registered."""
        for process in (self.controller, self.webhook):
            if process.process.pid is None:
                process.launch()
        self.webhook.until("ready", self.webhook.is_ready)
        self.controller.until("ready", self.controller.is_ready).until(
            "registered", self.is_registered
        )

    def kill(self) -> None:
        """Kill both processes."""
        self.webhook.kill()
        self.controller.kill()

    def start(self) -> None:
        """Start both."""
        self.webhook.start()
        self.controller.start()

    def create(self, namespace: str, manifest: manifests.JsonObject) -> None:
        """Create an object."""
        self.kubectl("create", "-n", namespace, "-f-", input=manifest)

    def writes(self, since: int) -> Counter[str]:
        """Count the controller's writes since a mark, except its Lease and events."""
        events = self.plane.audit_events(since, user=CONTROLLER, verb=WRITES)
        about = [(event["verb"], event["objectRef"]) for event in events]
        return Counter(
            f"{verb} {each['resource']}"
            + (f"/{each['subresource']}" if "subresource" in each else "")
            for verb, each in about
            if each["resource"] not in ("leases", "events")
        )

    def reconciled(self) -> Counter[str]:
        """Count the controller's reconciles of each WebApp."""
        lines = self.controller.logged()
        completed = [line for line in lines if line["message"] == "Reconciliation completed"]
        return Counter(line["webapp.name"] for line in completed if "webapp.name" in line)


@contextmanager
def install(directory: Path, *options: str) -> Iterator[Installation]:
    """Install the plain manifests, without a process started; the controller has these options.

    At the end, neither process has logged a traceback.
    """
    pair = ("--tls-secret", TLS)
    with ControlPlane.start(directory / "controlplane") as plane:
        for part in ("crd/bases", "rbac", "manager"):
            plane.kubectl("apply", "-f", str(CONFIG / part))
        plane.create_namespace("production")
        users = {
            name: plane.service_account_kubeconfig(OURS, f"gatewright-{name}")
            for name in ("webhook", "controller-manager")
        }
        webhook = Gatewright(
            plane, directory, "webhook", *POLICIES, *pair, kubeconfig=users["webhook"]
        )
        options = (*POLICIES, *options, "--webhook-url", webhook.url)
        controller = Gatewright(
            plane, directory, "controller", *options, kubeconfig=users["controller-manager"]
        )
        with webhook, controller:
            installation = Installation(plane, webhook, controller)
            installation.write_policies(PRODUCTION)
            yield installation
            tracebacks = webhook.tracebacks() + controller.tracebacks()
            webhook.kill()  # a graceful end would wait for the API server's connections
        assert tracebacks == []
    shutil.rmtree(plane.directory / "etcd")
