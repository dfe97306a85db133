"""What policies look up, read once for a whole audit: namespaces' labels, and the objects of LOOK_UPS in use."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from controller.audit.listing import Lister
from controller.audit.objects import resource_of
from kube.resource import Resource
from webhook.engine import NAMESPACE as NAMESPACE_OBJECT
from webhook.engine import NAMESPACE_LABELS, NOW, SERVED, Engine
from webhook.engine.kinds import KINDS
from webhook.engine.look_ups import LOOK_UPS, LookUp
from webhook.engine.planners import Served
from webhook.engine.request import NAME_LABEL

NAMESPACE = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
LIMIT_RANGE = Resource("", "v1", "limitranges", "LimitRange")
NOTHING: list[Any] = []


class Inventory:
    """The state of a cluster that one audit judges by."""

    def __init__(self, namespaces: Mapping[str, Any], found: Mapping[str, Mapping[str, list[Any]]]) -> None:
        """Take the Namespaces by name, and by look-up and namespace ("" for all of them) the objects."""
        self._namespaces, self._found = namespaces, found

    def about(self, namespace: str, now: datetime, served: Served) -> dict[str, Any]:
        """Return what is looked up for an object in `namespace` at the time `now`."""
        objects = {
            name: each.get("" if LOOK_UPS[name].everywhere else namespace, NOTHING)
            for name, each in self._found.items()
        }
        about = self._namespaces.get(namespace)
        labels = {**((about or {"metadata": {}})["metadata"].get("labels") or {}), NAME_LABEL: namespace}
        return {**objects, NAMESPACE_OBJECT: about, NAMESPACE_LABELS: labels, NOW: now, SERVED: served}


async def take_inventory(lister: Lister, engine: Engine) -> Inventory:
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
    return Inventory(namespaces, found)


def look_ups_of(*engines: Engine) -> dict[str, LookUp]:
    """Return the look-ups that policies in force need."""
    needed = {name for engine in engines for bound in engine.policies for name in bound.needs}
    return {name: look_up for name, look_up in LOOK_UPS.items() if name in needed}


def resource_named(kind: str) -> Resource:
    """Return where the objects of a kind are that is looked up."""
    found = next((each for each in KINDS.values() if each.kind == kind), None)
    return LIMIT_RANGE if found is None else resource_of(found)
