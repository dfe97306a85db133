"""Sets of namespaces, as conditions on names and labels, with their union and difference.

A `NamespaceScope` is the set of namespaces for which all of its conditions hold. Policies need the
union of several scopes, but a webhook can express only one. So a union becomes a few disjoint
scopes, one for each webhook, and no request is sent twice.
"""

from bisect import bisect
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import Literal, NamedTuple

from config.api.match import LabelSelector, LabelSelectorRequirement, MatchClause
from webhook.engine.globs import Globs

NAME_LABEL = "kubernetes.io/metadata.name"
Operator = Literal["In", "NotIn", "Exists", "DoesNotExist"]
# Characters of the globs in one matchCondition: the API server's limit of an expression is 100,000.
MAX_GLOBS_TEXT = 50_000
MAX_REPEATED_TEXT = 4_000  # characters of names in the conditions of several webhooks
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
Slot = tuple[str, Operator]  # a label, and the operator of a condition on it
EVERYWHERE: NamespaceScope = frozenset()


def is_glob(pattern: str) -> bool:
    """Return whether a pattern has a wildcard."""
    return "*" in pattern or "?" in pattern


def place_of(clause: MatchClause) -> NamespaceScope | None:
    """Return the namespaces that a clause of `match` selects; None if it selects none."""
    conditions: set[NamespaceCondition] = set()
    if clause.namespaces is not None:
        conditions.add(NamePatterns(_sort(clause.namespaces)))
    if clause.namespace_selector is not None:
        conditions.update(_requirements(clause.namespace_selector))
    return simplify(frozenset(conditions))


def _requirements(selector: LabelSelector) -> Iterator[NamespaceCondition]:
    """Yield the conditions of a label selector."""
    labels = selector.match_labels.items()
    exact = (
        LabelSelectorRequirement(key=key, operator="In", values=[value]) for key, value in labels
    )
    for requirement in (*exact, *selector.match_expressions):
        values = _sort(requirement.values)
        if requirement.key == NAME_LABEL and values:
            yield NamePatterns(values, match=requirement.operator == "In")
        else:
            yield Requirement(requirement.key, requirement.operator, values)


def negate(condition: NamespaceCondition) -> NamespaceCondition:
    """Return the condition that holds exactly where this one does not."""
    if isinstance(condition, NamePatterns):
        return condition._replace(match=not condition.match)
    return condition._replace(operator=NEGATED[condition.operator])


def simplify(place: NamespaceScope) -> NamespaceScope | None:
    """Return the same scope with as few conditions as possible.

    None if no namespace satisfies it.
    """
    patterns: list[NamePatterns] = []
    labels: dict[str, list[Requirement]] = {}
    for condition in place:
        if isinstance(condition, NamePatterns):
            patterns.append(condition)
        else:
            labels.setdefault(condition.key, []).append(condition)
    names = _names(patterns)
    if names is None:
        return None
    conditions: set[NamespaceCondition] = set(names)
    for key, requirements in labels.items():
        left = set[NamespaceCondition](requirements)
        if len(requirements) > 1:
            several = _labels(key, requirements)
            if several is None:
                return None
            left = several
        conditions |= left
    return frozenset(conditions)


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
    return {*included, NamePatterns(_sort(excluded), match=False)} if excluded else set(included)


def _labels(key: str, conditions: list[Requirement]) -> set[NamespaceCondition] | None:
    values = {each: [set(c.values) for c in conditions if c.operator == each] for each in NEGATED}
    excluded = set[str]().union(*values["NotIn"])
    if values["DoesNotExist"]:
        return None if values["In"] or values["Exists"] else {Requirement(key, "DoesNotExist")}
    if values["In"]:
        left = set.intersection(*values["In"]) - excluded
        return {Requirement(key, "In", _sort(left))} if left else None
    requirements: set[NamespaceCondition] = (
        {Requirement(key, "NotIn", _sort(excluded))} if excluded else set()
    )
    return requirements | ({Requirement(key, "Exists")} if values["Exists"] else set())


class Fit(NamedTuple):
    """Disjoint scopes, one for each webhook, and whether their union is wider than was asked."""

    scopes: tuple[NamespaceScope, ...]
    widened: bool = False


def fit(places: Iterable[NamespaceScope], limit: int) -> Fit:
    """Return at most `limit` disjoint scopes that include all places, in a deterministic order.

    If they are too many, each keeps one condition: the one on the label that most of them have a
    condition on. If that is still too many, they are all namespaces: the selector of a webhook
    cannot say "this label, or that one".
    """
    merged = merge(places)
    for widened in (False, True):
        scopes = merge(_relax(merged)) if widened else merged
        for ordered in _orders(scopes):
            if (exact := disjoint(ordered, limit)) is not None:
                return Fit(exact, widened)
    return Fit((EVERYWHERE,), widened=True)


def _orders(places: list[NamespaceScope]) -> Iterator[list[NamespaceScope]]:
    """Yield the orders in which scopes are made disjoint: each is left out of all later ones.

    A long list of names is the last one, so that it is not repeated.
    """
    names = {place: sum(map(len, _names_in(place))) for place in places}
    if max(names.values(), default=0) > MAX_REPEATED_TEXT:
        yield sorted(places, key=lambda place: names[place] > MAX_REPEATED_TEXT)
    yield places


def _names_in(place: NamespaceScope) -> Iterator[str]:
    for condition in place:
        if isinstance(condition, NamePatterns):
            yield from condition.patterns


