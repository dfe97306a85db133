"""An object's planned children, as the requests by which the controller would create them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from webhook.engine.exceptions import NOW
from webhook.engine.fields import Fields
from webhook.engine.origins import traced
from webhook.engine.planners import SERVED, Object, PlannedObject, Planner, Planners, RefusedError
from webhook.engine.request import GENERATED, PARENT, Attributes, Request
from webhook.engine.verdict import Outcome
from webhook.engine.violation import Before, Violation


@dataclass(frozen=True, slots=True)
class Child:
    """One object that would be made: the request that would make it, and where its fields come from."""

    request: Request
    origin: Mapping[str, str]
    parent: Object

    def told(self, outcome: Outcome) -> Outcome:
        """Return an outcome about the child in words about its parent."""
        told = outcome.mapped(self._told)
        return replace(told, patched=False) if told.patched else told

    def _told(self, violation: Violation) -> Violation:
        source = None if violation.of else traced(violation.path, self.origin, self.parent)
        if source is not None:
            return replace(violation, field=source, holder=None)
        attributes = self.request.attributes
        return violation if violation.of else replace(violation, of=f"{attributes.kind}/{attributes.name}")


def children(planners: Planners, planner: Planner, request: Request) -> list[Child]:
    """Return what would be made for a request, each as a request of its own. RefusedError where nothing can be.

    What would be there already, made of the object as it was, is updated.
    """
    now, (object, old) = request.lookup(NOW), _states(planner, request)
    served = request.lookup(SERVED) if planner.optional else ()
    if object is None:
        return []
    try:
        before = [] if old is None else planner.plan(old, now, served)
    except RefusedError as error:
        before, refused = [], Before(error.violations)
    else:
        refused = Before(())
    try:
        made = planner.plan(object, now, served)
    except RefusedError as error:
        news = [each for each in error.violations if not refused.holds(each)]
        if news:
            raise RefusedError(news) from None
        return []
    there = {_name(planner, each.object): each.object for each in before}
    return [
        Child(_request(planners, planner, request, object, each, there), each.origin, object)
        for each in made
        if not (each.once and _name(planner, each.object) in there)
    ]


def _states(planner: Planner, request: Request) -> tuple[Object | None, Object | None]:
    """Return the whole object as it would be, and as it was; of a /scale those of what it scales."""
    old = request.old_object if request.attributes.operation == "UPDATE" else None
    if request.attributes.subresource == "scale":
        assert planner.replicas is not None
        old = request.lookup(PARENT) or None
        object = None if old is None else _with(old, planner.replicas.split("."), request.integer("spec.replicas") or 0)
        return object, old
    attributes = request.attributes
    return tuple(None if each is None else _named(each, attributes) for each in (request.object, old))  # type: ignore[return-value]


def _with(object: Object, path: list[str], value: Any) -> Object:
    step, *rest = path
    return object | {step: _with(object.get(step) or {}, rest, value) if rest else value}


def _named(object: Object, attributes: Attributes) -> Object:
    """Return an object with the name and the namespace that it will have."""
    metadata = Fields(object).mapping("metadata")
    name = metadata.get("name") or attributes.name or f"{metadata.get('generateName', '')}{GENERATED}"
    if metadata.get("name") == name and metadata.get("namespace", "") == attributes.namespace:
        return object
    return object | {"metadata": metadata | {"name": name, "namespace": attributes.namespace}}


def _name(planner: Planner, object: Object) -> tuple[str, str, str]:
    kind = planner.planned_kind(object)
    return kind.group, kind.kind, object["metadata"]["name"]


def _request(
    planners: Planners,
    planner: Planner,
    request: Request,
    parent: Object,
    made: PlannedObject,
    there: Mapping[tuple[str, str, str], Object],
) -> Request:
    """Return the request by which the controller would make something, or change what is there."""
    object = made.object
    kind, name = planner.planned_kind(object), str(object["metadata"]["name"])
    namespace = request.attributes.namespace if kind.namespaced else ""
    old = there.get((kind.group, kind.kind, name))
    attributes = Attributes(
        uid=request.attributes.uid,
        operation="CREATE" if old is None else "UPDATE",
        group=kind.group,
        version=str(object["apiVersion"]).rpartition("/")[2],
        kind=kind.kind,
        resource_group=kind.group,
        resource=kind.plural,
        name=name,
        namespace=namespace,
        username=planners.controller_user.username,
        groups=planners.controller_user.groups,
        dry_run=request.attributes.dry_run,
    )
    new, before = (
        None if each is None else _placed(planners.filled(kind, each), namespace, parent if made.owned else None)
        for each in (object, old)
    )
    return Request(attributes, new, before, kind=kind)


def _placed(object: Object, namespace: str, parent: Object | None) -> Object:
    """Return a child in its namespace, and with its owner where it has one."""
    metadata = object["metadata"] | ({"namespace": namespace} if namespace else {})
    if parent is not None:
        owner = {
            "apiVersion": parent.get("apiVersion"),
            "kind": parent.get("kind"),
            "name": parent["metadata"]["name"],
            "uid": parent["metadata"].get("uid", ""),
            "controller": True,
            "blockOwnerDeletion": True,
        }
        metadata["ownerReferences"] = [owner]
    return object | {"metadata": metadata}
