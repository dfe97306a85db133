"""A policy in force, and how it judges one request."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice
from operator import attrgetter
from typing import Any, TypeVar

from webhook.engine.exemptions import NO_EXEMPTIONS, Exemptions, nearest
from webhook.engine.fields import WrongTypeError
from webhook.engine.jsonpatch import Patcher
from webhook.engine.kinds import Target, TargetKey
from webhook.engine.match import LabelValues, Match, NamespaceNames
from webhook.engine.origins import without_field
from webhook.engine.policy import (
    Params,
    Policy,
    RequestPredicate,
    RuleError,
    SkippedMutationError,
    judge_each_pod,
)
from webhook.engine.request import Request
from webhook.engine.verdict import MAX_VIOLATIONS, Outcome
from webhook.engine.violation import Before, Patch, Record, Violation

T = TypeVar("T")
RULE_BYTES = 20  # bytes of the smallest rule in parameters, such as a regular expression
RULES_OF_A_BUDGET = 500  # the 50 ms budget of one policy's expressions, in rules of 0.1 ms
MAX_MALFORMED = 20  # exempt fields of a wrong type; the object is judged again without each


MAX_NARROWED = 20  # targets of a policy that are kept narrowed
MAX_SHARED = 10_000
_SHARED: dict[Any, Any] = {}


def share(value: T) -> T:
    """Return an equal value that many policies share: they are compared by identity."""
    if len(_SHARED) > MAX_SHARED:
        _SHARED.clear()
    shared: T = _SHARED.setdefault(value, value)
    return shared


@dataclass(frozen=True)
class BoundPolicy:
    """A policy in force, with its parameters, its scope and its actions.

    `namespace` is set for a tenant's policy, which judges only this namespace. With
    `tolerates_existing`, an update that makes no existing violation worse is allowed.
    """

    name: str
    policy: Policy
    params: Params
    match: Match
    actions: frozenset[str]
    fails_closed: bool = True
    namespace: str | None = None
    tolerates_existing: bool = True
    exemptions: Exemptions = NO_EXEMPTIONS
    condition: RequestPredicate | None = None  # from `matchConditions`
    condition_needs: frozenset[str] = frozenset()
    size: int = 0  # bytes of its object as JSON
    evaluates: bool = False  # whether it has CEL expressions, which may use their whole budget

    @cached_property
    def title(self) -> str:
        """Its name in messages."""
        return self.name if self.namespace is None else f"{self.namespace}/{self.name}"

    @cached_property
    def targets(self) -> tuple[Target, ...]:
        """The resources and subresources that it judges."""
        return share(self.policy.targets)

    @cached_property
    def keys(self) -> tuple[tuple[TargetKey, Target], ...]:
        """The targets of which its match can select requests, by key.

        A tenant's policy does not judge cluster-scoped objects, such as the Namespace itself.
        """
        own = [each for each in self.targets if self.namespace is None or each.kind.namespaced]
        targets = self.match.select_targets(own)
        return share(tuple([(key, target) for target in targets for key in target.keys]))

    @cached_property
    def namespaces(self) -> NamespaceNames:
        """The names of the namespaces in which it can apply."""
        if self.namespace is not None:
            return NamespaceNames(frozenset({self.namespace}))
        return self.match.namespaces()

    @cached_property
    def namespace_labels(self) -> tuple[LabelValues, ...]:
        """Labels of which a namespace needs one, for the match to select anything."""
        return self.match.labels_of_namespaces

    def narrow(self, target: Target, namespace: str) -> "BoundPolicy | None":
        """Return the policy with what a target and a namespace leave open of its match.

        None if it selects nothing there. What does not depend on the namespace's name is kept for
        the next set of policies with this one.
        """
        key = target, bool(namespace)
        if key in self._narrowed:
            return self._narrowed[key]
        match = self.match.narrow(target, namespace)
        has_several = bool(target.kind.pod_specs) and not self.evaluates
        policy = judge_each_pod(self.policy) if has_several else self.policy
        narrowed = None if match is None else replace(self, match=match, policy=policy)
        if self.match.ignores_names_of_namespaces and len(self._narrowed) < MAX_NARROWED:
            self._narrowed[key] = narrowed
        return narrowed

    @cached_property
    def _narrowed(self) -> dict[tuple[Target, bool], "BoundPolicy | None"]:
        return {}

    @cached_property
    def needs_anywhere(self) -> frozenset[str]:
        """The look-ups that it needs for a whole object, wherever it is."""
        return self.needs | self.match.needs()

    @cached_property
    def passed(self) -> Outcome:
        """The outcome of a policy that applies and reports nothing."""
        return Outcome(self.title, self.actions)

    @cached_property
    def rules(self) -> int:
        """The maximum cost of judging by it, in rules of 0.1 ms."""
        patterns = sum(each.patterns for each in self.exemptions)
        return self.size // RULE_BYTES + patterns + (RULES_OF_A_BUDGET if self.evaluates else 0)

    @cached_property
    def needs(self) -> frozenset[str]:
        """The look-ups that it needs, with its own parameters and those of exceptions."""
        needed = self.policy.needed_look_ups(self.params) | self.condition_needs
        return needed.union(*map(attrgetter("needs"), self.exemptions))

    def validate(self, request: Request, malformed: int = 0) -> Outcome | None:
        """Return the outcome; None if it does not apply or everything is exempt.

        `malformed` is the number of exempt fields that were left out so far. Raises
        NotLookedUpError if data that it needs is unknown.
        """
        try:
            violations = self._judge_with(request, self.policy.validate)
            if violations is None:
                return None
            if self.exemptions and (fields := self.exemptions.covered_fields(request)):
                violations = (each for each in violations if each.where not in fields)
            first = next(violations, None)
            outcome = self.passed if first is None else self._outcome(request, first, violations)
        except WrongTypeError as error:
            rest = self._without_malformed(request, error.path)
            if rest is None or malformed == MAX_MALFORMED:
                raise
            return self.validate(rest[0], malformed + 1)
        if self.policy.annotate is None:
            return outcome
        return replace(outcome, annotations=tuple(self.policy.annotate(request, self.params)))

    def validate_and_count(self, request: Request) -> Outcome | None:
        """Return the result of `validate`, with the exceptions that cover further violations."""
        outcome = self.validate(request)
        if not self.exemptions:
            return outcome
        return replace(
            outcome or self.passed, covered=tuple(self._covering_exceptions(request, outcome))
        )

    def _without_malformed(self, request: Request, path: str) -> tuple[Request, str] | None:
        """Return the request without an exempt field, and the exception's title.

        None if it is not exempt.

        The caller raises the error again: a frame that refers to it would keep it and the request
        in memory until the next garbage collection.
        """
        entry = self.exemptions.covered_fields(request).get(path)
        rest = None if entry is None else without_field(request.object, path)
        if entry is None or rest is None or rest == request.object:
            return None
        return request.with_object(rest), entry.title

    def _covering_exceptions(self, request: Request, outcome: Outcome | None) -> Iterator[str]:
        """Yield the title of an exception for each violation that would count without it."""
        try:
            bare = replace(self, exemptions=NO_EXEMPTIONS).validate(request)
        except WrongTypeError as error:
            remainder = self._without_malformed(request, error.path)
            if remainder is None:
                raise
            rest, title = remainder
            yield title
            yield from self._covering_exceptions(rest, outcome)
            return
        fields = self.exemptions.covered_fields(request)
        records = self.exemptions.covered_records(request)
        left = set(outcome.violations) if outcome else set()
        for violation in bare.violations if bare else ():
            entry = fields.get(violation.where) or nearest(violation.holder, records, request)
            if entry is not None and violation not in left:
                yield entry.title

    def mutate(self, request: Request, patcher: Patcher) -> Outcome | None:
        """Apply the policy's patches; None if it does not apply or everything is exempt."""
        request.excepted = False
        try:
            patches = self._judge_with(request, self.policy.mutate)
            if patches is None:
                return None
            applied, skipped = list[Patch](), None
            try:
                applied.extend(patches)
            except SkippedMutationError as error:
                skipped = error.with_traceback(None)
            is_patched = patcher.apply(applied)
        except WrongTypeError as error:
            if self._without_malformed(request, error.path) is None:
                raise
            return None
        if skipped is not None:
            return replace(self.passed, patched=is_patched, error=skipped, fails_closed=False)
        return Outcome(self.title, self.actions, patched=True) if is_patched else self.passed

    def _judge_with(self, request: Request, judge: Any) -> Iterator[Any] | None:
        """Return the results of `judge` with the parameters in effect.

        None if everything is exempt.
        """
        if not self.match.selects(request):
            return None
        if self.condition is not None and not self.condition(request):
            return None
        if not self.exemptions:
            results: Iterator[Any] = iter(judge(request, self.params))
            return results
        covered = self.exemptions.covered_records(request)
        request.excepted = any(record is not request for record in covered)
        params: dict[Record, Params | None] = {request: self.params}
        params |= {record: each.params for record, each in covered.items()}
        return None if params[request] is None else _by_record(request, judge, params)

    def _outcome(self, request: Request, first: Violation, others: Iterator[Violation]) -> Outcome:
        """Sort violations into new ones and those that an update tolerates."""
        old = self._before(request)
        if not old:
            return Outcome(self.title, self.actions, (first, *islice(others, MAX_VIOLATIONS)))
        before = Before(old)
        expired = self.exemptions.covered_records(request, expired=True)
        new: list[Violation] = []
        tolerated: list[Violation] = []
        for violation in chain((first,), others):
            (tolerated if before.holds(violation) else new).append(violation)
            if len(new) > MAX_VIOLATIONS:
                break
        for violation in tolerated if expired else ():
            if (entry := nearest(violation.holder, expired, request)) is not None:
                violation.expired = f"{entry.title} expired {entry.expires:%Y-%m-%d}"
        return Outcome(self.title, self.actions, tuple(new), tuple(tolerated))

    def _before(self, request: Request) -> list[Violation]:
        """Return the violations of the old object, if the policy applied to it.

        Nothing is tolerated if the old object is malformed, is not selected by `match`, or if its
        match conditions fail. At most ten times the maximum of reported violations are tolerated.
        """
        before = request.before() if self.tolerates_existing and "Deny" in self.actions else None
        try:
            violations = None if before is None else self._judge_with(before, self.policy.validate)
            return list(islice(violations or (), 10 * MAX_VIOLATIONS))
        except (RuleError, WrongTypeError):
            return []


def _by_record(
    request: Request, judge: Any, params: Mapping[Record, Params | None]
) -> Iterator[Any]:
    """Yield the results of `judge` for each record with its own parameters (None: exempt)."""
    for by in {id(each): each for each in params.values() if each is not None}.values():
        for violation in judge(request, by):
            if nearest(violation.holder, params, request) is by:
                yield violation


def outcomes_of(policies: Iterable[Any], judge: Callable[[Any], Outcome | None]) -> list[Outcome]:
    """Return the outcomes of `judge` for all policies; an exception becomes an outcome."""
    outcomes = []
    for bound in policies:
        try:
            outcome = judge(bound)
        except WrongTypeError as error:
            malformed = Violation(error.path, error.found, f"it must be {error.wanted}", error.fix)
            outcome = Outcome(bound.title, bound.actions, malformed=malformed)
        # A policy that ends the process would end a check with success.
        except (Exception, SystemExit) as error:  # noqa: BLE001
            fails_closed = bound.fails_closed
            outcome = Outcome(bound.title, bound.actions, error=error, fails_closed=fails_closed)
        if outcome is not None:
            outcomes.append(outcome)
    return outcomes
