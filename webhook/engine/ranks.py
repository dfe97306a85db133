"""Policies in order, and found by a label of a namespace, however many select others.

The order is compared with that of an engine before: most policies stay.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import compress, count
from operator import is_not, itemgetter
from typing import NamedTuple

from webhook.engine.bound import BoundPolicy
from webhook.engine.fields import WrongTypeError
from webhook.engine.kinds import Target
from webhook.engine.request import NotLookedUpError, Request

Rank = tuple[bool, float]  # whether it is a tenant's, and its place among all policies
Ranked = tuple[Rank, BoundPolicy]
MIN_STEP = 1e-9  # between two places
RANK = itemgetter(0)
MIN_INDEXED = 16  # fewer policies that select by labels are tried one after the other


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
            added = [_rank_at(bound, float(place)) for place, bound in enumerate(policies, start=1)]
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
        keys = [key for key, number in self._targets.items() if number > 0]
        ordered = sorted(keys, key=lambda key: (key[0], repr(self._examples[key[1]])))
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
            added += (_rank_at(each, place + step * n) for n, each in enumerate(waiting, start=1))
            place, waiting = until, []
        self._ranks = ranks | {id(ranked[1]): ranked for ranked in added}
        return RankChanges(removed, added)

    def _place(self, bound: BoundPolicy) -> float:
        return self._ranks[id(bound)][0][1]


def _same(old: Sequence[BoundPolicy], new: Sequence[BoundPolicy]) -> int:
    """Return how many policies at the beginning are the same."""
    return next(compress(count(), map(is_not, old, new)), min(len(old), len(new)))


def _rank_at(bound: BoundPolicy, place: float) -> Ranked:
    return (bound.namespace is not None, place), bound


def _targets(bound: BoundPolicy) -> tuple[bool, int]:
    return bound.namespace is not None, id(bound.targets)


LabelAndValue = tuple[str, str | None]  # a label and its value; None: any value


class LabelIndex:
    """Policies in order; those that select namespaces by a label are found by it."""

    def __init__(
        self, others: Sequence[Ranked], by_label: dict[LabelAndValue, list[Ranked]], indexed: int
    ) -> None:
        """Take the policies that are not found by a label, those that are, and their number."""
        self._others = others
        self._by_label = by_label
        self._indexed = indexed
        self._policies = tuple(bound for _, bound in others)

    @classmethod
    def of(cls, ranked: Iterable[Ranked]) -> "LabelIndex":
        """Index policies, if many select by labels."""
        others = sorted(ranked, key=RANK)
        labels = [each for each in others if each[1].namespace_labels]
        if len(labels) < MIN_INDEXED:
            return cls(others, {}, 0)
        by_label: dict[LabelAndValue, list[Ranked]] = {}
        for label in labels:
            for key in _keys(label[1]):
                by_label.setdefault(key, []).append(label)
        indexed = {rank for rank, _ in labels}
        return cls([each for each in others if each[0] not in indexed], by_label, len(labels))

    def __len__(self) -> int:
        return len(self._others) + self._indexed

    def join(self, ranked: Iterable[Ranked]) -> "LabelIndex":
        """Return these policies and some more, which are not found by a label."""
        more = [*self._others, *ranked]
        if len(more) == len(self._others):
            return self
        return LabelIndex(sorted(more, key=RANK), self._by_label, self._indexed)

    def with_changes(self, removed: Iterable[Ranked], added: Sequence[Ranked]) -> "LabelIndex":
        """Return the index of these policies without some, and with others."""
        gone = dict(removed)
        others = [each for each in self._others if each[0] not in gone]
        if not self._indexed:
            return LabelIndex.of([*others, *added])
        by_label = dict(self._by_label)
        indexed = self._indexed
        for bound in gone.values():
            for key in _keys(bound):
                by_label[key] = [each for each in by_label[key] if each[0] not in gone]
                if not by_label[key]:
                    del by_label[key]
            indexed -= bool(bound.namespace_labels)
        for entry in added:
            for key in _keys(entry[1]):
                by_label[key] = [*by_label.get(key, ()), entry]
            indexed += bool(entry[1].namespace_labels)
        others += [each for each in added if not each[1].namespace_labels]
        return LabelIndex(sorted(others, key=RANK), by_label, indexed)

    def all(self) -> Sequence[BoundPolicy]:
        """Return all policies, in order."""
        if not self._indexed:
            return self._policies
        indexed = (each for several in self._by_label.values() for each in several)
        return _in_order([*self._others, *indexed])

    def select(self, request: Request) -> Sequence[BoundPolicy]:
        """Return the policies that may select a request by the labels of its namespace.

        All, if these are unknown or malformed: each policy then has that error.
        """
        if not self._indexed:
            return self._policies
        try:
            labels = request.namespace_labels()
        except (NotLookedUpError, WrongTypeError):
            return self.all()
        policies = list(self._others)
        for label, value in labels.items():
            policies += self._by_label.get((label, value), ())
            policies += self._by_label.get((label, None), ())
        return self._policies if len(policies) == len(self._others) else _in_order(policies)


def _keys(bound: BoundPolicy) -> set[LabelAndValue]:
    """Return the labels by which a policy is found; none if its match names none."""
    return {
        (label, value)
        for label, values in bound.namespace_labels
        for value in (values if values is not None else (None,))
    }


def _in_order(ranked: Iterable[Ranked]) -> Sequence[BoundPolicy]:
    """Return each policy once, in order."""
    return [bound for _, bound in sorted(dict(ranked).items())]
