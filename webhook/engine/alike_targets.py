"""Policies of the same targets, by the names of the namespaces in which they can apply."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from webhook.engine.bound import BoundPolicy
from webhook.engine.kinds import Target, TargetKey
from webhook.engine.ranks import Rank, Ranked

WILDCARD = re.compile(r"[*?]")
Several = Mapping[str, tuple[Ranked, ...]]


class AlikeTargets:
    """Policies of the same targets, by name, by the text before a wildcard, or anywhere.

    Immutable; a change shares what stays.
    """

    def __init__(
        self,
        keys: tuple[tuple[TargetKey, Target], ...],
        anywhere: Mapping[Rank, BoundPolicy],
        by_name: Several,
        by_prefix: Several,
        needs: Counter[frozenset[str]],
    ) -> None:
        """Take the keys of the targets, and the policies; `needs` counts their look-ups."""
        self.keys = keys
        self.anywhere = anywhere
        self.needs = needs
        self._by_name = by_name
        self._by_prefix = by_prefix

    @classmethod
    def empty(cls, keys: tuple[tuple[TargetKey, Target], ...]) -> "AlikeTargets":
        """Return no policies of targets."""
        return cls(keys, {}, {}, {}, Counter())

    def __bool__(self) -> bool:
        return bool(self.needs)

    def with_changes(self, removed: Iterable[Ranked], added: Iterable[Ranked]) -> "AlikeTargets":
        """Return the policies without some, and with others."""
        gone, new = _Sorted(removed), _Sorted(added)
        anywhere = {**self.anywhere, **new.anywhere}
        for rank in gone.anywhere.keys() - new.anywhere.keys():
            del anywhere[rank]
        needs = self.needs.copy()
        needs.subtract(gone.needs)
        needs.update(new.needs)
        by_name = _replace(self._by_name, gone.by_name, new.by_name)
        by_prefix = _replace(self._by_prefix, gone.by_prefix, new.by_prefix)
        return AlikeTargets(self.keys, anywhere, by_name, by_prefix, +needs)

    def in_namespace(self, name: str) -> Iterator[Ranked]:
        """Yield the policies that apply by the name of a namespace, and perhaps some others."""
        yield from self._by_name.get(name, ())
        if self._by_prefix:
            found = (self._by_prefix.get(name[:end], ()) for end in range(len(name) + 1))
            yield from {ranked[0]: ranked for several in found for ranked in several}.values()


class _Sorted:
    """Policies by how they select namespaces."""

    def __init__(self, policies: Iterable[Ranked]) -> None:
        self.needs = Counter[frozenset[str]]()
        self.anywhere: dict[Rank, BoundPolicy] = {}
        self.by_name: dict[str, list[Ranked]] = {}
        self.by_prefix: dict[str, list[Ranked]] = {}
        for ranked in policies:
            rank, bound = ranked
            self.needs[bound.needs_anywhere] += 1
            if bound.is_anywhere:
                self.anywhere[rank] = bound
                continue
            names = bound.names_of_namespaces
            for name in names or ():
                self.by_name.setdefault(name, []).append(ranked)
            for prefix in _prefixes(bound) if names is None else ():
                self.by_prefix.setdefault(prefix, []).append(ranked)


def _prefixes(bound: BoundPolicy) -> set[str]:
    """Return the texts of which the name of a namespace needs one at its beginning."""
    patterns = (clause.namespaces for clause in bound.match.clauses)
    return {
        WILDCARD.split(pattern, maxsplit=1)[0]
        for several in patterns
        for pattern in (("*",) if several is None else several)
    }


def _replace(
    index: Several, removed: Mapping[str, list[Ranked]], added: Mapping[str, list[Ranked]]
) -> Several:
    """Return an index with other policies under some keys."""
    if not removed and not added:
        return index
    found = dict(index)
    for key in {**removed, **added}:
        gone = {rank for rank, _ in removed.get(key, ())}
        left = [each for each in found.pop(key, ()) if each[0] not in gone]
        if several := (*left, *added.get(key, ())):
            found[key] = several
    return found
