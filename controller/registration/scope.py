"""Sets of namespaces, as conditions on names and labels, with their union and difference.

A `NamespaceScope` is the set of namespaces for which all of its conditions hold. Policies need the
union of several scopes, but a webhook can express only one. So a union becomes a few disjoint
scopes, one for each webhook, and no request is sent twice.
"""

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from config.api.match import LabelSelector, LabelSelectorRequirement, MatchClause
from webhook.engine.globs import Globs

NAME_LABEL = "kubernetes.io/metadata.name"
Operator = Literal["In", "NotIn", "Exists", "DoesNotExist"]
NEGATED: dict[Operator, Operator] = {
    "In": "NotIn",
    "NotIn": "In",
    "Exists": "DoesNotExist",
    "DoesNotExist": "Exists",
}


class Requirement(NamedTuple):
    """A condition on a label of the namespace, as label selectors have it (meta/v1)."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()


class NamePatterns(NamedTuple):
    """A condition on the namespace's name: it matches one of these patterns, or none of them."""

    patterns: tuple[str, ...]
    match: bool = True

    @property
    def is_exact(self) -> bool:
        """Whether no pattern has a wildcard."""
        return not any(map(is_glob, self.patterns))


NamespaceCondition = Requirement | NamePatterns
NamespaceScope = frozenset[NamespaceCondition]
EVERYWHERE: NamespaceScope = frozenset()


def is_glob(pattern: str) -> bool:
    """Return whether a pattern has a wildcard."""
    return "*" in pattern or "?" in pattern


def place_of(clause: MatchClause) -> NamespaceScope | None:
    """Return the namespaces that a clause of `match` selects; None if it selects none."""
    conditions: set[NamespaceCondition] = set()
    if clause.namespaces is not None:
        conditions.add(NamePatterns(_sorted(clause.namespaces)))
    if clause.namespace_selector is not None:
        conditions.update(_requirements(clause.namespace_selector))
    return simplified(frozenset(conditions))


def _requirements(selector: LabelSelector) -> Iterator[NamespaceCondition]:
    """Yield the conditions of a label selector."""
    labels = selector.match_labels.items()
    exact = (
        LabelSelectorRequirement(key=key, operator="In", values=[value]) for key, value in labels
    )
    for each in (*exact, *selector.match_expressions):
        values = _sorted(each.values)
        if each.key == NAME_LABEL and values:
            yield NamePatterns(values, match=each.operator == "In")
        else:
            yield Requirement(each.key, each.operator, values)


def negated(condition: NamespaceCondition) -> NamespaceCondition:
    """Return the condition that holds exactly where this one does not."""
    if isinstance(condition, NamePatterns):
        return condition._replace(match=not condition.match)
    return condition._replace(operator=NEGATED[condition.operator])


def simplified(place: NamespaceScope) -> NamespaceScope | None:
    """Return the same scope with as few conditions as possible.

    None if no namespace satisfies it.
    """
    names = _names([each for each in place if isinstance(each, NamePatterns)])
    if names is None:
        return None
    found: set[NamespaceCondition] = set(names)
    for key in {each.key for each in place if isinstance(each, Requirement)}:
        labels = _labels(
            key, [each for each in place if isinstance(each, Requirement) and each.key == key]
        )
        if labels is None:
            return None
        found |= labels
    return frozenset(found)


def _names(conditions: list[NamePatterns]) -> set[NamespaceCondition] | None:
    included = [each for each in conditions if each.match]
    excluded = {pattern for each in conditions if not each.match for pattern in each.patterns}
    exact = next((each for each in included if each.is_exact), None)
    if exact is not None:
        globs, refused = [Globs(each.patterns) for each in included], Globs(excluded)
        left = [
            name
            for name in exact.patterns
            if all(each.match(name) for each in globs) and not refused.match(name)
        ]
        return {NamePatterns(tuple(left))} if left else None
    if any(excluded.issuperset(each.patterns) for each in included):
        return None
    return {*included, NamePatterns(_sorted(excluded), match=False)} if excluded else set(included)


def _labels(key: str, conditions: list[Requirement]) -> set[NamespaceCondition] | None:
    values = {each: [set(c.values) for c in conditions if c.operator == each] for each in NEGATED}
    excluded = set[str]().union(*values["NotIn"])
    if values["DoesNotExist"]:
        return None if values["In"] or values["Exists"] else {Requirement(key, "DoesNotExist")}
    if values["In"]:
        left = set.intersection(*values["In"]) - excluded
        return {Requirement(key, "In", _sorted(left))} if left else None
    found: set[NamespaceCondition] = (
        {Requirement(key, "NotIn", _sorted(excluded))} if excluded else set()
    )
    return found | ({Requirement(key, "Exists")} if values["Exists"] else set())


def disjoint(places: Iterable[NamespaceScope], limit: int) -> tuple[NamespaceScope, ...] | None:
    """Return disjoint scopes with the same union, in a deterministic order.

    None if more than `limit` are needed: their number can double with each scope.
    """
    found: list[NamespaceScope] = []
    for place in _merged(frozenset(places)):
        rest = [place]
        for other in found:
            rest = [left for each in rest for left in _without(each, other)]
            if len(rest) > limit:
                return None
        found += rest
        if len(found) > limit:
            return None
    return tuple(found)


def _merged(places: frozenset[NamespaceScope]) -> list[NamespaceScope]:
    """Return the scopes, with alternatives for a name, or for one label, merged into one.

    Scopes that another one includes are left out.
    """
    alternatives: dict[str, set[str]] = {}
    merged: set[NamespaceScope] = set()
    for place in places:
        match tuple(place):
            case (NamePatterns(patterns, True),):
                alternatives.setdefault(NAME_LABEL, set()).update(patterns)
            case (Requirement(key, "In", values),):
                alternatives.setdefault(key, set()).update(values)
            case _:
                merged.add(place)
    for key, found in alternatives.items():
        condition = (
            NamePatterns(_sorted(found))
            if key == NAME_LABEL
            else Requirement(key, "In", _sorted(found))
        )
        merged.add(frozenset({condition}))
    return sorted((each for each in merged if not any(other < each for other in merged)), key=order)


def _without(place: NamespaceScope, other: NamespaceScope) -> Iterator[NamespaceScope]:
    """Yield disjoint scopes whose union is `place` without `other`."""
    if simplified(place | other) is None:
        yield place
        return
    for condition in sorted(other - place, key=repr):
        if (left := simplified(place | {negated(condition)})) is not None:
            yield left
        place |= {condition}


def order(place: NamespaceScope) -> tuple[object, ...]:
    """Return the sort key of scopes: names first, then labels, then others."""
    has_labels = any(isinstance(each, Requirement) for each in place)
    is_open = not has_labels and not any(
        isinstance(each, NamePatterns) and each.match for each in place
    )
    return is_open, has_labels, len(place), sorted(map(repr, place))


def _sorted(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(texts)))
