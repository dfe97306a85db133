"""The order of all policies, compared with that of an engine before: most policies stay."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import compress, count
from operator import is_not
from typing import NamedTuple

from webhook.engine.bound import BoundPolicy
from webhook.engine.kinds import Target

Rank = tuple[bool, float]  # whether it is a tenant's, and its place among all policies
Ranked = tuple[Rank, BoundPolicy]
MIN_STEP = 1e-9  # between two places


class RankChanges(NamedTuple):
    """The policies that an engine has and another has not."""

    removed: list[Ranked]
    added: list[Ranked]


class Ranking:
    """Policies in order, those of the cluster before those of tenants; immutable."""

    def __init__(self, policies: tuple[BoundPolicy, ...], before: "Ranking | None" = None) -> None:
        """Rank the policies; those of a ranking `before` keep their ranks where that is possible.

        What is done for each policy is done for those that changed only.
        """
        self.policies = policies
        self.changes: RankChanges | None = None
        """The changes from `before`; None if all policies have new ranks."""
        changes = None if before is None else self._rank_changed(before)
        if before is None or changes is None:
            added = [_rank(bound, float(place)) for place, bound in enumerate(policies, start=1)]
            self._ranks = {id(ranked[1]): ranked for ranked in added}
            self._targets = Counter(map(_targets, policies))
            self._examples = {id(each.targets): each.targets for each in policies}
            return
        self.changes = changes
        self._targets = before._targets.copy()
        self._targets.subtract(_targets(bound) for _, bound in changes.removed)
        self._targets.update(_targets(bound) for _, bound in changes.added)
        new = {id(bound.targets): bound.targets for _, bound in changes.added}
        self._examples = before._examples | new

    @property
    def ranked(self) -> Iterable[Ranked]:
        """All policies, in any order."""
        return self._ranks.values()

    @property
    def targets(self) -> list[tuple[Target, ...]]:
        """The distinct targets of policies: those of the cluster first, then in a stable order."""
        found = [key for key, number in self._targets.items() if number > 0]
        ordered = sorted(found, key=lambda key: (key[0], repr(self._examples[key[1]])))
        return [self._examples[number] for _, number in ordered]

    def _rank_changed(self, before: "Ranking") -> RankChanges | None:
        """Rank the policies between those that are the same at both ends; None without room."""
        old, new = before.policies, self.policies
        start = _same(old, new)
        end = min(_same(old[::-1], new[::-1]), len(old) - start, len(new) - start)
        gone, come = old[start : len(old) - end], new[start : len(new) - end]
        kept = set(map(id, gone)) & set(map(id, come))
        place = before._place(old[start - 1]) if start else 0.0
        last = before._place(old[len(old) - end]) if end else place + len(come) + len(gone) + 1
        ranks, added, waiting = before._ranks.copy(), list[Ranked](), list[BoundPolicy]()
        removed = [ranks.pop(id(bound)) for bound in gone if id(bound) not in kept]
        for bound in (*come, None):
            if bound is not None and id(bound) not in kept:
                waiting.append(bound)
                continue
            until = last if bound is None else before._place(bound)
            step = (until - place) / (len(waiting) + 1)
            if step < MIN_STEP:
                return None
            added += (_rank(each, place + step * n) for n, each in enumerate(waiting, start=1))
            place, waiting = until, []
        self._ranks = ranks | {id(ranked[1]): ranked for ranked in added}
        return RankChanges(removed, added)

    def _place(self, bound: BoundPolicy) -> float:
        return self._ranks[id(bound)][0][1]


def _same(old: Sequence[BoundPolicy], new: Sequence[BoundPolicy]) -> int:
    """Return how many policies at the beginning are the same."""
    return next(compress(count(), map(is_not, old, new)), min(len(old), len(new)))


def _rank(bound: BoundPolicy, place: float) -> Ranked:
    return (bound.namespace is not None, place), bound


def _targets(bound: BoundPolicy) -> tuple[bool, int]:
    return bound.namespace is not None, id(bound.targets)
