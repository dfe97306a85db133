"""Decides whether a policy applies to a request, by globs and selectors that are compiled once."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from config.api.match import LabelSelector, MatchSpec
from config.api.match import MatchClause as MatchClauseSpec
from webhook.engine.globs import Globs
from webhook.engine.kinds import NAMESPACES, OF_A_PARENT, Target
from webhook.engine.request import NAMESPACE_LABELS, PARENT, Request

WILDCARD = re.compile(r"[*?]")
SERVICE_ACCOUNT = "system:serviceaccount:"

Labels = Mapping[str, str]
LabeledNamespace = tuple[str, Labels]
LabelValues = tuple[
    str, frozenset[str] | None
]  # a label, and the values that it may have; None: any


class NamespaceNames(NamedTuple):
    """The names of the namespaces in which a policy can apply; without both, all names."""

    exact: frozenset[str] | None = None  # the only names
    prefixes: frozenset[str] = frozenset()  # the only beginnings of names


ALL_NAMES = NamespaceNames()


@dataclass(frozen=True, slots=True)
class Clause:
    """One compiled clause; a field that is None does not restrict."""

    kinds: frozenset[str] | None = None
    operations: frozenset[str] | None = None
    subresources: frozenset[str] | None = None
    names: Globs | None = None
    namespaces: Globs | None = None
    object_selector: Callable[[Labels], bool] | None = None
    pod_selector: Callable[[Labels], bool] | None = None
    namespace_selector: Callable[[Labels], bool] | None = None
    namespace_label: LabelValues | None = None  # one that the selector requires, for an index

    def may_select_in(self, namespace: str, labels: Labels | None) -> bool:
        """Return whether it can select something in a namespace; None: of any labels."""
        if self.namespaces is not None and not self.namespaces.match(namespace):
            return False
        selector = self.namespace_selector
        return selector is None or labels is None or selector(labels)

    def narrow(self, target: Target, namespace: str) -> "Clause | None":
        """Return the conditions that remain for requests for a target in a namespace.

        None if it selects none. Conditions on the namespace never select a cluster-scoped object.
        """
        if not may_select(self, target):
            return None
        if self.namespaces is not None and not (namespace and self.namespaces.match(namespace)):
            return None
        if self.namespace_selector is not None and not namespace:
            return None
        return replace(self, kinds=None, operations=None, subresources=None, namespaces=None)

    def selects(self, request: Request) -> bool:
        """Return whether label selectors select the new or the old object."""
        if self.names is not None and not self.names.match(request.name):
            return False
        of_object, of_pod = self.object_selector, self.pod_selector
        if of_object is not None and not any(map(of_object, request.selectable())):
            return False
        if of_pod is not None and not any(map(of_pod, request.selectable(of_pod=True))):
            return False
        of_namespace = self.namespace_selector
        return of_namespace is None or of_namespace(request.namespace_labels())


@dataclass(frozen=True, slots=True)
class Match:
    """A compiled `match`; clauses that need no look-up come first."""

    clauses: tuple[Clause, ...] = ()
    users: Globs | None = None
    groups: Globs | None = None
    # The clauses of the policy object, for comparison.
    written: tuple[MatchClauseSpec, ...] = ()

    def shares_place_with(self, other: "Match") -> bool:
        """Return whether one of the two matches everywhere, or both have an equal clause."""
        if not self.clauses or not other.clauses:
            return True
        return any(clause in other.written for clause in self.written)

    def selects(self, request: Request) -> bool:
        """Return whether a narrowed match selects the request.

        Raises NotLookedUpError if unknown.
        """
        if self.users is not None and self.users.match(request.attributes.username):
            return False
        if self.groups is not None and any(map(self.groups.match, request.attributes.groups)):
            return False
        return not self.clauses or any(clause.selects(request) for clause in self.clauses)

    def select_targets(self, targets: Iterable[Target]) -> list[Target]:
        """Return the targets for which a clause can select requests."""
        if not self.clauses:
            return [*targets]
        return [
            target for target in targets if any(may_select(each, target) for each in self.clauses)
        ]

    def narrow(self, target: Target, namespace: str) -> "Match | None":
        """Return the conditions that remain for a target in a namespace.

        None if it selects nothing.
        """
        narrowed = (clause.narrow(target, namespace) for clause in self.clauses)
        left = tuple(clause for clause in narrowed if clause is not None)
        if self.clauses and not left:
            return None
        return replace(self, clauses=() if Clause() in left else left)

    def namespaces(self) -> "NamespaceNames":
        """Return the names of the namespaces in which it can select something."""
        several = [clause.namespaces for clause in self.clauses]
        exact = [None if globs is None else globs.exact for globs in several]
        names = [each for each in exact if each is not None]
        if names and len(names) == len(exact):
            return NamespaceNames(frozenset[str]().union(*names))
        if not any(several):
            return ALL_NAMES
        patterns = [pattern for globs in several for pattern in globs or ("*",)]
        return NamespaceNames(
            prefixes=frozenset([WILDCARD.split(each, maxsplit=1)[0] for each in patterns])
        )

    @property
    def ignores_names_of_namespaces(self) -> bool:
        """Whether no clause has names or globs of namespaces."""
        return all(clause.namespaces is None for clause in self.clauses)

    def may_select_in(self, namespace: str, labels: Labels | None = None) -> bool:
        """Return whether a clause can select something in a namespace, by its name and labels.

        Without `labels`, by its name alone.
        """
        clauses = self.clauses
        return not clauses or any(each.may_select_in(namespace, labels) for each in clauses)

    @property
    def labels_of_namespaces(self) -> tuple[LabelValues, ...]:
        """Labels of which a namespace needs one, for it to select anything; empty if unknown."""
        labels = [clause.namespace_label for clause in self.clauses]
        return () if None in labels else tuple(each for each in labels if each is not None)

    def needs(self, subresource: str = "") -> frozenset[str]:
        """Return the look-ups for matching a request for the (sub)resource."""
        needed = set()
        for clause in self.clauses:
            if clause.namespace_selector:
                needed.add(NAMESPACE_LABELS)
            if subresource in OF_A_PARENT and (clause.object_selector or clause.pod_selector):
                needed.add(PARENT)
        return frozenset(needed)


def compile_match(spec: MatchSpec) -> Match:
    """Compile the `match` of a policy object."""
    clauses = [_compile_clause(each) for each in spec.any]
    clauses.sort(key=lambda clause: clause.namespace_selector is not None)
    exclude = spec.exclude
    accounts = (each.replace("/", ":") for each in exclude.service_accounts)
    users = [*exclude.users, *(f"{SERVICE_ACCOUNT}{each}" for each in accounts)]
    return Match(tuple(clauses), globs(users), globs(exclude.groups), tuple(spec.any))


def may_select(clause: Clause | MatchClauseSpec, target: Target) -> bool:
    """Return whether a clause, compiled or as written, can select requests for a target."""
    kind = target.kind
    if clause.kinds is not None and kind.kind not in clause.kinds:
        return False
    if clause.operations is not None and frozenset(clause.operations).isdisjoint(target.operations):
        return False
    if clause.subresources is not None and target.subresource not in clause.subresources:
        return False
    if clause.pod_selector is not None and not kind.has_pods:
        return False
    selects_labels = clause.object_selector is not None or clause.pod_selector is not None
    if selects_labels and not kind.has_labels_at(target.subresource):
        return False
    is_anywhere = clause.namespaces is None and clause.namespace_selector is None
    return is_anywhere or kind.namespaced or (kind.group, kind.plural) == NAMESPACES


def globs(patterns: list[str] | None) -> Globs | None:
    """Compile patterns; None for none, which do not restrict."""
    return Globs(patterns) if patterns else None


def _compile_clause(spec: MatchClauseSpec) -> Clause:
    return Clause(
        kinds=None if spec.kinds is None else frozenset(spec.kinds),
        operations=None if spec.operations is None else frozenset(map(str, spec.operations)),
        subresources=None if spec.subresources is None else frozenset(spec.subresources),
        names=globs(spec.names),
        namespaces=globs(spec.namespaces),
        object_selector=_selector(spec.object_selector),
        pod_selector=_selector(spec.pod_selector),
        namespace_selector=_selector(spec.namespace_selector),
        namespace_label=_required_label(spec.namespace_selector),
    )


def _required_label(spec: LabelSelector | None) -> LabelValues | None:
    """Return a label without which a selector selects nothing, if there is one."""
    if spec is None:
        return None
    for key, value in spec.match_labels.items():
        return key, frozenset({value})
    for expression in spec.match_expressions:
        if expression.operator == "In":
            return expression.key, frozenset(expression.values)
        if expression.operator == "Exists":
            return expression.key, None
    return None


def _selector(spec: LabelSelector | None) -> Callable[[Labels], bool] | None:
    return None if spec is None else compile_selector(spec)


def compile_selector(spec: LabelSelector) -> Callable[[Labels], bool]:
    """Compile a label selector (meta/v1) into a predicate on labels."""
    exact, others = spec.match_labels.items(), spec.match_expressions
    requirements = [(each.key, each.operator, frozenset(each.values)) for each in others]
    return lambda labels: (
        all(labels.get(key) == value for key, value in exact)
        and all(meets(labels, *each) for each in requirements)
    )


def meets(labels: Labels, key: str | None, operator: str | None, values: Collection[str]) -> bool:
    """Return whether labels meet a selector's requirement; False for an unknown operator."""
    match operator:
        case "In":
            return labels.get(key or "") in values
        case "NotIn":
            return labels.get(key or "") not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
    return False
