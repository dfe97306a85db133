"""Which objects an audit judges: those of kinds that policies judge, unless their owner answers for them. Pure."""

from collections.abc import Collection, Sequence
from typing import Any

from webhook.engine import BoundPolicy, Engine
from webhook.engine.kinds import Kind

Object = dict[str, Any]


class Scope:
    """What is judged by one engine, or by several of which each judges the same objects."""

    def __init__(self, engines: Sequence[Engine], excluded: Collection[str] = ()) -> None:
        """Take the engines, and the namespaces that the webhook never sees."""
        self._excluded = frozenset(excluded)
        self._planned = frozenset(planner.kind for engine in engines for planner in engine.planners)
        judges: dict[Kind, set[tuple[int, str]]] = {}
        for index, engine in enumerate(engines):
            for kind in engine.judged_kinds:
                titles = (
                    each.title for each in engine.policies if _judges(each, kind) and not each.policy.judges_owned
                )
                judges.setdefault(kind, set()).update((index, title) for title in titles)
        self._for_owned = frozenset(kind for engine in engines for kind in engine.for_owned.judged_kinds)
        self._judges = {kind: judges[kind] for kind in sorted(judges, key=lambda each: (each.group, each.kind))}
        self._by_name = {(kind.group, kind.kind): kind for kind in self._judges}

    @property
    def kinds(self) -> Collection[Kind]:
        """The kinds whose objects are judged, by group and name."""
        return self._judges.keys()

    def includes(self, kind: Kind, object: Object) -> bool:
        """Whether an object is judged: not where it is being deleted, or its owner is judged by the same policies.

        An object that `is_owned` is judged where some policy has rules about its kind.
        """
        metadata = object["metadata"]
        namespace = metadata["name"] if kind.plural == "namespaces" else metadata.get("namespace")
        if namespace in self._excluded or "deletionTimestamp" in metadata:
            return False
        return kind in self._for_owned or not self.is_owned(kind, object)

    def is_owned(self, kind: Kind, object: Object) -> bool:
        """Whether the owner of an object answers for it, so that only `Engine.for_owned` judges the object itself."""
        return any(self._answers_for(kind, each) for each in object["metadata"].get("ownerReferences") or ())

    def _answers_for(self, kind: Kind, owner: Object) -> bool:
        group = owner["apiVersion"].rpartition("/")[0]
        above = self._by_name.get((group, owner["kind"])) if owner.get("controller") else None
        if above is None:
            return False
        return self._judges[kind] <= self._judges[above] or above in self._planned


def _judges(policy: BoundPolicy, kind: Kind) -> bool:
    if policy.policy.validate is None or not policy.match.can_select(kind):
        return False
    return any(target.kind == kind for target in policy.policy.targets)
