"""Requests and policies in force for tests of the engine."""

import copy
from dataclasses import replace
from typing import Any

from webhook.engine import Attributes, BoundPolicy, Policy, Request
from webhook.engine.kinds import KINDS
from webhook.engine.match import Match
from webhook.policy_sets.bound_objects import bind
from webhook.policy_sets.catalogue import catalogue


def about(kind: str = "Pod", subresource: str = "", **changes: Any) -> Attributes:
    """Return a request: the creation of a Pod in `shop`, changed by the test's arguments."""
    known = next(each for each in KINDS.values() if each.kind == kind)
    scales = subresource == "scale"
    asked = Attributes(
        uid="u-1",
        operation="UPDATE" if subresource else "CREATE",
        group="autoscaling" if scales else known.group,
        version="v1",
        kind="Scale" if scales else known.kind,
        resource_group=known.group,
        resource=known.plural,
        subresource=subresource,
        name="it",
        namespace="shop",
        username="jane",
    )
    return asked._replace(**changes)


def ask(
    object: dict[str, Any] | None,
    kind: str = "Pod",
    subresource: str = "",
    *,
    old_object: dict[str, Any] | None = None,
    looked_up: dict[str, Any] | None = None,
    **changes: Any,
) -> Request:
    """Return a request about a copy of an object, which may be patched."""
    return Request(
        about(kind, subresource, **changes), copy.deepcopy(object), old_object, looked_up or {}
    )


def denying(name: str, *clauses: dict[str, Any]) -> BoundPolicy:
    """Return a policy object with a rule in CEL that denies all that a clause matches."""
    document = {
        "apiVersion": "gatewright.io/v1alpha1",
        "kind": "ClusterAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {"match": {"any": [*clauses]}, "validations": [{"expression": "false"}]},
    }
    bound = bind(document, catalogue())
    assert isinstance(bound, BoundPolicy)
    return bound


def in_force(policy: Policy, **changes: Any) -> BoundPolicy:
    """Return a policy in force everywhere, with Deny and Fail, changed by the test's arguments."""
    bound = BoundPolicy(
        policy.name, policy, policy.params(), Match(()), frozenset({"Deny"}), fails_closed=True
    )
    return replace(bound, **changes)
