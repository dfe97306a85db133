"""Which policies are asked about a request: found by a look-up, however many tenants have policies of their own."""

from collections.abc import Iterable
from dataclasses import replace

from webhook.engine.bound import BoundPolicy
from webhook.engine.kinds import Target, TargetKey
from webhook.engine.request import Attributes

EVERYWHERE = ""  # beside the namespaces that tenants' policies are in force in
NOTHING: list[BoundPolicy] = []


class Index:
    """Policies by what they judge, in their order: those of the cluster, then those of the request's namespace."""

    def __init__(self, policies: Iterable[BoundPolicy]) -> None:
        """Sort the policies; what no clause of one can select is left out."""
        self.targets: dict[TargetKey, Target] = {}
        self.all: dict[TargetKey, list[BoundPolicy]] = {}
        self._asked: dict[tuple[TargetKey, str], list[BoundPolicy]] = {}
        for bound in policies:
            for target in bound.policy.targets:
                match = bound.match.for_kind(target.kind.kind)
                if match is None or (bound.namespace is not None and not target.kind.namespaced):
                    continue  # a Namespace is the platform's, not its tenant's
                narrowed = bound if match is bound.match else replace(bound, match=match)
                for key in target.keys:
                    self.targets[key] = target
                    self.all.setdefault(key, []).append(narrowed)
                    self._asked.setdefault((key, bound.namespace or EVERYWHERE), []).append(narrowed)

    def asked(self, attributes: Attributes) -> list[BoundPolicy]:
        """Return the policies that may apply to a request."""
        target = attributes.target
        everywhere = self._asked.get((target, EVERYWHERE), NOTHING)
        own = self._asked.get((target, attributes.namespace), NOTHING) if attributes.namespace else NOTHING
        return everywhere + own if own else everywhere
