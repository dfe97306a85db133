"""Checks the custom kinds that a policy names against the kinds that an API server serves."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kube.resource import Resource
from webhook.engine.bound import BoundPolicy
from webhook.engine.kinds import ANY_VERSION, Kind
from webhook.policy_sets.kind_names import kinds_named, known_kinds


def cluster_scoped(kind: Kind | Resource) -> str:
    """Return why a tenant's policy cannot judge a kind."""
    rule = "an AdmissionPolicy judges objects in its namespace"
    return f"{kind.kind} is cluster-scoped; {rule}. Use a ClusterAdmissionPolicy"


def kind_faults(bound: BoundPolicy, served: Iterable[Kind]) -> Iterator[tuple[str, str]]:
    """Yield a fault for each kind of a policy of which it can judge no object.

    `served` are kinds with their scope, such as those of CustomResourceDefinitions.
    """
    known = {(kind.group, kind.kind): kind for kind in served if ANY_VERSION not in kind.versions}
    for kind in dict.fromkeys(target.kind for target in bound.policy.targets):
        found = known.get((kind.group, kind.kind))
        if found is None:
            continue
        if found.plural != kind.plural:
            in_full = f"{found.plural}.{found.resource.api_version}/{found.kind}"
            fault = f"no API serves {kind.plural}.{kind.group}; write {in_full}"
        elif bound.namespace is not None and not found.namespaced:
            fault = cluster_scoped(kind)
        else:
            continue
        for index, clause in enumerate(bound.match.written):
            if kind.kind in (clause.kinds or ()):
                yield f"spec.match.any[{index}].kinds", fault


def named_kinds(spec: Mapping[str, Any]) -> dict[str, tuple[Kind, ...]]:
    """Return the entries of all `kinds` in the valid spec of a policy, with what each can mean.

    Empty if a clause of its `match` names no kinds: then it judges others too.
    """
    clauses = (spec.get("match") or {}).get("any") or ()
    if not all(clause.get("kinds") for clause in clauses):
        return {}
    return {word: kinds_named(word) for clause in clauses for word in clause["kinds"]}


def is_custom(named: Iterable[Kind]) -> bool:
    """Return whether only a cluster knows the kinds that an entry can mean."""
    known = known_kinds()
    return all((kind.group, kind.kind) not in known for kind in named)


def why_unserved(
    word: str, named: Iterable[Kind], served: Iterable[Resource], *, in_a_namespace: bool
) -> str | None:
    """Return why a policy judges no object of an entry of `kinds`, given all served resources."""
    named = tuple(named)
    kinds = {(kind.group, kind.kind) for kind in named}
    wanted = {(kind.resource.api_version, kind.plural) for kind in named}
    found = [each for each in served if (each.group, each.kind) in kinds]
    exact = [each for each in found if (each.api_version, each.plural) in wanted]
    if not found:
        return f"no API serves {word}; the policy takes effect when one does"
    if not exact:
        in_full = f"{found[0].plural}.{found[0].api_version}/{found[0].kind}"
        return f"no API serves {word}; the kind is served as {in_full}"
    if in_a_namespace and not exact[0].namespaced:
        return cluster_scoped(exact[0])
    return None
