"""Finds the policies for a namespace's labels, however many select others."""

from collections.abc import Iterable, Sequence

from webhook.engine.bound import BoundPolicy
from webhook.engine.fields import WrongTypeError
from webhook.engine.ranks import Rank, Ranked
from webhook.engine.request import NotLookedUpError, Request

MIN_INDEXED = 16  # fewer policies that select by labels are tried one after the other

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
        others = sorted(ranked, key=_rank)
        labels = [each for each in others if each[1].namespace_labels]
        if len(labels) < MIN_INDEXED:
            return cls(others, {}, 0)
        by_label: dict[LabelAndValue, list[Ranked]] = {}
        for each in labels:
            for key in _keys(each[1]):
                by_label.setdefault(key, []).append(each)
        indexed = {rank for rank, _ in labels}
        return cls([each for each in others if each[0] not in indexed], by_label, len(labels))

    def __len__(self) -> int:
        return len(self._others) + self._indexed

    def joined(self, ranked: Iterable[Ranked]) -> "LabelIndex":
        """Return these policies and some more, which are not found by a label."""
        more = [*self._others, *ranked]
        if len(more) == len(self._others):
            return self
        return LabelIndex(sorted(more, key=_rank), self._by_label, self._indexed)

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
        for each in added:
            for key in _keys(each[1]):
                by_label[key] = [*by_label.get(key, ()), each]
            indexed += bool(each[1].namespace_labels)
        others += [each for each in added if not each[1].namespace_labels]
        return LabelIndex(sorted(others, key=_rank), by_label, indexed)

    def all(self) -> Sequence[BoundPolicy]:
        """Return all policies, in order."""
        if not self._indexed:
            return self._policies
        indexed = (each for several in self._by_label.values() for each in several)
        return _in_order([*self._others, *indexed])

    def selected(self, request: Request) -> Sequence[BoundPolicy]:
        """Return the policies that may select a request by the labels of its namespace.

        All, if these are unknown or malformed: each policy then has that error.
        """
        if not self._indexed:
            return self._policies
        try:
            labels = request.namespace_labels()
        except (NotLookedUpError, WrongTypeError):
            return self.all()
        found = list(self._others)
        for label, value in labels.items():
            found += self._by_label.get((label, value), ())
            found += self._by_label.get((label, None), ())
        return self._policies if len(found) == len(self._others) else _in_order(found)


def _rank(ranked: Ranked) -> Rank:
    return ranked[0]


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
