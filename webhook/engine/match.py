"""Does a policy apply to a request? Globs and selectors, compiled once."""

import fnmatch
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from config.api.policy import LabelSelector, LabelSelectorRequirement
from config.api.policy import Match as MatchSpec
from config.api.policy import MatchClause as MatchClauseSpec
from webhook.engine.request import Request

NAMESPACE_LABELS = "namespace_labels"  # what a namespaceSelector must have looked up: a dict of strings

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Clause:
    """One compiled clause: what is None does not restrict. Kinds are decided when the engine is built (`for_kind`)."""

    kinds: frozenset[str] | None
    namespaces: re.Pattern[str] | None
    selector: Callable[[Labels], bool] | None

    def selects(self, request: Request) -> bool:
        """Return whether namespace and labels hold; they never do for a cluster-scoped object."""
        namespace = request.about.namespace
        if self.namespaces is not None and (not namespace or self.namespaces.match(namespace) is None):
            return False
        if self.selector is None:
            return True
        return bool(namespace) and self.selector(request.lookup(NAMESPACE_LABELS))


@dataclass(frozen=True, slots=True)
class Match:
    """A compiled `match`; those clauses come first that need no look-up."""

    clauses: tuple[Clause, ...]

    def selects(self, request: Request) -> bool:
        """Return whether any clause selects the request. NotLookedUpError where namespace labels would decide."""
        if not self.clauses:
            return True
        return any(clause.selects(request) for clause in self.clauses)

    def for_kind(self, kind: str) -> "Match | None":
        """Return what is left to decide for one kind; None where no clause can ever select it."""
        left = tuple(clause for clause in self.clauses if clause.kinds is None or kind in clause.kinds)
        return Match(left) if left or not self.clauses else None

    @property
    def needs(self) -> frozenset[str]:
        """What must be looked up before this can be decided."""
        return frozenset({NAMESPACE_LABELS}) if any(clause.selector for clause in self.clauses) else frozenset()


def compile_match(spec: MatchSpec) -> Match:
    """Compile the `match` of a policy object."""
    clauses = [_compile_clause(clause) for clause in spec.any]
    return Match(tuple(sorted(clauses, key=lambda clause: clause.selector is not None)))


def _compile_clause(spec: MatchClauseSpec) -> Clause:
    globs = spec.namespaces
    return Clause(
        kinds=None if spec.kinds is None else frozenset(spec.kinds),
        namespaces=None if globs is None else re.compile("|".join(f"(?:{fnmatch.translate(glob)})" for glob in globs)),
        selector=None if spec.namespace_selector is None else compile_selector(spec.namespace_selector),
    )


def compile_selector(spec: LabelSelector) -> Callable[[Labels], bool]:
    """Compile a label selector (meta/v1) into a predicate on labels."""
    tests = [_compile_requirement(requirement) for requirement in spec.match_expressions]
    exact = spec.match_labels.items()
    return lambda labels: all(labels.get(key) == value for key, value in exact) and all(test(labels) for test in tests)


def _compile_requirement(spec: LabelSelectorRequirement) -> Callable[[Labels], bool]:
    key, values = spec.key, frozenset(spec.values)
    match spec.operator:
        case "In":
            return lambda labels: labels.get(key) in values
        case "NotIn":
            return lambda labels: key not in labels or labels[key] not in values
        case "Exists":
            return lambda labels: key in labels
        case "DoesNotExist":
            return lambda labels: key not in labels
