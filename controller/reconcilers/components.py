"""The components of AppStack and EcommercePlatform: the children of each, its readiness, and its endpoint."""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from config.api.components import Cache, Workload
from config.quantities import parse_quantity
from controller.reconcilers import restricted
from controller.reconcilers.application import ORIGIN, Application, applied, origins
from controller.reconcilers.images import image
from controller.reconcilers.readiness import rolled_out
from controller.reconcilers.requirements import completed
from controller.reconcilers.resources import BUDGET, DEPLOYMENT, SERVICE
from controller.reconcilers.tiers import Tier
from controller.runtime.plan import Apply, Delete, Object, Observed, Problem, Reference, Step, Write, incomplete
from kube.resource import Resource

APP_USER = 1000  # whom a workload runs as that says nothing else, as a WebApp in production
CACHE_USER = 999  # whom the image runs as by itself
CACHE_PORT = 6379
CACHE_COMMAND = ("valkey-server", "--save", "", "--appendonly", "no", "--protected-mode", "no")
CACHE_SHARE = Fraction(3, 4)  # of the memory limit is for what is cached

FIELDS = ("replicas", "image", "port", "resources", "env", "securityContext")

Place = tuple[Resource, str]


class Whole(NamedTuple):
    """What components are parts of, and what was observed of it."""

    name: str
    namespace: str
    labels: Mapping[str, str]
    tier: Tier
    observed: Observed

    def named(self, component: str) -> str:
        """Return the name of a component's children."""
        return f"{self.name}-{component}"

    def labelled(self, component: str) -> dict[str, str]:
        """Return the labels of a component's children, beside those of selectors."""
        return {**self.labels, "app.kubernetes.io/component": component}

    def url(self, scheme: str, component: str, port: int) -> str:
        """Return where a component is reached from anywhere in the cluster."""
        return f"{scheme}://{self.named(component)}.{self.namespace}.svc:{port}"


class Component(NamedTuple):
    """One part of a whole: what it writes, and how that is."""

    name: str
    writes: Sequence[Write] = ()
    ready: bool = True
    note: str | Problem = ""
    url: str = ""
    is_wanted: bool = True
    problem: Problem | None = None  # that only a change of the spec can mend
    is_failed: bool = False  # for good, as its own status says
    doing: str = "deployment failed"

    def step(self, needs: Iterable["Component"] = ()) -> Step:
        """Return the step that makes it, once those hold that it needs."""
        needed = [each for each in needs if each.is_wanted]
        unmet = [each.name for each in needed if not each.ready]
        return Step(
            self.name,
            self.writes,
            depends_on=[each.name for each in needed],
            ready=self.ready,
            doing=f"{self.title} {self.doing}",
            condition=f"{self.title}Ready" if self.is_wanted else "",
            note=self.note or (f"waiting for {', '.join(unmet)}" if unmet and not self.ready else ""),
        )

    @property
    def title(self) -> str:
        """Its name as conditions write it."""
        return self.name.capitalize()


def without(whole: Whole, name: str, places: Iterable[Place]) -> Component:
    """Return a component that is not wanted: what was made of it before is removed."""
    return Component(name, removed(whole, places), is_wanted=False)


def removed(whole: Whole, places: Iterable[Place]) -> list[Write]:
    """Return the deletion of each child that is in one of the places."""
    observed = ((resource, name, whole.observed.child(resource, name)) for resource, name in places)
    return [
        Delete(Reference(resource, name, child["metadata"]["uid"], whole.namespace))
        for resource, name, child in observed
        if child is not None
    ]


