"""The look-ups of policies: name, resources, and the used part of each object."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from kube.resource import GroupKind, JsonObject, Resource, group_kind
from webhook.engine.fields import Fields, WrongTypeError
from webhook.engine.kinds import AUTOSCALERS, KINDS, POD_KINDS, RBAC

Read = TypeVar("Read")


@dataclass(frozen=True, slots=True)
class LookUp:
    """A look-up: the objects of some kinds in the request's namespace, or in all namespaces."""

    resources: tuple[Resource, ...]
    # reduces an object to the used part
    shape: Callable[[JsonObject, str], JsonObject] | None = None
    everywhere: bool = False
    completes: bool = False  # valid only if all objects of the namespace are known

    def includes(self, kind: GroupKind) -> bool:
        """Return whether objects of a kind are looked up."""
        return any((each.group, each.kind) == kind for each in self.resources)

    def used_part(self, object: JsonObject, namespace: str) -> JsonObject:
        """Return the used part of an object of `namespace`."""
        return object if self.shape is None else self.shape(object, namespace)


def summary(ingress: Mapping[str, Any], namespace: str = "") -> dict[str, Any]:
    """Return namespace, name and hosts of an Ingress.

    `namespace` is the default. Fields with wrong types are left out: the object is denied when it
    is judged itself.
    """
    metadata, spec = ingress["metadata"], ingress.get("spec")
    rules = spec.get("rules") if isinstance(spec, dict) else None
    objects = [each for each in rules if isinstance(each, dict)] if isinstance(rules, list) else []
    hosts = (rule.get("host") for rule in objects)
    return {
        "namespace": metadata.get("namespace") or namespace,
        "name": metadata["name"],
        "hosts": [host for host in hosts if isinstance(host, str) and host],
    }


LIMIT_RANGE = Resource("", "v1", "limitranges", "LimitRange")  # which no policy judges
SERVICE = KINDS["", "Service"].resource
BUDGET = KINDS["policy", "PodDisruptionBudget"].resource
INGRESS = KINDS["networking.k8s.io", "Ingress"].resource
CLUSTER_ROLE = KINDS[RBAC, "ClusterRole"].resource
SCALERS = tuple(kind.resource for kind in AUTOSCALERS)
SCALED_OBJECT = KINDS["keda.sh", "ScaledObject"].resource
WORKLOADS = tuple(kind.resource for kind in POD_KINDS if kind.scales)
LOOK_UPS = {
    "limit_ranges": LookUp((LIMIT_RANGE,), completes=True),
    "services": LookUp((SERVICE,)),
    "disruption_budgets": LookUp((BUDGET,)),
    "workloads": LookUp(WORKLOADS),
    "autoscalers": LookUp(SCALERS),
    "cluster_roles": LookUp((CLUSTER_ROLE,), everywhere=True),
    "ingresses": LookUp((INGRESS,), summary, everywhere=True),
}


def with_object(
    looked_up: Mapping[str, Any], object: JsonObject, namespace: str
) -> Mapping[str, Any]:
    """Return the look-ups for `namespace` after `object` is created or replaced."""
    changed = {}
    for name, look_up in LOOK_UPS.items():
        if name in looked_up and look_up.includes(group_kind(object)):
            new = look_up.used_part(object, namespace)
            id = _id(new, namespace)
            others = [each for each in looked_up[name] if _id(each, namespace) != id]
            changed[name] = [*others, new]
    return {**looked_up, **changed} if changed else looked_up


def read_each(objects: Iterable[JsonObject], read: Callable[[Fields], Read]) -> Iterator[Read]:
    """Yield the result of `read` for each object.

    Skip malformed ones, which are denied themselves.
    """
    for object in objects:
        try:
            yield read(Fields(object))
        except WrongTypeError:
            continue


def _id(object: JsonObject, namespace: str) -> tuple[Any, ...]:
    metadata = object.get("metadata") or object  # a summary has its name at the top level
    return object.get("kind"), metadata.get("namespace") or namespace, metadata.get("name")
