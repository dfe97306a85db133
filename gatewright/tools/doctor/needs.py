"""The requests that nodes, system pods and a webhook's own pods need to recover."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import yaml

from gatewright.tools.doctor.calls import ExampleRequest
from gatewright.tools.doctor.models import ServiceReference, ServingWorkload
from gatewright.tools.doctor.state import ClusterState
from webhook.engine.match import Labels

FILE = Path(__file__).parent / "needs.yaml"
SYSTEM, LEASES, DEFAULT = "kube-system", "kube-node-lease", "default"
NODE = "system:node:node-1"
SCHEDULER = "system:kube-scheduler"
CONTROLLER = "system:serviceaccount:kube-system:replicaset-controller"
API_SERVER = "system:apiserver"
GROUPS = {
    NODE: ("system:nodes", "system:authenticated"),
    SCHEDULER: ("system:authenticated",),
    CONTROLLER: (
        "system:serviceaccounts",
        "system:serviceaccounts:kube-system",
        "system:authenticated",
    ),
    API_SERVER: ("system:masters", "system:authenticated"),
}
SENDERS = {
    "nodes": NODE,
    "nodes/status": NODE,
    "pods/status": NODE,
    "serviceaccounts/token": NODE,
    "pods/binding": SCHEDULER,
    "leases": SCHEDULER,
}
NODE_CRITICAL = "system-node-critical"  # the priority of network and storage pods of nodes
API_SERVICE = "kubernetes"  # the Service of the API server, in default
# Labels of system objects that no workload tells: of none, DNS, static pods, and the API server's.
SYSTEM_LABELS: tuple[Labels, ...] = (
    {},
    {"k8s-app": "kube-dns"},
    {"component": "kube-apiserver", "tier": "control-plane"},
)
API_LABELS: tuple[Labels, ...] = ({"component": "apiserver", "provider": "kubernetes"},)
# These have the labels of the workload's pod template; the Binding of a pod has none.
LABELLED = ("pods", "replicasets", "endpointslices")


@cache
def table() -> dict[str, dict[str, str]]:
    """Return the groups of requests: operations and resource, and the effect if they fail."""
    needs: dict[str, dict[str, str]] = yaml.safe_load(FILE.read_text())
    return needs


def cluster_needs(state: ClusterState) -> Iterator[ExampleRequest]:
    """Yield the requests without which nodes and system pods do not recover."""
    for request in _requests("cluster_wide"):
        if request.resource == "namespaces":
            own = (state.namespace_labels(SYSTEM),)
            yield replace(request, name=SYSTEM, namespace=SYSTEM, labels=own)
        else:
            yield request
    templates = (each.labels for each in state.within(ServingWorkload, SYSTEM))
    labels = (*SYSTEM_LABELS, *templates)
    yield from (replace(each, labels=labels) for each in _requests("in_system", SYSTEM))
    for workload in state.all(ServingWorkload):
        if workload.kind == "DaemonSet" and workload.priority_class == NODE_CRITICAL:
            yield ExampleRequest(
                operation="CREATE",
                resource="pods",
                namespace=workload.metadata.namespace,
                user=CONTROLLER,
                groups=GROUPS[CONTROLLER],
                labels=(workload.labels,),
                meaning=f"{workload.title} gets no pod on a new node",
            )
    for request in _requests("in_default", DEFAULT):
        groups = GROUPS[API_SERVER]
        yield replace(request, name=API_SERVICE, user=API_SERVER, groups=groups, labels=API_LABELS)
    yield from _requests("node_leases", LEASES)


def own_needs(
    service: ServiceReference, state: ClusterState, group: str = "own_pods"
) -> Iterator[ExampleRequest]:
    """Yield a group of requests for the pods and the namespace of a Service."""
    labels = tuple(each.labels for each in state.serving(service)) or ({},)
    for request in _requests(group, service.namespace):
        is_labelled = request.resource in LABELLED and request.subresource != "binding"
        yield replace(request, labels=labels) if is_labelled else request


def events() -> Iterator[ExampleRequest]:
    """Yield the request by which a component writes an event."""
    yield from _requests("events", DEFAULT)


@cache
def leases() -> Sequence[ExampleRequest]:
    """Return the requests that renew Leases of components and of nodes."""
    system = _requests("in_system", SYSTEM)
    return [*(e for e in system if e.resource == "leases"), *_requests("node_leases", LEASES)]


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
            )
