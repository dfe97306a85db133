"""The metrics API of the node: metrics-server, a process beside the kubelet whose cgroups it reports."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.controlplane.gobuild import build
from tests.node.node import Node
from tests.node.objects import outside_service

MODULE = Path(__file__).parent / "metrics"
PACKAGE = "sigs.k8s.io/metrics-server/cmd/metrics-server"
NAME = "metrics-server"
PORT = 4443
GROUP = "metrics.k8s.io"
API_SERVICE = f"v1beta1.{GROUP}"


@contextmanager
def serving_metrics(node: Node) -> Iterator[None]:
    """Serve metrics.k8s.io until the context exits."""
    program = build(MODULE, PACKAGE, NAME, takes="2 to 5 minutes with 2 cores")
    admin = node.plane.kubeconfig
    flags = [
        *(f"--{each}kubeconfig={admin}" for each in ("", "authentication-", "authorization-")),
        f"--bind-address={node.slot.address}",
        f"--secure-port={PORT}",
        f"--cert-dir={node.slot.directory / NAME}",
        "--authentication-tolerate-lookup-failure",
        "--kubelet-insecure-tls",
        "--kubelet-preferred-address-types=InternalIP",
        "--kubelet-request-timeout=9s",  # it must be shorter than the next
        "--metric-resolution=10s",
    ]
    process = node.machine.process(NAME, program, *flags)
    process.start()
    try:
        node.apply(_objects(node.slot.address))
        wait = ("wait", f"apiservice/{API_SERVICE}", "--for=condition=Available")
        node.kubectl(*wait, "--timeout=120s", timeout=130)
        yield
    finally:
        # An API that does not answer would keep namespaces from being deleted.
        node.kubectl("delete", "apiservice", API_SERVICE, "--ignore-not-found")
        process.kill()


def _objects(address: str) -> Iterator[dict[str, Any]]:
    """Yield the API, its Service, and the right of the API server, which comes without a certificate."""
    yield from outside_service(NAME, address, [{"name": "https", "port": PORT, "protocol": "TCP"}])
    service = {"name": NAME, "namespace": "kube-system", "port": PORT}
    yield {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": API_SERVICE},
        "spec": {
            "group": GROUP,
            "version": "v1beta1",
            "service": service,
            "insecureSkipTLSVerify": True,
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
        },
    }
    rules = [
        {"apiGroups": [GROUP], "resources": ["pods", "nodes"], "verbs": ["get", "list"]},
        {"nonResourceURLs": [f"/apis/{GROUP}", f"/apis/{GROUP}/*"], "verbs": ["get"]},
    ]
    yield {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": NAME},
        "rules": rules,
    }
    yield {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": NAME},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": NAME,
        },
        "subjects": [
            {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "User",
                "name": "system:anonymous",
            }
        ],
    }
