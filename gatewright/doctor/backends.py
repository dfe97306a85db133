"""Check the Services, endpoints and pods of webhooks, conversions and aggregated APIs."""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from gatewright.doctor.hazards import CRITICAL, WARNING, Hazard, ObjectPatch, setting
from gatewright.doctor.models import (
    ApiService,
    ClientConfig,
    ClusterObject,
    EndpointSlice,
    ResourceDefinition,
    ServiceReference,
)
from gatewright.doctor.state import ClusterState
from gatewright.doctor.workloads import DisruptionBudget, ServingWorkload
from webhook.engine.match import compile_selector

SERVICE_LABEL = "kubernetes.io/service-name"


@dataclass(frozen=True, slots=True)
class Caller:
    """A server that the API server calls; `fails` names the requests that fail without it.

    `bundle_path` is the JSON pointer of its CA bundle; `opens` the patch with which these requests
    pass, where there is one.
    """

    subject: ClusterObject
    path: str
    config: ClientConfig
    fails: str
    is_fatal: bool
    bundle_path: str
    opens: ObjectPatch = ()
    verifies: bool = True

    @property
    def level(self) -> str:
        """How bad it is that nothing answers."""
        return CRITICAL if self.is_fatal else WARNING


def callers(state: ClusterState) -> Iterator[Caller]:
    """Yield each server that the API server calls."""
    for each in state.registered():
        name, pointer = each.webhook.name, f"/webhooks/{each.index}/clientConfig/caBundle"
        if each.fails_closed:
            fails = f"every request that {name} judges is refused"
            opens = setting(each, "failurePolicy", "Ignore")
        else:
            fails, opens = f"{name} judges nothing: requests pass unchecked", ()
        yield Caller(
            each.configuration,
            each.path,
            each.webhook.client_config,
            fails,
            is_fatal=each.fails_closed,
            bundle_path=pointer,
            opens=opens,
        )
    for definition in state.all(ResourceDefinition):
        conversion = definition.spec.conversion
        if conversion.strategy == "Webhook":
            fails = (
                f"{definition.spec.names.plural}.{definition.spec.group} cannot be read or listed "
                "in other versions than the stored one, and namespaces that have any cannot be "
                "deleted"
            )
            yield Caller(
                definition,
                "spec.conversion.webhook",
                conversion.webhook.client_config,
                fails,
                is_fatal=True,
                bundle_path="/spec/conversion/webhook/clientConfig/caBundle",
            )
    for aggregated in state.all(ApiService):
        spec = aggregated.spec
        if spec.service is not None:
            yield Caller(
                aggregated,
                "spec.service",
                ClientConfig(service=spec.service, ca_bundle=spec.ca_bundle),
                f"requests of {spec.group}/{spec.version} fail, and no namespace can be deleted",
                is_fatal=True,
                bundle_path="/spec/caBundle",
                verifies=not spec.insecure_skip_tls_verify,
            )


def check(state: ClusterState) -> Iterator[Hazard]:
    """Yield a finding if no server answers, or if the loss of one pod or node leaves none."""
    for caller in callers(state):
        if (service := caller.config.service) is None:
            continue
        fault = _fault(service, state)
        if fault:
            meanwhile = " and meanwhile let requests pass unchecked" if caller.opens else ""
            yield Hazard(
                "no-endpoint",
                caller.level,
                caller.subject,
                caller.path,
                f"{fault}, so {caller.fails}",
                f"start its server, or correct the Service{meanwhile}",
                caller.opens,
            )
        elif caller.is_fatal:
            yield from _fragile(caller, service, state)


def _fault(service: ServiceReference, state: ClusterState) -> str:
    """Return why no server answers; "" if one does, or if that is unknown."""
    if state.find("", "Namespace", "", service.namespace) is None and state.knows("", "Namespace"):
        return f"the namespace {service.namespace} of the Service {service} does not exist"
    found = state.service(service)
    if found is None:
        return f"the Service {service} does not exist" if state.knows("", "Service") else ""
    if found.spec.type == "ExternalName":
        return ""
    ports = [each for each in found.spec.ports if each.port == service.port]
    if not ports:
        have = ", ".join(str(each.port) for each in found.spec.ports) or "none"
        return f"the Service {service} has no port {service.port} (it has: {have})"
    if not state.knows("discovery.k8s.io", "EndpointSlice"):
        return ""
    slices = _slices(service, state)
    ready = [each for slice in slices for each in slice.endpoints if each.conditions.ready]
    if not ready:
        return f"the Service {service} has no ready endpoint"
    names = {each.name for slice in slices for each in slice.ports}
    if ports[0].name not in names:
        return f"no pod of the Service {service} has its port {ports[0].name or service.port}"
    return ""


def _slices(service: ServiceReference, state: ClusterState) -> list[EndpointSlice]:
    return [
        each
        for each in state.within(EndpointSlice, service.namespace)
        if each.metadata.labels.get(SERVICE_LABEL) == service.name
    ]


def _fragile(caller: Caller, service: ServiceReference, state: ClusterState) -> Iterator[Hazard]:
    workloads = state.serving(service)
    replicas = sum(each.replicas or 0 for each in workloads)
    if workloads and all(each.replicas is not None for each in workloads):
        if replicas == 1:
            yield Hazard(
                "one-replica",
                WARNING,
                caller.subject,
                caller.path,
                f"{workloads[0].title} runs one pod. While that is replaced, {caller.fails}",
                "run at least two replicas",
                run=_kubectl("scale", workloads[0], "--replicas=2"),
            )
        elif not _has_budget(service, state):
            yield Hazard(
                "no-disruption-budget",
                WARNING,
                caller.subject,
                caller.path,
                f"no PodDisruptionBudget covers {workloads[0].title}. If drains evict all its pods "
                f"at the same time, {caller.fails}",
                "add a PodDisruptionBudget",
                run=_budget(service, state, workloads[0]),
            )
    nodes = [each.node_name for slice in _slices(service, state) for each in slice.endpoints]
    if len(nodes) > 1 and len(set(nodes)) == 1 and nodes[0]:
        yield Hazard(
            "one-node",
            WARNING,
            caller.subject,
            caller.path,
            f"all {len(nodes)} endpoints of {service} are on the node {nodes[0]}. If that node "
            f"goes, {caller.fails}",
            "spread the pods with a topology spread constraint or a pod anti-affinity",
        )


def _kubectl(verb: str, workload: ServingWorkload, *options: str) -> str:
    metadata = workload.metadata
    kind = workload.kind.lower()
    words = ("kubectl", verb, kind, metadata.name, "--namespace", metadata.namespace, *options)
    return shlex.join(words)


def _budget(service: ServiceReference, state: ClusterState, workload: ServingWorkload) -> str:
    """Return the command that creates a budget for the pods behind a Service."""
    found = state.service(service)
    labels = ",".join(f"{key}={each}" for key, each in found.spec.selector.items()) if found else ""
    name, space = workload.metadata.name, workload.metadata.namespace
    options = ("--namespace", space, f"--selector={labels}", "--min-available=1")
    return shlex.join(("kubectl", "create", "poddisruptionbudget", name, *options))


def _has_budget(service: ServiceReference, state: ClusterState) -> bool:
    """Return whether a budget selects the pods behind a Service, or may do so."""
    if not state.knows("policy", "PodDisruptionBudget"):
        return True
    labels = [each.spec.template.metadata.labels for each in state.serving(service)]
    selectors = [
        compile_selector(each.spec.selector)
        for each in state.within(DisruptionBudget, service.namespace)
        if each.spec.selector is not None
    ]
    return any(selects(each) for selects in selectors for each in labels)