def cache(whole: Whole, spec: Cache) -> Component:
    """Return the cache: a Valkey server that keeps nothing on disk and drops what was not used for longest."""
    name = whole.named("cache")
    if not spec.enabled:
        return without_cache(whole)
    resources = completed(spec.resources, whole.tier.cache)
    application = Application(
        name=name,
        namespace=whole.namespace,
        container="cache",
        image=image(whole.observed.settings, "valkey/valkey", "8.1"),
        port=CACHE_PORT,
        port_name="redis",
        replicas=1,
        resources=resources,
        labels=whole.labelled("cache"),
        settings={
            "command": [*CACHE_COMMAND, *_memory(resources)],
            "readinessProbe": {"tcpSocket": {"port": "redis"}, "periodSeconds": 5},
            "livenessProbe": {"tcpSocket": {"port": "redis"}, "periodSeconds": 10, "failureThreshold": 6},
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
    return _deployed(whole, "cache", application, fields, "redis")


def without_cache(whole: Whole) -> Component:
    """Return a cache that is not wanted."""
    name = whole.named("cache")
    return without(whole, "cache", [(DEPLOYMENT, name), (SERVICE, name)])


def _memory(resources: Object) -> list[str]:
    limit = (resources.get("limits") or {}).get("memory")
    most = [] if limit is None else ["--maxmemory", str(int(parse_quantity(str(limit)).value * CACHE_SHARE))]
    return [*most, "--maxmemory-policy", "allkeys-lru"]


def workload(
    whole: Whole, name: str, spec: Workload, variables: Sequence[Object], annotations: Mapping[str, str] | None = None
) -> Component:
    """Return backend or frontend; `variables` tell it where the others are, unless it says so itself."""
    full = whole.named(name)
    if spec.image is None:
        note, url = incomplete(f"spec.{name}.image"), whole.url("http", name, spec.port)
        problem = Problem(f"{name.capitalize()} deployment failed: {note.message}", note.reason)
        return Component(name, ready=False, note=note, url=url, problem=problem)
    own = [each.to_api() for each in spec.env]
    said = {each["name"] for each in own}
    tier, selector = whole.tier, {"app": full}
    application = Application(
        name=full,
        namespace=whole.namespace,
        container=name,
        image=spec.image,
        port=spec.port,
        replicas=spec.replicas or tier.replicas,
        resources=spec.resources.to_api() if spec.resources else tier.workload,
        labels=whole.labelled(name),
        annotations=annotations or {},
        settings={
            **_readiness(spec),
            "env": [*(each for each in variables if each["name"] not in said), *own],
            "securityContext": {
                **restricted.container(readOnlyRootFilesystem=False, runAsUser=APP_USER),
                **(spec.security_context.to_api() if spec.security_context else {}),
            },
        },
        pod=_spread(selector) if tier.spread else {},
    )
    fields = {each: f"spec.{name}.{each}" for each in FIELDS}
    fields |= {"readinessProbe": f"spec.{name}.readinessPath", "affinity": "spec.environment"}
    made = _deployed(whole, name, application, fields, "http")
    if tier.spread:
        return made._replace(writes=[*made.writes, Apply(_budget(whole, name, selector), ORIGIN)])
    return made._replace(writes=[*made.writes, *removed(whole, [(BUDGET, full)])])


def _readiness(spec: Workload) -> Object:
    get = {"path": spec.readiness_path, "port": "http"}
    return {"readinessProbe": {"httpGet": get, "periodSeconds": 5}} if spec.readiness_path else {}


def told(variable: str, component: Component) -> list[Object]:
    """Return the environment variable that tells where a component is; none where there is no such component."""
    return [{"name": variable, "value": component.url}] if component.url else []


def without_workload(whole: Whole, name: str) -> Component:
    """Return a backend or frontend that is not wanted."""
    full = whole.named(name)
    return without(whole, name, [(DEPLOYMENT, full), (SERVICE, full), (BUDGET, full)])


def _spread(selector: Mapping[str, str]) -> Object:
    """Return what keeps the pods of a workload on different nodes, where there are enough."""
    term = {"labelSelector": {"matchLabels": dict(selector)}, "topologyKey": "kubernetes.io/hostname"}
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    return {"affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}}


def _budget(whole: Whole, name: str, selector: Mapping[str, str]) -> Object:
    """Return what keeps all pods of a workload but one when nodes are drained."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {
            "name": whole.named(name),
            "namespace": whole.namespace,
            "labels": {**whole.labelled(name), **selector},
        },
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": dict(selector)}},
    }


def _deployed(whole: Whole, name: str, application: Application, fields: Mapping[str, str], scheme: str) -> Component:
    """Return the component that a Deployment is."""
    ready, note = rolled_out(whole.observed.child(DEPLOYMENT, application.name), application.replicas)
    url = whole.url(scheme, name, application.port)
    return Component(
        name, applied(application, origins(application.container, fields)), ready=ready, note=note, url=url
    )