def disjoint(places: Iterable[NamespaceScope], limit: int) -> tuple[NamespaceScope, ...] | None:
    """Return disjoint scopes with the same union.

    None if more than `limit` are needed: their number can double with each scope.
    """
    parts: list[NamespaceScope] = []
    for place in places:
        rest = subtract([place], parts, limit)
        if rest is None or len(parts) + len(rest) > limit:
            return None
        parts += rest
    return tuple(parts)


def subtract(
    places: Iterable[NamespaceScope], others: Iterable[NamespaceScope], limit: int
) -> list[NamespaceScope] | None:
    """Return disjoint scopes with the union of `places` without `others`; None beyond `limit`."""
    rest = list(places)
    for other in others:
        rest = [left for each in rest for left in _without(each, other)]
        if len(rest) > limit:
            return None
    return rest


def merge(places: Iterable[NamespaceScope]) -> list[NamespaceScope]:
    """Return fewer scopes with the same union, names first, in time linear in their number.

    Scopes that differ only in the values of one label, or in names, become one. Scopes that a
    single condition includes are left out.
    """
    single: dict[Slot, set[str]] = {}
    separate: list[NamespaceScope] = []
    for place in set(places):
        if not place:
            return [EVERYWHERE]
        (condition, *others) = place
        if others or not _has_alternatives(condition):
            separate.append(place)
        else:
            single.setdefault(slot_of(condition), set()).update(_values(condition))
    left = [
        place
        for place in separate
        if not any(
            slot_of(requirement) in single
            and single[slot_of(requirement)].issuperset(_values(requirement))
            for requirement in place
        )
    ]
    merged = [frozenset({_condition(slot, values)}) for slot, values in single.items()]
    return sorted([*merged, *_merge_in_one_condition(left)], key=order)


def _merge_in_one_condition(places: list[NamespaceScope]) -> list[NamespaceScope]:
    """Merge scopes of several conditions that differ only in the values of one of them."""
    alike: dict[tuple[NamespaceScope, Slot], list[NamespaceScope]] = {}
    for place in sorted(places, key=order):
        for condition in sorted(filter(_has_alternatives, place), key=repr):
            alike.setdefault((place - {condition}, slot_of(condition)), []).append(place)
    left = dict.fromkeys(places)
    for (rest, slot), candidates in sorted(alike.items(), key=lambda item: -len(item[1])):
        several = [place for place in candidates if place in left]
        if len(several) < 2:
            continue
        different = [condition for place in several for condition in place - rest]
        for place in several:
            del left[place]
        values = {value for condition in different for value in _values(condition)}
        left[rest | {_condition(slot, values)}] = None
    return list(left)


def _relax(places: Iterable[NamespaceScope]) -> Iterator[NamespaceScope]:
    """Yield each scope with one condition only, on the label that most scopes have one on."""
    places = list(places)
    common = Counter(slot for place in places for slot in set(map(slot_of, place)))
    for place in places:
        best = min(place, key=lambda each: (-common[slot_of(each)], repr(each)))
        yield frozenset({best})


def slot_of(condition: NamespaceCondition) -> Slot:
    """Return what a condition is about, and how: conditions that differ in values only share it."""
    if isinstance(condition, NamePatterns):
        return NAME_LABEL, "In" if condition.match else "NotIn"
    return condition.key, condition.operator


def _has_alternatives(condition: NamespaceCondition) -> bool:
    """Return whether the union of two such conditions is one with the values of both."""
    return slot_of(condition)[1] == "In"


def _values(condition: NamespaceCondition) -> tuple[str, ...]:
    return condition.patterns if isinstance(condition, NamePatterns) else condition.values


def _condition(slot: Slot, values: Collection[str]) -> NamespaceCondition:
    key, operator = slot
    if key == NAME_LABEL:
        return NamePatterns(shorten_patterns(values))
    return Requirement(key, operator, _sort(values))


def shorten_patterns(patterns: Collection[str]) -> tuple[str, ...]:
    """Return patterns that match the same names, and more if the globs exceed the API's limit.

    Then globs are cut after as many characters as possible.
    """
    exact = {each for each in patterns if not is_glob(each)}
    globs = {each for each in patterns if is_glob(each)}

    def cut(size: int) -> set[str]:
        return {each if len(each) <= size else f"{each[:size]}*" for each in globs}

    def is_too_long(kept: Iterable[str]) -> bool:
        return sum(len(each) + 4 for each in kept) > MAX_GLOBS_TEXT

    if is_too_long(globs):
        longest = max(map(len, globs))
        globs = cut(bisect(range(longest), 0, key=lambda size: is_too_long(cut(size))) - 1)
    return _sort(exact | globs)


def _without(place: NamespaceScope, other: NamespaceScope) -> Iterator[NamespaceScope]:
    """Yield disjoint scopes whose union is `place` without `other`."""
    if simplify(place | other) is None:
        yield place
        return
    for condition in sorted(other - place, key=repr):
        if (left := simplify(place | {negate(condition)})) is not None:
            yield left
        place |= {condition}


def order(place: NamespaceScope) -> tuple[object, ...]:
    """Return the sort key of scopes: names first, then labels, then others."""
    has_labels = any(isinstance(each, Requirement) for each in place)
    is_open = not has_labels and not any(
        isinstance(requirement, NamePatterns) and requirement.match for requirement in place
    )
    return is_open, has_labels, len(place), sorted(map(repr, place))


def _sort(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(texts)))
