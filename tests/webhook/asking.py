"""Requests, and policies in force, as tests of the engine need them."""

from dataclasses import replace
from typing import Any

from webhook.engine import Attributes, BoundPolicy, Policy, Request
from webhook.engine.kinds import KINDS
from webhook.engine.match import Match


def about(kind: str = "Pod", subresource: str = "", **changes: Any) -> Attributes:
    """Say what is asked: the creation of a Pod in `shop`, but for what a test names."""
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
    """Ask about an object."""
    return Request(about(kind, subresource, **changes), object, old_object, looked_up or {})


def in_force(policy: Policy, **changes: Any) -> BoundPolicy:
    """Put a policy in force everywhere, with Deny and Fail, but for what a test names."""
    bound = BoundPolicy(policy.name, policy, policy.params(), Match(()), frozenset({"Deny"}), fails_closed=True)
    return replace(bound, **changes)
