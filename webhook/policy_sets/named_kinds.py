"""Checks the custom kinds that a policy names against the kinds that an API server serves."""

from collections.abc import Iterable, Iterator

from webhook.engine.bound import BoundPolicy
from webhook.engine.kinds import ANY_VERSION, Kind


def cluster_scoped(kind: Kind) -> str:
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
        if found is None or found.namespaced or bound.namespace is None:
            continue
        for index, clause in enumerate(bound.match.written):
            if kind.kind in (clause.kinds or ()):
                yield f"spec.match.any[{index}].kinds", cluster_scoped(kind)
