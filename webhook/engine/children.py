"""Judges the planned children of an object, as the requests that would create them."""

import copy
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import orjson

from kube.resource import JsonObject, group_version
from webhook.engine.bound import outcomes_of
from webhook.engine.exemptions import NOW
from webhook.engine.fields import Fields
from webhook.engine.jsonpatch import Patcher
from webhook.engine.look_ups import with_object
from webhook.engine.origins import trace_field
from webhook.engine.planners import (
    SERVED,
    ControllerUser,
    PlannedChildren,
    PlannedObject,
    Planner,
    Planners,
)
from webhook.engine.request import LACKED, PARENT, Attributes, Request
from webhook.engine.verdict import Outcome, Verdict, lacked_look_ups
from webhook.engine.violation import Before, ChildField, Patch, Violation, steps_of


class JudgesRequests(Protocol):
    """The engine, which judges a child like any request."""

    planners: Planners

    def mutate(self, request: Request) -> Verdict:
        """Change the request's object by the mutating policies."""

    def validate(self, request: Request) -> Verdict:
        """Return what the validating policies report."""


class Child(NamedTuple):
    """A child to be created, or updated from `old`, and the origins of its fields."""

    attributes: Attributes
    object: JsonObject
    old: JsonObject | None
    origin: Mapping[str, str]
    parent: JsonObject

    def map_to_parent(self, violation: Violation) -> Violation:
        """Return a violation mapped to the parent's field, if the field comes from the parent."""
        if violation.of:
            return violation
        kind, name = self.attributes.kind, self.attributes.name
        child = violation.child or ChildField(
            kind, self.attributes.namespace, name, violation.where
        )
        source = trace_field(violation.path, self.origin, self.parent)
        if source is not None:
            return replace(violation, field=source, holder=None, child=child)
        return replace(violation, of=f"{kind}/{name}", child=child)


def judge_children(engine: JudgesRequests, planner: Planner, request: Request) -> Iterator[Outcome]:
    """Yield the outcomes of all planned children.

    A planner that raises becomes an outcome, like a policy. Look-ups of a child include the
    children that are created before it.
    """
    children: list[Child] = []
    user, looked_up = engine.planners.controller_user, request.looked_up
    yield from outcomes_of([planner], lambda planner: _plan(planner, request, user, children))
    for child in children:
        outcomes, object = _judge_child(engine, child, looked_up)
        for outcome in outcomes:
            mapped = outcome.map_violations(child.map_to_parent)
            yield replace(mapped, patched=False) if mapped.patched else mapped
        looked_up = with_object(looked_up, object, child.attributes.namespace)


def _plan(
    planner: Planner, request: Request, user: ControllerUser, children: list[Child]
) -> Outcome | None:
    """Add an object's children, as creations or updates, or return the outcome of a failure."""
    object, old = _states(planner, request)
    if object is None:
        return None
    now, served = request.lookup(NOW), request.lookup(SERVED) if planner.optional else ()
    before = PlannedChildren() if old is None else planner.plan(old, now, served)
    planned, tolerated = planner.plan(object, now, served), Before(before.refused)
    if new := tuple(each for each in planned.refused if not tolerated.holds(each)):
        return Outcome(f"{planner.kind.kind.lower()}-schema", planner.actions, new)
    existing = {each.identity: each for each in before.children}
    for child in planned.children:
        old_child = existing.get(child.identity)
        if old_child is None or not child.once:
            children.append(_child(request, user, object, child, old_child))
    return None


def _child(
    parent_request: Request,
    user: ControllerUser,
    parent: JsonObject,
    planned: PlannedObject,
    old: PlannedObject | None,
) -> Child:
    """Return a child with the request by which the controller would create or update it."""
    kind, of_parent = planned.kind, parent_request.attributes
    attributes = Attributes(
        uid=of_parent.uid,
        operation="CREATE" if old is None else "UPDATE",
        group=kind.group,
        version=group_version(str(planned.object["apiVersion"]))[1],
        kind=kind.kind,
        resource_group=kind.group,
        resource=kind.plural,
        name=str(planned.object["metadata"]["name"]),
        namespace=of_parent.namespace if kind.namespaced else "",
        username=user.username,
        groups=user.groups,
        dry_run=of_parent.dry_run,
    )
    owner = parent if planned.owned else None
    # The manifest of a parent in a file may leave the namespace open, and so do the children then.
    is_written = bool(parent_request.string("metadata.namespace"))
    namespace = attributes.namespace if is_written else ""
    before = None if old is None else _as_stored(old.object, namespace, owner)
    stored = _as_stored(planned.object, namespace, owner)
    return Child(attributes, stored, before, planned.origin, parent)


def _states(planner: Planner, request: Request) -> tuple[JsonObject | None, JsonObject | None]:
    """Return the whole new and old object; for a /scale, those of its parent."""
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

    def name_object(object: JsonObject | None) -> JsonObject | None:
        if object is None:
            return None
        return object | {"metadata": Fields(object).mapping("metadata") | names}

    old = request.old_object if attributes.operation == "UPDATE" else None
    return name_object(request.object), name_object(old)


def _as_stored(object: JsonObject, namespace: str, owner: JsonObject | None) -> JsonObject:
    """Return a copy of a child with its namespace, if known, and with its owner if it has one."""
    # Copied, since a planner may share parts between objects, and policies change them in place.
    copied: JsonObject = orjson.loads(orjson.dumps(object))
    metadata = copied["metadata"]
    metadata.pop("namespace", None)
    if namespace:
        metadata["namespace"] = namespace
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
    return copied


def _judge_child(
    engine: JudgesRequests, child: Child, looked_up: Mapping[str, Any]
) -> tuple[tuple[Outcome, ...], JsonObject]:
    """Return the outcomes of a child, and the child as it would be stored.

    Mutations come first. Fields that they set at creation stay in updates, since the controller
    applies only its own fields. So both states of an update have them.
    """
    attributes, object, old = child.attributes, child.object, child.old
    created = attributes._replace(operation="CREATE")
    mutation = engine.mutate(Request(created, object, None, looked_up))
    if old is not None:
        engine.mutate(Request(created, old, None, looked_up))
        mutation = engine.mutate(Request(attributes, object, old, looked_up))
    if not mutation.allowed:
        return mutation.outcomes, object
    looked_up = {**looked_up, LACKED: lacked_look_ups(mutation.outcomes)}
    validation = engine.validate(Request(attributes, object, old, looked_up))
    return mutation.outcomes + validation.outcomes, object
