"""The requests that nodes, system pods and a webhook's own pods need to recover.

Sources of the tables: Gardener's list of webhook matchers (gardener/gardener
pkg/gardenlet/operation/botanist/matchers), GKE's K8S_ADMISSION_WEBHOOK_UNSAFE and clusterlint.
"""

from collections.abc import Iterator
from dataclasses import replace

from gatewright.doctor.calls import ExampleRequest
from gatewright.doctor.models import ServiceReference
from gatewright.doctor.state import ClusterState
from webhook.engine.match import Labels

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

# Operations, resource, and the effect if the first operation fails.
CLUSTER_WIDE = """
CREATE nodes: a node cannot register
UPDATE nodes: a node cannot be changed or recover from a taint
UPDATE nodes/status: a node cannot report that it is ready
UPDATE namespaces: the namespace kube-system cannot be changed
UPDATE namespaces/status: the status of kube-system cannot be changed
CREATE tokenreviews.authentication.k8s.io: a server cannot authenticate a token
CREATE subjectaccessreviews.authorization.k8s.io: a server cannot authorize a request
CREATE,UPDATE certificatesigningrequests.certificates.k8s.io: a node cannot ask for its certificate
UPDATE certificatesigningrequests/status.certificates.k8s.io: a node gets no certificate
UPDATE certificatesigningrequests/approval.certificates.k8s.io: no node's certificate is approved
UPDATE,CREATE clusterroles.rbac.authorization.k8s.io: an API server that starts is not ready
UPDATE,CREATE clusterrolebindings.rbac.authorization.k8s.io: an API server that starts is not ready
UPDATE,CREATE customresourcedefinitions.apiextensions.k8s.io: custom resources cannot be changed
UPDATE customresourcedefinitions/status.apiextensions.k8s.io: custom resources are not served
UPDATE,CREATE apiservices.apiregistration.k8s.io: an API server that starts cannot register its APIs
UPDATE apiservices/status.apiregistration.k8s.io: no API is reported as available
CREATE,UPDATE priorityclasses.scheduling.k8s.io: an API server that starts has no priority classes
"""
IN_SYSTEM = """
CREATE,UPDATE pods: DNS, kube-proxy and network pods cannot be created
UPDATE pods/status: system pods cannot become ready
CREATE pods/binding: system pods cannot be scheduled
CREATE serviceaccounts/token: system pods get no token
UPDATE,CREATE configmaps: components cannot change their configuration
UPDATE,CREATE endpoints: Endpoints of system Services are not updated
UPDATE,CREATE secrets: components cannot change their Secrets
UPDATE,CREATE serviceaccounts: service accounts cannot be changed
UPDATE,CREATE services: system Services cannot be changed
UPDATE services/status: the status of system Services cannot be changed
CREATE,UPDATE controllerrevisions.apps: DaemonSets cannot roll out
UPDATE,CREATE daemonsets.apps: DaemonSets cannot be changed
UPDATE daemonsets/status.apps: the status of DaemonSets is not updated
UPDATE,CREATE deployments.apps: Deployments cannot be changed
UPDATE deployments/scale.apps: Deployments cannot be scaled
CREATE,UPDATE replicasets.apps: Deployments cannot roll out
UPDATE replicasets/status.apps: the status of ReplicaSets is not updated
UPDATE replicasets/scale.apps: ReplicaSets cannot be scaled
UPDATE,CREATE leases.coordination.k8s.io: kube-scheduler and controllers lose their Leases
UPDATE,CREATE endpointslices.discovery.k8s.io: system Services get no endpoints
UPDATE,CREATE networkpolicies.networking.k8s.io: network policies cannot be changed
UPDATE,CREATE roles.rbac.authorization.k8s.io: roles of components cannot be reconciled
UPDATE,CREATE rolebindings.rbac.authorization.k8s.io: role bindings cannot be reconciled
"""
IN_DEFAULT = """
UPDATE,CREATE endpoints: the Endpoints of the API server are not updated
UPDATE,CREATE services: the Service of the API server cannot be changed
UPDATE services/status: the status of the API server's Service cannot be changed
UPDATE,CREATE endpointslices.discovery.k8s.io: the API server's own endpoints are not updated
"""
NODE_LEASES = """
UPDATE,CREATE leases.coordination.k8s.io: nodes become NotReady, and their pods are evicted
"""
# The requests that the pods of a Service need to recover:
OWN_PODS = """
CREATE pods: its pods cannot be created
CREATE pods/binding: its pods cannot be scheduled
UPDATE pods/status: its pods cannot become ready
CREATE serviceaccounts/token: its pods get no token, and do not start
UPDATE endpointslices.discovery.k8s.io: its Service gets no endpoints
CREATE replicasets.apps: its Deployment cannot roll out
"""
OWN_DATA = """
UPDATE secrets: its certificate cannot be renewed
UPDATE configmaps: its configuration cannot be changed
"""
EVENTS = """
CREATE events: the events that would explain the failure are lost
"""
# These have the labels of the workload's pod template.
LABELLED = ("pods", "replicasets", "endpointslices")


def cluster_needs() -> Iterator[ExampleRequest]:
    """Yield the requests without which nodes and system pods do not recover."""
    for each in _requests(CLUSTER_WIDE):
        if each.resource == "namespaces":
            labels = {"kubernetes.io/metadata.name": SYSTEM}
            yield replace(each, name=SYSTEM, namespace=SYSTEM, labels=labels)
        else:
            yield each
    yield from _requests(IN_SYSTEM, SYSTEM)
    yield from _requests(IN_DEFAULT, "default")
    yield from _requests(NODE_LEASES, LEASES)


def own_needs(service: ServiceReference, state: ClusterState) -> Iterator[ExampleRequest]:
    """Yield the requests without which the pods of a Service do not recover."""
    known = [each.spec.template.metadata.labels for each in state.serving(service)]
    templates: list[Labels | None] = [*known] or [None]
    for each in _requests(OWN_PODS, service.namespace):
        if each.resource in LABELLED:
            yield from (replace(each, labels=labels) for labels in templates)
        else:
            yield each


def data_needs(namespace: str) -> Iterator[ExampleRequest]:
    """Yield the requests that change a webhook's own Secrets and ConfigMaps."""
    yield from _requests(OWN_DATA, namespace)


def events() -> Iterator[ExampleRequest]:
    """Yield the request by which a component writes an event."""
    yield from _requests(EVENTS, "default")


def leases() -> Iterator[ExampleRequest]:
    """Yield the requests that renew Leases of components and of nodes."""
    system = _requests(IN_SYSTEM, SYSTEM)
    yield from (each for each in system if each.resource == "leases")
    yield from _requests(NODE_LEASES, LEASES)


def _requests(table: str, namespace: str = "") -> Iterator[ExampleRequest]:
    for line in table.strip().splitlines():
        request, _, meaning = line.partition(": ")
        operations, _, resource = request.partition(" ")
        name, _, group = resource.partition(".")
        plural, _, subresource = name.partition("/")
        sender = NODE if namespace == LEASES else SENDERS.get(name, CONTROLLER)
        for number, operation in enumerate(operations.split(",")):
            done = "created" if operation == "CREATE" else "changed"
            yield ExampleRequest(
                operation=operation,
                group=group,
                resource=plural,
                subresource=subresource,
                namespace=namespace,
                user=sender,
                groups=GROUPS[sender],
                meaning=f"{plural} cannot be {done}" if number else meaning,
                labels=None if namespace else {},
            )
