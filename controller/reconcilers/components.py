"""The cache, the backend and the frontend of AppStack and EcommercePlatform."""

from collections.abc import Mapping, Sequence
from fractions import Fraction

from config.api.components import CacheComponent, Workload
from config.quantities import MILLI, parse_quantity
from config.service_order import title_of
from controller.reconcilers import restricted
from controller.reconcilers.application import (
    ORIGIN,
    Application,
    metadata,
    origins,
    plan_application,
)
from controller.reconcilers.autoscaling import Scaled, scaling
from controller.reconcilers.component import Component, ComponentsParent, delete_existing, without
from controller.reconcilers.images import image
from controller.reconcilers.readiness import rolled_out
from controller.reconcilers.requirements import complete_requirements
from controller.reconcilers.resources import AUTOSCALER, BUDGET, DEPLOYMENT, SERVICE
from controller.runtime.plan import Apply, Problem, Write, incomplete
from kube.resource import JsonObject

APP_USER = 1000  # default user of a workload, the same as for a WebApp in production
CACHE_USER = 999  # the image's user
CACHE_PORT = 6379
CACHE_COMMAND = ("valkey-server", "--save", "", "--appendonly", "no", "--protected-mode", "no")
CACHE_SHARE = Fraction(3, 4)  # share of the memory limit that holds cached data

WORKLOAD = (DEPLOYMENT, SERVICE, BUDGET, AUTOSCALER)
FIELDS = ("replicas", "image", "port", "resources", "env", "securityContext")


