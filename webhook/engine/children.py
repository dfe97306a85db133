"""An object's planned children: the requests by which the controller would create them, and what comes of those."""

import copy
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from webhook.engine.exceptions import NOW
from webhook.engine.fields import Fields
from webhook.engine.look_ups import with_object
from webhook.engine.origins import traced
from webhook.engine.planners import SERVED, Object, PlannedObject, Planner, Planners, RefusedError
from webhook.engine.request import GENERATED, PARENT, Attributes, Request
from webhook.engine.verdict import Outcome
from webhook.engine.violation import Before, Violation

if TYPE_CHECKING:
    from webhook.engine.engine import Engine


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


def judge_children(judge: "Engine", found: Iterable[Child], looked_up: Mapping[str, Any]) -> Iterator[Outcome]:
    """Yield what would come of all children; each finds those before it made when it looks others up."""
    for child in found:
        outcomes, object = _judged(judge, child, looked_up)
        yield from outcomes
        looked_up = with_object(looked_up, object, child.request.attributes.namespace)


def _judged(judge: "Engine", child: Child, looked_up: Mapping[str, Any]) -> tuple[tuple[Outcome, ...], Object]:
    """Return what would come of a child, in words about its parent, and the child as it would be stored.

    Our mutations come first. What they set when a child is made stays when it is updated: the controller applies
    its own fields only. So both states of an update have them.
    """
    request = child.request.with_looked_up(looked_up)
    if request.attributes.operation == "UPDATE":
        old = request.old_object
        assert old is not None
        created = request.attributes._replace(operation="CREATE")
        first, second = (_mutated(judge, Request(created, each, None, looked_up)) for each in (request.value, old))
        request = Request(request.attributes, first, second, looked_up)
    mutation = judge.mutate(request.with_object(copy.deepcopy(request.value)))
    object = mutation.object or request.value
    outcomes = mutation.outcomes
    if mutation.allowed:
        outcomes += judge.validate(request.with_object(object)).outcomes
    return tuple(map(child.told, outcomes)), object


def _mutated(judge: "Engine", request: Request) -> Object:
    return judge.mutate(request.with_object(copy.deepcopy(request.value))).object or request.value
