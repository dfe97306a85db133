"""An object's planned children, judged with it: the requests by which the controller would create or update them."""

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from operator import methodcaller
from typing import TYPE_CHECKING, Any

from webhook.engine.bound import outcomes_of
from webhook.engine.exceptions import NOW
from webhook.engine.fields import Fields, steps_of
from webhook.engine.jsonpatch import Patcher
from webhook.engine.look_ups import with_object
from webhook.engine.origins import traced
from webhook.engine.planners import SERVED, Object, PlannedObject, Planner, Planners, RefusedError
from webhook.engine.request import PARENT, Attributes, Request
from webhook.engine.verdict import Outcome, Verdict
from webhook.engine.violation import Before, Patch, Violation

if TYPE_CHECKING:
    from webhook.engine.engine import Engine


def judge_children(engine: "Engine", planner: Planner, request: Request) -> Iterator[Outcome]:
    """Yield the outcomes of all planned children; a planner that raises is an outcome, as a policy is.

    Each child finds those created before it when it looks others up.
    """
    plan = Plan(engine.planners, planner)
    yield from outcomes_of([plan], methodcaller("validate", request))
    looked_up = request.looked_up
    for child in plan.children:
        outcomes, object = _judged(engine, child, looked_up)
        yield from (child.mapped(each) for each in outcomes)
        looked_up = with_object(looked_up, object, child.attributes.namespace)


@dataclass(frozen=True, slots=True)
class Child:
    """One object that would be created, or updated where there is an `old` one, and where its fields come from."""

    attributes: Attributes
    object: Object
    old: Object | None
    origin: Mapping[str, str]
    parent: Object

    def mapped(self, outcome: Outcome) -> Outcome:
        """Return an outcome about the child in terms of its parent."""
        mapped = outcome.mapped(self._mapped)
        return replace(mapped, patched=False) if mapped.patched else mapped

    def _mapped(self, violation: Violation) -> Violation:
        if violation.of:
            return violation
        source = traced(violation.path, self.origin, self.parent)
        if source is not None:
            return replace(violation, field=source, holder=None)
        return replace(violation, of=f"{self.attributes.kind}/{self.attributes.name}")


class Plan:
    """The children planned for one request. It is asked as a policy is, and denies what cannot be planned."""

    actions = frozenset({"Deny"})
    fails_closed = True

    def __init__(self, planners: Planners, planner: Planner) -> None:
        """Start without children."""
        self.title = f"{planner.kind.kind.lower()}-plan"
        self.children: list[Child] = []
        self._planners = planners
        self._planner = planner

    def validate(self, request: Request) -> Outcome | None:
        """Find the children; those that the object had before are updated. Return what no plan can be made of."""
        object, old = _states(self._planner, request)
        before, refused_before = self._planned(old, request)
        planned, refused = self._planned(object, request)
        tolerated = Before(refused_before)
        new = tuple(each for each in refused if not tolerated.holds(each))
        if new:
            return Outcome(f"{self._planner.kind.kind.lower()}-schema", self.actions, new)
        existing = {_identity(each.object): each.object for each in before}
        for each in planned:
            child_before = existing.get(_identity(each.object))
            if object is not None and (child_before is None or not each.once):
                self.children.append(self._child(request, object, each, child_before))
        return None

    def _planned(
        self, object: Object | None, request: Request
    ) -> tuple[tuple[PlannedObject, ...], tuple[Violation, ...]]:
        """Return the children of a state of the object, and why there can be none."""
        if object is None:
            return (), ()
        served = request.lookup(SERVED) if self._planner.optional else ()
        try:
            return tuple(self._planner.plan(object, request.lookup(NOW), served)), ()
        except RefusedError as error:
            return (), error.violations

    def _child(self, request: Request, parent: Object, planned: PlannedObject, old: Object | None) -> Child:
        """Return a child with the request by which the controller would create it, or update the `old` one."""
        kind, user = self._planner.planned_kind(planned.object), self._planners.controller_user
        namespace = request.attributes.namespace if kind.namespaced else ""
        attributes = Attributes(
            uid=request.attributes.uid,
            operation="CREATE" if old is None else "UPDATE",
            group=kind.group,
            version=str(planned.object["apiVersion"]).rpartition("/")[2],
            kind=kind.kind,
            resource_group=kind.group,
            resource=kind.plural,
            name=str(planned.object["metadata"]["name"]),
            namespace=namespace,
            username=user.username,
            groups=user.groups,
            dry_run=request.attributes.dry_run,
        )
        planner, owner = self._planners.of(kind), parent if planned.owned else None

        def stored(object: Object) -> Object:
            return _placed(planner.filled(object) if planner else object, namespace, owner)

        before = None if old is None else stored(old)
        return Child(attributes, stored(planned.object), before, planned.origin, parent)


def _states(planner: Planner, request: Request) -> tuple[Object | None, Object | None]:
    """Return the whole object as it would be, and as it was; of a /scale those of what it scales."""
    attributes = request.attributes
    if attributes.subresource == "scale":
        old = request.lookup(PARENT)
        if not old or planner.replicas is None:
            return None, None
        scaled = Request(attributes, copy.deepcopy(old))
        replicas = request.integer("spec.replicas") or 0
        Patcher(scaled).apply([Patch(steps_of(planner.replicas), replicas, overwrite=True)])
        return scaled.object, old
    names = {"name": request.name, "namespace": attributes.namespace}
    old = request.old_object if attributes.operation == "UPDATE" else None
    object, old = (
        None if each is None else each | {"metadata": Fields(each).mapping("metadata") | names}
        for each in (request.object, old)
    )
    return object, old


def _identity(object: Object) -> tuple[str, str, str]:
    return object["apiVersion"], object["kind"], object["metadata"]["name"]


def _placed(object: Object, namespace: str, owner: Object | None) -> Object:
    """Return a child in its namespace, and with its owner where it has one."""
    metadata = object["metadata"] | ({"namespace": namespace} if namespace else {})
    if owner is not None:
        reference = {
            "apiVersion": owner.get("apiVersion"),
            "kind": owner.get("kind"),
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"].get("uid", ""),
            "controller": True,
            "blockOwnerDeletion": True,
        }
        metadata["ownerReferences"] = [reference]
    return object | {"metadata": metadata}


def _judged(engine: "Engine", child: Child, looked_up: Mapping[str, Any]) -> tuple[tuple[Outcome, ...], Object]:
    """Return the outcomes of a child, and the child as it would be stored.

    Mutations come first. What they set when a child is created stays when it is updated: the controller applies its
    own fields only. So both states of an update have them.
    """
    attributes, object, old = child.attributes, child.object, child.old
    if old is not None:
        created = attributes._replace(operation="CREATE")
        object, old = (_mutated(engine, created, each, None, looked_up)[1] for each in (object, old))
    mutation, object = _mutated(engine, attributes, object, old, looked_up)
    if not mutation.allowed:
        return mutation.outcomes, object
    return mutation.outcomes + engine.validate(Request(attributes, object, old, looked_up)).outcomes, object


def _mutated(
    engine: "Engine", attributes: Attributes, object: Object, old: Object | None, looked_up: Mapping[str, Any]
) -> tuple[Verdict, Object]:
    """Return the verdict of mutating policies about an object, and a copy of it as they leave it."""
    object = copy.deepcopy(object)
    return engine.mutate(Request(attributes, object, old, looked_up)), object
