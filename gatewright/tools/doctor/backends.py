"""Check the Services, endpoints and pods of webhooks, conversions and aggregated APIs."""

from collections.abc import Iterator, Sequence, Set

from gatewright.tools.doctor.callers import Caller, Effect, callers
from gatewright.tools.doctor.hazards import WARNING, Hazard, kubectl
from gatewright.tools.doctor.models import (
    Autoscaler,
    ClusterService,
    DisruptionBudget,
    EndpointSlice,
    ServiceReference,
    ServingWorkload,
)
from gatewright.tools.doctor.state import ClusterState


def check(state: ClusterState) -> Iterator[Hazard]:
    """Yield a finding if no server answers, or if the loss of one pod or node leaves none."""
    answering: dict[str, tuple[ServiceReference, list[Caller]]] = {}
    for caller in callers(state):
        if (service := caller.config.service) is None:
            continue
        fault = _fault(service, state)
        if fault:
            message = f"{fault}, so {caller.fails}"
            fix = "start its server, or correct the Service"
            yield caller.hazard("no-endpoint", caller.level, message, fix)
        elif caller.is_fatal:
            answering.setdefault(str(service), (service, []))[1].append(caller)
    covered = {
        workload.title
        for budget in state.all(DisruptionBudget)
        if budget.selector is not None
        for workload in state.select_workloads(budget.metadata.namespace, budget.selector)
    }
    for service, alike in answering.values():
        yield from _fragile(service, _fails(alike), covered, state)


def _fault(service: ServiceReference, state: ClusterState) -> str:
    """Return why no server answers; "" if one does, or if that is unknown."""
    if state.find("", "Namespace", "", service.namespace) is None and state.knows("", "Namespace"):
        return f"the namespace {service.namespace} of the Service {service} does not exist"
    backend = state.service(service)
    if backend is None:
        return f"the Service {service} does not exist" if state.knows("", "Service") else ""
    if backend.type == "ExternalName":
        return ""
    ports = [each for each in backend.ports if each.port == service.port]
    if not ports:
        have = ", ".join(str(each.port) for each in backend.ports) or "none"
        return f"the Service {service} has no port {service.port} (it has: {have})"
    if not state.knows("discovery.k8s.io", "EndpointSlice"):
        return ""
    slices = state.within(EndpointSlice, str(service))
    if not any(each.ready for slice in slices for each in slice.endpoints):
        return f"the Service {service} has no ready endpoint"
    if ports[0].name not in {each.name for slice in slices for each in slice.ports}:
        return f"no pod of the Service {service} has its port {ports[0].name or service.port}"
    return ""


def _fails(alike: Sequence[Caller]) -> str:
    """Return which requests fail without a server that several callers share."""
    names: dict[Effect, dict[str, None]] = {}
    for rule in alike:
        names.setdefault(rule.effect, {}).update(dict.fromkeys(rule.names))
    return "; ".join(effect(list(failing)) for effect, failing in names.items())


def _fragile(
    service: ServiceReference, fails: str, covered: Set[str], state: ClusterState
) -> Iterator[Hazard]:
    """Yield the findings about a server that answers now; budgets cover some workloads."""
    backend, workloads = state.service(service), state.serving(service)
    if backend is None:
        return
    if workloads and all(each.has_replicas for each in workloads):
        scalers = [_scaler(each, state) for each in workloads]
        replicas = sum(
            scaler.minimum if scaler else workload.replicas
            for workload, scaler in zip(workloads, scalers, strict=True)
        )
        if replicas == 1:
            yield _one_replica(workloads[0], scalers[0], fails)
        elif covered.isdisjoint(each.title for each in workloads) and state.knows(
            "policy", "PodDisruptionBudget"
        ):
            labels = ",".join(f"{key}={each}" for key, each in backend.selector.items())
            options = (f"--selector={labels}", "--min-available=1")
            yield Hazard(
                "no-disruption-budget",
                WARNING,
                workloads[0],
                "",
                f"no PodDisruptionBudget covers {workloads[0].title}. If drains evict all its pods "
                f"at the same time, {fails}",
                "add a PodDisruptionBudget",
                run=kubectl("create", workloads[0], *options, kind="poddisruptionbudget"),
            )
    yield from _one_node(backend, service, fails, state)


def _scaler(workload: ServingWorkload, state: ClusterState) -> Autoscaler | None:
    """Return the autoscaler that sets the replicas of a workload."""
    target = workload.kind, workload.metadata.name
    for autoscaler in state.within(Autoscaler, workload.metadata.namespace):
        if (autoscaler.target_kind, autoscaler.target_name) == target:
            return autoscaler
    return None


def _one_replica(workload: ServingWorkload, scaler: Autoscaler | None, fails: str) -> Hazard:
    title = workload.title
    if scaler is not None:
        return Hazard(
            "one-replica",
            WARNING,
            scaler,
            "spec.minReplicas",
            f"{title} may run one pod. If that pod or its node goes, {fails}",
            "set minReplicas to at least two",
            ({"op": "add", "path": "/spec/minReplicas", "value": 2},),
        )
    return Hazard(
        "one-replica",
        WARNING,
        workload,
        "spec.replicas",
        f"{title} runs one pod. If that pod or its node goes, {fails}",
        "run at least two replicas",
        run=kubectl("scale", workload, "--replicas=2"),
    )


def _one_node(
    backend: ClusterService, service: ServiceReference, fails: str, state: ClusterState
) -> Iterator[Hazard]:
    nodes = [
        endpoint.node_name
        for slice in state.within(EndpointSlice, str(service))
        for endpoint in slice.endpoints
    ]
    if len(nodes) > 1 and len(set(nodes)) == 1 and nodes[0]:
        yield Hazard(
            "one-node",
            WARNING,
            backend,
            "",
            f"all {len(nodes)} endpoints of {service} are on the node {nodes[0]}. If that node "
            f"goes, {fails}",
            "spread the pods with a topology spread constraint or a pod anti-affinity",
        )
