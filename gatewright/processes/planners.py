"""The planners of all kinds as plain functions, for the engine to judge children."""

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any

from pydantic import ValidationError

from config.api.meta import CustomResource
from config.defaulting import defaulted_as
from config.faults import faults
from config.settings import Settings, planner_settings
from controller.reconcilers import planned_kinds
from controller.reconcilers.images import is_chosen
from controller.runtime.child import fill_initial
from controller.runtime.kind import PlannedKind
from controller.runtime.plan import Apply, CreateOnly, Observed
from kube.resource import JsonObject, Resource
from webhook.engine import (
    ControllerUser,
    PlannedChildren,
    PlannedObject,
    Planner,
    Planners,
    Violation,
)
from webhook.engine.kinds import KINDS, Kind
from webhook.engine.planners import Served

SERVICE_ACCOUNTS = "system:serviceaccounts"


def planners_of(
    settings: Settings, home: str, controller_user: ControllerUser | None = None
) -> Planners:
    """Return the planners of the kinds that the controller reconciles.

    `controller_user` defaults to the controller's account in the namespace `home`, where it is
    installed.
    """
    values, enabled = planner_settings(settings), {name.lower() for name in settings.kinds}
    kinds = (kind for kind in planned_kinds() if not enabled or kind.name in enabled)
    controller_user = controller_user or service_account(home, settings.controller_account)
    planners = (planner(kind, values) for kind in kinds)
    return Planners(planners, controller_user, settings.namespaces, partial(is_chosen, values))


def service_account(namespace: str, name: str) -> ControllerUser:
    """Return a ServiceAccount as a user."""
    groups = (SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{namespace}", "system:authenticated")
    return ControllerUser(f"system:serviceaccount:{namespace}:{name}", groups)


def scaled_kinds() -> list[Resource]:
    """Return the resources of planned kinds that have /scale.

    The webhook looks up the scaled objects.
    """
    return [kind.resource for kind in planned_kinds() if kind.type.definition.scale is not None]


def optional_resources() -> list[Resource]:
    """Return the resources that the API server may not serve.

    Plans depend on whether it does.
    """
    return list(dict.fromkeys(each for kind in planned_kinds() for each in kind.optional))


def optional_children() -> list[Resource]:
    """Return the resources of children that the API server may not serve.

    A plan at admission depends on these alone: it observes nothing that exists.
    """
    return list(dict.fromkeys(each for kind in planned_kinds() for each in _optional(kind)))


def _optional(kind: PlannedKind[Any]) -> list[Resource]:
    return [each for each in kind.optional if each in kind.owns]


def planner(kind: PlannedKind[Any], settings: Mapping[str, Any]) -> Planner:
    """Return a kind's planner as a plain function from the decoded object to its children."""
    custom: type[CustomResource] = kind.type
    kinds_of = {each: _kind(each) for each in kind.owns}
    optional = _optional(kind)
    types = {each.resource: each.type for each in planned_kinds()}

    def child(write: Apply | CreateOnly) -> PlannedObject:
        resource = kind.owned_resource(write.object)
        object = fill_initial(write)
        filled = defaulted_as(types[resource], object) if resource in types else object
        if isinstance(write, Apply):
            return PlannedObject(kinds_of[resource], filled, write.origin)
        return PlannedObject(
            kinds_of[resource], filled, write.origin, once=True, owned=not write.adopt_labels
        )

    def plan(object: JsonObject, now: datetime, served: Served) -> PlannedChildren:
        try:
            read = custom.model_validate(object)
        except ValidationError as error:
            return PlannedChildren(refused=[_violation(*fault) for fault in faults(custom, error)])
        there = frozenset(each for each in optional if (each.group, each.plural) in served)
        plan = kind.plan(read, Observed(settings=settings, served=there), now)
        writes = (write for step in plan.steps for write in step.writes)
        return PlannedChildren(
            [child(write) for write in writes if isinstance(write, Apply | CreateOnly)]
        )

    scale = custom.definition.scale
    return Planner(
        _kind(kind.resource),
        tuple(kinds_of.values()),
        plan,
        replicas=None if scale is None else scale.replicas.removeprefix("."),
        optional=tuple(map(_kind, optional)),
    )


def _violation(path: str, text: str) -> Violation:
    """Return an error about an object, `FOUND: RULE` or `FOUND; RULE`, as a policy's violation."""
    for divides in (": ", "; "):
        value, is_divided, rule = text.rpartition(divides)
        if is_divided:
            rule, _, fix = rule.partition("; ")
            fix = fix or ("add it" if value == "missing" else "correct it")
            return Violation(path, value, rule, fix)
    value, is_choice, choices = text.partition(" is not one of ")
    rule = f"must be one of {choices}" if is_choice else "its type rejects it"
    return Violation(path, value, rule, "correct it")


def _kind(resource: Resource) -> Kind:
    """Return the known kind of a resource, or one built from what the planner declares."""
    return KINDS.get((resource.group, resource.kind)) or Kind(
        resource.group,
        resource.kind,
        resource.plural,
        versions=(resource.version,),
        namespaced=resource.namespaced,
    )