def cache(parent: ComponentsParent, spec: CacheComponent) -> Component:
    """Return the cache: Valkey without persistence that evicts the least recently used keys."""
    name = parent.child_name("cache")
    if not spec.enabled:
        return without_cache(parent)
    resources = complete_requirements(spec.resources, parent.tier.cache)
    application = Application(
        name=name,
        namespace=parent.namespace,
        container="cache",
        image=image(parent.observed.settings, "valkey/valkey", "8.1"),
        port=CACHE_PORT,
        port_name="redis",
        replicas=1,
        resources=resources,
        labels=parent.child_labels("cache"),
        settings={
            "command": [*CACHE_COMMAND, *_memory(resources)],
            "readinessProbe": {"tcpSocket": {"port": "redis"}, "periodSeconds": 5},
            "livenessProbe": {
                "tcpSocket": {"port": "redis"},
                "periodSeconds": 10,
                "failureThreshold": 6,
            },
            "securityContext": restricted.container(),
            "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        },
        pod={
            "automountServiceAccountToken": False,
            "securityContext": restricted.pod(CACHE_USER),
            "volumes": [{"name": "data", "emptyDir": {"sizeLimit": "64Mi"}}],
        },
    )
    fields = dict.fromkeys(("resources", "command"), "spec.cache.resources")
    return _plan_deployment(parent, "cache", application, fields, "redis", application.replicas)


def without_cache(parent: ComponentsParent) -> Component:
    """Return a disabled cache."""
    name = parent.child_name("cache")
    return without(parent, "cache", [(DEPLOYMENT, name), (SERVICE, name)])


def _memory(resources: JsonObject) -> list[str]:
    limit = (resources.get("limits") or {}).get("memory")
    most = (
        []
        if limit is None
        else ["--maxmemory", str(int(parse_quantity(str(limit)).millis * CACHE_SHARE / MILLI))]
    )
    return [*most, "--maxmemory-policy", "allkeys-lru"]


def workload(
    parent: ComponentsParent,
    name: str,
    spec: Workload,
    variables: Sequence[JsonObject],
    annotations: Mapping[str, str] | None = None,
    *,
    path: str = "",
) -> Component:
    """Return the backend, the frontend or a service, whose fields are at `path`.

    Its own `env` overrides `variables`, the endpoints of the others.
    """
    full, path = parent.child_name(name), path or f"spec.{name}"
    if spec.image is None:
        note, url = incomplete(f"{path}.image"), parent.url("http", name, spec.port)
        problem = Problem(f"{title_of(name)} deployment failed: {note.message}", note.reason)
        return Component(name, ready=False, note=note, url=url, problem=problem)
    own = [each.to_api() for each in spec.env]
    overridden = {each["name"] for each in own}
    tier, selector = parent.tier, {"app": full}
    application = Application(
        name=full,
        namespace=parent.namespace,
        container=name,
        image=spec.image,
        port=spec.port,
        replicas=spec.replicas or tier.replicas,
        resources=spec.resources.to_api() if spec.resources else tier.workload,
        labels=parent.child_labels(name),
        annotations=annotations or {},
        settings={
            **_readiness(spec),
            "env": [*(each for each in variables if each["name"] not in overridden), *own],
            "securityContext": {
                **restricted.container(readOnlyRootFilesystem=False, runAsUser=APP_USER),
                **(spec.security_context.to_api() if spec.security_context else {}),
            },
        },
        pod=_spread(selector) if tier.spread else {},
    )
    scaled = Scaled(
        metadata(application),
        f"{path}.autoscaling",
        "spec.environment",
        f"{title_of(name)}Autoscaled",
        parent.observed,
        parent.now,
    )
    by = scaling(spec.autoscaling, application.replicas, scaled)
    application.replicas, application.autoscaled = by.replicas, by.autoscaled
    fields = {each: f"{path}.{each}" for each in FIELDS} | {"replicas": by.field}
    fields |= {"readinessProbe": f"{path}.readinessPath", "affinity": "spec.environment"}
    desired = by.desired_replicas(parent.observed.child(DEPLOYMENT, full))
    component = _plan_deployment(parent, name, application, fields, "http", desired)
    budget: list[Write] = (
        [Apply(_budget(parent, name, selector), ORIGIN)]
        if tier.spread
        else delete_existing(parent, [(BUDGET, full)])
    )
    component = component._replace(
        writes=[*component.writes, *budget, *by.writes], conditions=by.conditions
    )
    if by.problem is None:
        return component
    problem = Problem(
        f"{component.title} deployment failed: {by.problem.message}", by.problem.reason
    )
    return component._replace(ready=False, note=by.problem, problem=problem)


def _readiness(spec: Workload) -> JsonObject:
    get = {"path": spec.readiness_path, "port": "http"}
    return {"readinessProbe": {"httpGet": get, "periodSeconds": 5}} if spec.readiness_path else {}


def url_variable(variable: str, component: Component) -> list[JsonObject]:
    """Return the environment variable with a component's URL.

    None where the component has no URL.
    """
    return [{"name": variable, "value": component.url}] if component.url else []


def without_workload(parent: ComponentsParent, name: str) -> Component:
    """Return a disabled backend or frontend."""
    full = parent.child_name(name)
    return without(parent, name, [(each, full) for each in WORKLOAD])


def _spread(selector: Mapping[str, str]) -> JsonObject:
    """Return the anti-affinity that prefers a different node for each pod of a workload."""
    term = {
        "labelSelector": {"matchLabels": dict(selector)},
        "topologyKey": "kubernetes.io/hostname",
    }
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    return {
        "affinity": {
            "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}
        }
    }


def _budget(parent: ComponentsParent, name: str, selector: Mapping[str, str]) -> JsonObject:
    """Return the PodDisruptionBudget that lets a drain evict one pod at a time."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {
            "name": parent.child_name(name),
            "namespace": parent.namespace,
            "labels": {**parent.child_labels(name), **selector},
        },
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": dict(selector)}},
    }


def _plan_deployment(
    parent: ComponentsParent,
    name: str,
    application: Application,
    fields: Mapping[str, str],
    scheme: str,
    desired: int,
) -> Component:
    """Return the component of a Deployment, of `desired` replicas now, and its Service."""
    ready, note = rolled_out(parent.observed.child(DEPLOYMENT, application.name), desired)
    url = parent.url(scheme, name, application.port)
    return Component(
        name,
        plan_application(application, origins(application.container, fields)),
        ready=ready,
        note=note,
        url=url,
    )
