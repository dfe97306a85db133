"""Finds mutating policies that would set one field to different values."""

from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import Any

from kube.resource import FieldPath
from webhook.engine.bound import BoundPolicy, outcomes_of
from webhook.engine.index import Index
from webhook.engine.jsonpatch import Patcher, pointer
from webhook.engine.kinds import Kind
from webhook.engine.record import steps_of
from webhook.engine.request import Attributes, Request
from webhook.engine.violation import Patch

CONTAINER = {"name": "container", "image": "image"}


class ConflictingPoliciesError(ValueError):
    """Policies would set a field to different values: a line for each pair and field."""


def refuse_conflicts(mutating: Index) -> None:
    """Raise ConflictingPoliciesError if two policies in one place set a field differently.

    Each policy mutates the smallest object of the kind. Two policies are in the same place if one
    is in force everywhere, or if they share a clause of their `match`; a possible overlap, such as
    by `matchConditions`, is not an error.
    """
    conflicts = {
        line: None
        for key, policies in mutating.all.items()
        if not mutating.targets[key].subresource
        for line in _conflicts(mutating.targets[key].kind, policies)
    }
    if conflicts:
        raise ConflictingPoliciesError("\n".join(conflicts))


def _conflicts(kind: Kind, policies: Iterable[BoundPolicy]) -> Iterator[str]:
    pairs = [(policy, _sets(policy, kind)) for policy in policies]
    for (one, sets), (other, others) in combinations(pairs, 2):
        is_conditional = one.condition is not None or other.condition is not None
        if is_conditional or not one.match.shares_place_with(other.match):
            continue
        for path in sorted(sets.keys() & others.keys(), key=str):
            if sets[path] != others[path]:
                both = f"{one.title} and {other.title} set {kind.kind} {pointer(path)}"
                yield f"{both} to different values: {sets[path]!r} and {others[path]!r}"


def _sets(policy: BoundPolicy, kind: Kind) -> dict[FieldPath, Any]:
    """Return the fields that a policy sets in the smallest object, until it fails, if it does."""
    judged = kind.group, kind.versions[-1], kind.kind
    attributes = Attributes("", "CREATE", *judged, kind.group, kind.plural, namespace="namespace")
    request = Request(attributes, {"metadata": {}}, kind=kind)
    if kind.pod_spec is not None:
        Patcher(request).apply([Patch((*steps_of(kind.pod_spec), "containers"), [CONTAINER])])
    found: dict[FieldPath, Any] = {}

    def ask(bound: BoundPolicy) -> None:
        assert bound.policy.mutate is not None
        for patch in bound.policy.mutate(request, bound.params):
            found[patch.steps] = patch.value

    outcomes_of([policy], ask)
    return found
