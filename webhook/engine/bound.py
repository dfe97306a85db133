"""A policy in force, and how it is asked about one request."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice
from typing import Any

from webhook.engine.exceptions import NOW, Exempt
from webhook.engine.fields import Fields, WrongTypeError
from webhook.engine.jsonpatch import Patcher
from webhook.engine.match import Match
from webhook.engine.policy import Params, Policy
from webhook.engine.request import Request
from webhook.engine.rules import RuleError
from webhook.engine.verdict import MAX_VIOLATIONS, Outcome
from webhook.engine.violation import Before, Violation, is_below


@dataclass(frozen=True)
class BoundPolicy:
    """A policy in force: which one, with which parameters, where, and what it does.

    `namespace` is set for a tenant's policy, which judges nothing else; `tolerates_existing` lets an update pass that
    makes no violation worse than it was.
    """

    name: str
    policy: Policy
    params: Params
    match: Match
    actions: frozenset[str]
    fails_closed: bool = True
    namespace: str | None = None
    tolerates_existing: bool = True
    exempt: tuple[Exempt, ...] = ()
    severity: str = ""  # the policy's own by default
    category: str = ""
    condition: Callable[[Request], bool] | None = None  # what `matchConditions` say
    condition_needs: frozenset[str] = frozenset()

    @cached_property
    def title(self) -> str:
        """What messages call it."""
        return self.name if self.namespace is None else f"{self.namespace}/{self.name}"

    @cached_property
    def passed(self) -> Outcome:
        """The outcome where it applies and has nothing to say."""
        return Outcome(self.title, self.actions)

    @cached_property
    def needs(self) -> frozenset[str]:
        """What must be looked up before it can judge what it applies to, also by the parameters of exceptions."""
        needed = self.policy.needed(self.params) | self.condition_needs
        for exempt in self.exempt:
            needed |= {NOW} | (frozenset() if exempt.params is None else self.policy.needed(exempt.params))
        return needed

    @property
    def needs_anywhere(self) -> frozenset[str]:
        """What must be looked up before it can judge any object, also to decide whether it applies."""
        return self.needs | self.match.needs()

    @cached_property
    def _is_conditional(self) -> bool:
        return self.match.restricts or self.condition is not None

    def _applies(self, request: Request) -> bool:
        return self.match.selects(request) and (self.condition is None or self.condition(request))

    def validate(self, request: Request) -> Outcome | None:
        """Return the violations that it finds; None where it does not apply, or an exception leaves nothing of it.

        NotLookedUpError where what would decide is not known.
        """
        if self._is_conditional and not self._applies(request):
            return None
        policy = self._excepted(request) if self.exempt else self
        if policy is None:
            return None
        judge: Any = self.policy.validate
        violations = iter(policy._left(request, judge) if self.exempt else judge(request, self.params))
        first = next(violations, None)
        outcome = self.passed if first is None else policy._outcome(request, chain((first,), violations))
        if self.policy.annotate is None:
            return outcome
        return replace(outcome, annotations=tuple(self.policy.annotate(request, policy.params)))

    def mutate(self, request: Request, patcher: Patcher) -> Outcome | None:
        """Set what is to be set; None where it does not apply, or an exception leaves nothing of it."""
        if self._is_conditional and not self._applies(request):
            return None
        policy = self._excepted(request)
        if policy is None:
            return None
        changed = patcher.apply(list(policy._left(request, self.policy.mutate)))
        return Outcome(self.title, self.actions, patched=True) if changed else self.passed

    def _outcome(self, request: Request, violations: Iterable[Violation]) -> Outcome:
        """Sort violations into new ones and those that an update tolerates."""
        old = self._before(request) if request.old_object is not None else ()
        if not old:
            return Outcome(self.title, self.actions, tuple(islice(violations, MAX_VIOLATIONS + 1)))
        before = Before(old)
        new: list[Violation] = []
        tolerated: list[Violation] = []
        for each in violations:
            (tolerated if before.holds(each) else new).append(each)
            if len(new) > MAX_VIOLATIONS:
                break
        for each in tolerated[:MAX_VIOLATIONS] if self.exempt else ():
            each.expired = self._expired(request, each)
        return Outcome(self.title, self.actions, tuple(new), tuple(tolerated))

    def _before(self, request: Request) -> list[Violation]:
        """Return the violations of the object as it was, if the policy denied them then.

        A malformed object had none to tolerate, nor one that `match` did not select, or whose conditions fail. At most
        ten times as many as are reported are tolerated.
        """
        before = request.before() if self.tolerates_existing and "Deny" in self.actions else None
        try:
            if before is None or not self._applies(before):
                return []
            return list(islice(self._left(before, self.policy.validate), 10 * MAX_VIOLATIONS))
        except (RuleError, WrongTypeError):
            return []

    def _expired(self, request: Request, violation: Violation) -> str:
        """Return the name of the exception that covered a violation until it expired; nothing where there is none."""
        for exempt in self.exempt:
            if not (exempt.is_expired(request) and exempt.is_about(request)):
                continue
            if exempt.is_whole or is_below(violation.holder, frozenset(exempt.records(request))):
                return f"{exempt.title} expired {exempt.expires:%Y-%m-%d}"
        return ""

    def _excepted(self, request: Request) -> "BoundPolicy | None":
        """Return the policy as exceptions leave it for this request: as it is, with other parameters, or None."""
        for exempt in self.exempt:
            if exempt.is_whole and exempt.covers(request):
                return None if exempt.params is None else replace(self, params=exempt.params)
        return self

    def _left(self, request: Request, judge: Any) -> Iterator[Any]:
        """Yield what `judge` yields, less what exceptions for a container or an image take out.

        One with parameters has its containers judged by those. The first that is about a container counts.
        """
        if not self.exempt:
            yield from judge(request, self.params)
            return
        taken: set[Fields] = set()
        by_others: list[tuple[Params, set[Fields]]] = []
        for exempt in self.exempt:
            if not exempt.is_whole and exempt.covers(request):
                records = set(exempt.records(request)) - taken
                taken |= records
                if exempt.params is not None:
                    by_others.append((exempt.params, records))
        request.excepted = taken
        yield from (each for each in judge(request, self.params) if not is_below(each.holder, taken))
        for params, records in by_others:
            request.excepted = frozenset(set(request.containers()) - records)
            yield from (each for each in judge(request, params) if is_below(each.holder, records))
        request.excepted = frozenset()


def outcomes_of(asked: Iterable[Any], judge: Callable[[Any], Outcome | None]) -> list[Outcome]:
    """Return the outcome of each policy that applies, as `judge` asks it; an exception becomes an outcome."""
    outcomes = []
    for bound in asked:
        try:
            outcome = judge(bound)
        except WrongTypeError as error:
            malformed = Violation(error.path, error.found, f"it must be {error.wanted}", error.fix)
            outcome = Outcome(bound.title, bound.actions, malformed=malformed)
        except Exception as error:  # noqa: BLE001  one of two in the project: a policy's failure is for its failurePolicy
            outcome = Outcome(bound.title, bound.actions, error=error, fails_closed=bound.fails_closed)
        if outcome is not None:
            outcomes.append(outcome)
    return outcomes
