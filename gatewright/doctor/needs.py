"""The requests that nodes, system pods and a webhook's own pods need to recover."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import yaml

from gatewright.doctor.calls import ExampleRequest
from gatewright.doctor.models import ServiceReference
from gatewright.doctor.state import ClusterState
from webhook.engine.match import Labels

FILE = Path(__file__).parent / "needs.yaml"
SYSTEM, LEASES = "kube-system", "kube-node-lease"
NODE = "system:node:node-1"
SCHEDULER = "system:kube-scheduler"
CONTROLLER = "system:serviceaccount:kube-system:replicaset-controller"
GROUPS = {
    NODE: ("system:nodes", "system:authenticated"),
    SCHEDULER: ("system:authenticated",),
    CONTROLLER: ("system:serviceaccounts", "system:serviceaccounts:kube-system"),
}
SENDERS = {
    "nodes": NODE,
    "nodes/status": NODE,
    "pods/status": NODE,
    "serviceaccounts/token": NODE,
    "pods/binding": SCHEDULER,
}
# These have the labels of the workload's pod template.
LABELLED = ("pods", "replicasets", "endpointslices")


@cache
def table() -> dict[str, dict[str, str]]:
    """Return the groups of requests: operations and resource, and the effect if they fail."""
    found: dict[str, dict[str, str]] = yaml.safe_load(FILE.read_text())
    return found


def cluster_needs() -> Iterator[ExampleRequest]:
    """Yield the requests without which nodes and system pods do not recover."""
    for each in _requests("cluster_wide"):
        if each.resource == "namespaces":
            labels = {"kubernetes.io/metadata.name": SYSTEM}
            yield replace(each, name=SYSTEM, namespace=SYSTEM, labels=labels)
        else:
            yield each
    yield from _requests("in_system", SYSTEM)
    yield from _requests("in_default", "default")
    yield from _requests("node_leases", LEASES)


def own_needs(service: ServiceReference, state: ClusterState) -> Iterator[ExampleRequest]:
    """Yield the requests without which the pods of a Service do not recover."""
    known = [each.spec.template.metadata.labels for each in state.serving(service)]
    templates: list[Labels | None] = [*known] or [None]
    for each in _requests("own_pods", service.namespace):
        if each.resource in LABELLED:
            yield from (replace(each, labels=labels) for labels in templates)
        else:
            yield each


def data_needs(namespace: str) -> Iterator[ExampleRequest]:
    """Yield the requests that change a webhook's own Secrets and ConfigMaps."""
    yield from _requests("own_data", namespace)


def events() -> Iterator[ExampleRequest]:
    """Yield the request by which a component writes an event."""
    yield from _requests("events", "default")


def leases() -> Iterator[ExampleRequest]:
    """Yield the requests that renew Leases of components and of nodes."""
    system = _requests("in_system", SYSTEM)
    yield from (each for each in system if each.resource == "leases")
    yield from _requests("node_leases", LEASES)


def _requests(group: str, namespace: str = "") -> Iterator[ExampleRequest]:
    for request, meaning in table()[group].items():
        operations, _, resource = request.partition(" ")
        name, _, api_group = resource.partition(".")
        plural, _, subresource = name.partition("/")
        sender = NODE if namespace == LEASES else SENDERS.get(name, CONTROLLER)
        for number, operation in enumerate(operations.split(",")):
            done = "created" if operation == "CREATE" else "changed"
            yield ExampleRequest(
                operation=operation,
                group=api_group,
                resource=plural,
                subresource=subresource,
                namespace=namespace,
                user=sender,
                groups=GROUPS[sender],
                meaning=f"{plural} cannot be {done}" if number else meaning,
                labels=None if namespace else {},
            )
