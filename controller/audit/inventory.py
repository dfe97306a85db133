"""Lists the objects that an audit judges, and its look-ups: Namespaces, objects of LOOK_UPS, and the served APIs."""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from controller.audit.listing import Lister, Object
from controller.audit.scope import Scope
from kube.errors import ApiError, NotFound, Unreachable
from kube.resource import Resource
from webhook.engine import NAMESPACE as NAMESPACE_OBJECT
from webhook.engine import NAMESPACE_LABELS, NOW, SERVED, Engine
from webhook.engine.kinds import KINDS, Kind
from webhook.engine.look_ups import LOOK_UPS, LookUp
from webhook.engine.planners import Served
from webhook.engine.request import NAME_LABEL

NAMESPACE = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
LIMIT_RANGE = Resource("", "v1", "limitranges", "LimitRange")


@dataclass(frozen=True, slots=True)
class Inventory:
    """The state of a cluster that one audit judges by."""

    namespaces: Mapping[str, Object]
    found: Mapping[str, Mapping[str, list[Object]]]  # by look-up and namespace ("" for all of them)
    served: Served
    now: datetime

    def about(self, namespace: str) -> dict[str, Any]:
        """Return the look-ups for an object in `namespace`."""
        objects = {
            name: each.get("" if LOOK_UPS[name].everywhere else namespace, []) for name, each in self.found.items()
        }
        about = self.namespaces.get(namespace)
        labels = {**((about or {"metadata": {}})["metadata"].get("labels") or {}), NAME_LABEL: namespace}
        return {**objects, NAMESPACE_OBJECT: about, NAMESPACE_LABELS: labels, NOW: self.now, SERVED: self.served}


async def take_inventory(lister: Lister, engine: Engine, now: datetime) -> Inventory:
    """Read what the policies in force look up. ApiError where the API server refuses."""
    namespaces = {each["metadata"]["name"]: each async for each in lister.objects(NAMESPACE)}
    found: dict[str, dict[str, list[Any]]] = {}
    for name, look_up in look_ups_of(engine).items():
        found[name] = {}
        for resource in map(resource_named, sorted(look_up.kinds)):
            async for object in lister.objects(resource):
                namespace = object["metadata"].get("namespace", "")
                place = "" if look_up.everywhere else namespace
                found[name].setdefault(place, []).append(look_up.shaped(object, namespace))
    return Inventory(namespaces, found, await served(lister, engine), now)


async def served(lister: Lister, engine: Engine) -> Served:
    """Return which of the resources that planners can do without the API server has."""
    optional = {kind: resource_of(kind) for planner in engine.planners for kind in planner.optional}
    versions = await lister.versions() if optional else ()
    return frozenset(
        [
            (kind.group, kind.plural)
            for kind, resource in optional.items()
            if resource.api_version in versions and await lister.client.serves(resource)
        ]
    )


async def objects(
    lister: Lister, scope: Scope, refused: Callable[[Kind, ApiError], None]
) -> AsyncIterator[tuple[Kind, Object]]:
    """Yield the objects in `scope`; of kinds that the API server does not have there are none.

    `refused` is called for each kind that cannot be listed. Unreachable where the API server cannot be reached.
    """
    versions = await lister.versions()
    for kind in scope.kinds:
        resource = resource_of(kind)
        if resource.api_version not in versions:
            continue
        try:
            async for object in lister.objects(resource):
                if scope.includes(kind, object):
                    yield kind, object
        except NotFound:
            continue  # its CRD is not installed
        except Unreachable:
            raise
        except ApiError as error:
            refused(kind, error)


def look_ups_of(*engines: Engine) -> dict[str, LookUp]:
    """Return the look-ups that policies in force need."""
    needed = {name for engine in engines for bound in engine.policies for name in bound.needs}
    return {name: look_up for name, look_up in LOOK_UPS.items() if name in needed}


def resource_of(kind: Kind) -> Resource:
    """Return where the objects of a kind are listed, in its newest version."""
    return Resource(kind.group, kind.versions[-1], kind.plural, kind.kind, namespaced=kind.namespaced)


def resource_named(kind: str) -> Resource:
    """Return where the objects of a kind are that is looked up."""
    found = next((each for each in KINDS.values() if each.kind == kind), None)
    return LIMIT_RANGE if found is None else resource_of(found)
