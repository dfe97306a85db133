"""The services of AppStack and EcommercePlatform: more workloads, in the order of dependencies."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from config.api.components import ServiceWorkload
from config.service_order import COMPONENTS, faults_of, order_services
from controller.reconcilers.component import Component, ComponentsParent, without
from controller.reconcilers.components import WORKLOAD, workload
from controller.reconcilers.indexes import keep_metadata
from controller.reconcilers.resources import DEPLOYMENT
from controller.runtime.kind import Reads
from controller.runtime.plan import Problem
from kube.resource import JsonObject
from kube.store import controller_of

COMPONENT = "app.kubernetes.io/component"
INDEX = "services"  # the uid of the stack
PARENTS = frozenset({"AppStack", "EcommercePlatform"})
Needs = tuple[Component, Sequence[Component]]


def _by_stack(deployment: JsonObject) -> Iterator[str]:
    """Yield the uid of the stack whose service a Deployment is."""
    metadata = deployment["metadata"]
    component = (metadata.get("labels") or {}).get(COMPONENT)
    owner = controller_of(metadata)
    if owner is not None and owner.kind in PARENTS and component and component not in COMPONENTS:
        yield owner.uid


def by_uid(parent: JsonObject) -> Iterator[str]:
    """Yield the uid of a stored AppStack or EcommercePlatform."""
    yield parent["metadata"]["uid"]


READS_SERVICES = Reads(DEPLOYMENT, {INDEX: _by_stack}, fields=keep_metadata)


def services(
    parent: ComponentsParent,
    uid: str,
    specs: Sequence[ServiceWorkload],
    components: Mapping[str, Component],
    variables: Mapping[str, Sequence[JsonObject]],
    annotations: Callable[[int], Mapping[str, str]] = lambda port: {},
) -> list[Needs]:
    """Return the services, each after those that it depends on, and the removed ones.

    `components` are the stack's other components, and `variables` the environment of a workload
    that depends on one of them. A service gets the environment of what it depends on.
    """
    named = [(spec.name, [*dict.fromkeys(spec.depends_on)]) for spec in specs]
    enabled = {name: component for name, component in components.items() if component.enabled}
    faults = faults_of(named, enabled)
    done, needed = dict(enabled), list[Needs]()
    for place in order_services(named, faults):
        spec, fault = specs[place], faults.get(place)
        needs = () if fault else [done[name] for name in named[place][1]]
        path = f"spec.services[name={spec.name}]"
        if fault is None:
            environment = [
                variable for need in needs for variable in variables.get(need.name) or _url_of(need)
            ]
            component = workload(
                parent, spec.name, spec, environment, annotations(spec.port), path=path
            )
        else:
            wrong = f"{path}.{fault.field}: {fault.found}; {fault.rule}. {fault.fix.capitalize()}"
            component = Component(spec.name, ready=False, note=Problem(wrong, "Invalid"))
            failed = Problem(f"{component.title} deployment failed: {wrong}", "Invalid")
            component = component._replace(problem=failed)
        done.setdefault(spec.name, component)
        needed.append((component, needs))
    return [*needed, *((each, ()) for each in _removed_services(parent, uid, done))]


def _url_of(component: Component) -> list[JsonObject]:
    variable = f"{component.name.upper().replace('-', '_')}_URL"
    return [{"name": variable, "value": component.url}] if component.url else []


def _removed_services(
    parent: ComponentsParent, uid: str, kept: Mapping[str, Component]
) -> Iterator[Component]:
    """Yield the services that left the spec.

    The Deployment of each is deleted last, since it is how the service is found.
    """
    for deployment in parent.observed.find(DEPLOYMENT, INDEX, uid):
        name = deployment["metadata"]["labels"][COMPONENT]
        full = parent.child_name(name)
        if name not in kept and parent.observed.child(DEPLOYMENT, full) is not None:
            yield without(parent, name, [(each, full) for each in reversed(WORKLOAD)])
