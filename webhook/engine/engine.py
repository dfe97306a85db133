"""Judge requests: the policies in force, found by one look-up, asked one after the other."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from webhook.engine.fields import WrongTypeError
from webhook.engine.jsonpatch import Patcher
from webhook.engine.kinds import TARGETS, Target, TargetKey
from webhook.engine.match import Match
from webhook.engine.policy import Params, Policy, Violation
from webhook.engine.request import Request
from webhook.engine.verdict import Outcome, Verdict

NOTHING_NEEDED: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class BoundPolicy:
    """A policy in force: which one, with which parameters, where, and what it does."""

    name: str
    policy: Policy
    params: Params
    match: Match
    actions: frozenset[str]
    fails_closed: bool

    @property
    def needs(self) -> frozenset[str]:
        """What must be looked up before it can judge."""
        return self.match.needs | frozenset(self.policy.needs)


Index = dict[TargetKey, tuple[BoundPolicy, ...]]


class Engine:
    """An immutable set of policies in force. A change builds a new engine; asking one changes nothing."""

    def __init__(self, policies: Iterable[BoundPolicy]) -> None:
        """Index the policies by what they judge."""
        self.policies = tuple(policies)
        self._validating = _index(bound for bound in self.policies if bound.policy.validate is not None)
        self._mutating = _index(bound for bound in self.policies if bound.policy.mutate is not None)
        self._needs = {
            key: frozenset[str]().union(
                *(bound.needs for bound in (*self._validating.get(key, ()), *self._mutating.get(key, ())))
            )
            for key in self._validating.keys() | self._mutating.keys()
        }

    def needs(self, request: Request) -> frozenset[str]:
        """Return what must be looked up in the cluster before this request can be judged."""
        return self._needs.get(request.about.target, NOTHING_NEEDED)

    def validate(self, request: Request) -> Verdict:
        """Ask every validating policy that applies; all of their findings are in the verdict."""
        bound = self._validating.get(request.about.target, ())
        return Verdict(tuple(outcome for each in bound if (outcome := _ask(each, request, _validate)) is not None))

    def mutate(self, request: Request) -> Verdict:
        """Ask every mutating policy that applies, in order, each seeing the result of the one before.

        What has no object (DELETE) is never patched.
        """
        if request.object is None:
            return Verdict()
        patcher = Patcher(request.object)
        outcomes = []
        for bound in self._mutating.get(request.about.target, ()):
            outcome = _ask(bound, request, lambda bound, request: _mutate(bound, request, patcher))
            if outcome is not None:
                outcomes.append(outcome)
                request = request.with_object(patcher.object) if outcome.patched else request
        return Verdict(tuple(outcomes), patcher.operations, patcher.object)

    def targets(self, *, mutating: bool, fails_closed: bool) -> tuple[Target, ...]:
        """Return what the policies of one sort look at, in a fixed order: what a webhook must be registered for."""
        index = self._mutating if mutating else self._validating
        return tuple(
            TARGETS[key]
            for key, policies in sorted(index.items())
            if any(bound.fails_closed is fails_closed for bound in policies)
        )


def _index(policies: Iterable[BoundPolicy]) -> Index:
    index: Index = {}
    for bound in policies:
        for target in bound.policy.targets:
            match = bound.match.for_kind(target.kind.kind)
            if match is not None:
                index[target.key] = (*index.get(target.key, ()), replace(bound, match=match))
    return index


def _ask(bound: BoundPolicy, request: Request, judge: Callable[[BoundPolicy, Request], Outcome]) -> Outcome | None:
    """Return what one policy says, or None where it does not apply. Whatever it raises becomes an outcome."""
    try:
        return judge(bound, request) if bound.match.selects(request) else None
    except WrongTypeError as error:
        malformed = Violation(error.path, error.found, f"it must be {error.wanted}", "correct its type")
        return Outcome(bound.name, bound.actions, malformed=malformed)
    except Exception as error:  # noqa: BLE001  one of two in the project: a policy's failure is for its failurePolicy
        return Outcome(bound.name, bound.actions, error=error, fails_closed=bound.fails_closed)


def _validate(bound: BoundPolicy, request: Request) -> Outcome:
    assert bound.policy.validate is not None
    return Outcome(bound.name, bound.actions, tuple(bound.policy.validate(request, bound.params)))


def _mutate(bound: BoundPolicy, request: Request, patcher: Patcher) -> Outcome:
    assert bound.policy.mutate is not None
    patches = tuple(bound.policy.mutate(request, bound.params))
    changed = [patcher.set(patch) for patch in patches]
    return Outcome(bound.name, bound.actions, patched=any(changed))
