"""Judge requests: the policies in force, found by one look-up, asked one after the other."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from webhook.engine.bound import BoundPolicy
from webhook.engine.conflicts import ConflictingPoliciesError, check_conflicts
from webhook.engine.fields import WrongTypeError
from webhook.engine.jsonpatch import Patcher
from webhook.engine.kinds import Kind, Target, TargetKey
from webhook.engine.policy import Violation
from webhook.engine.request import Request
from webhook.engine.verdict import Outcome, Verdict

NOTHING_NEEDED: frozenset[str] = frozenset()

Index = dict[TargetKey, tuple[BoundPolicy, ...]]


class Engine:
    """An immutable set of policies in force. A change builds a new engine; asking one changes nothing."""

    def __init__(self, policies: Iterable[BoundPolicy]) -> None:
        """Index the policies by what they judge.

        ConflictingPoliciesError where two of them would set one field to different values.
        """
        self.policies = tuple(policies)
        self._targets: dict[TargetKey, Target] = {}
        self._validating = self._index(each for each in self.policies if each.policy.validate is not None)
        self._mutating = self._index(each for each in self.policies if each.policy.mutate is not None)
        self._needs = {
            key: frozenset[str]().union(*(bound.needs for bound in self._asked(key))) for key in self._targets
        }
        self._refuse_conflicts()

    def _refuse_conflicts(self) -> None:
        wholes = {key: target.kind for key, target in self._targets.items() if not target.subresource}
        conflicts = {
            line: None
            for key, policies in self._mutating.items()
            if key in wholes
            for line in check_conflicts(wholes[key], policies)
        }
        if conflicts:
            raise ConflictingPoliciesError("\n".join(conflicts))

    def needs(self, request: Request) -> frozenset[str]:
        """Return what must be looked up in the cluster before this request can be judged."""
        return self._needs.get(request.about.target, NOTHING_NEEDED)

    def validate(self, request: Request) -> Verdict:
        """Ask every validating policy that applies; all of their findings are in the verdict.

        An object that is being deleted already is left alone: what is left to change are its finalizers.
        """
        asked = self._validating.get(request.about.target)
        if asked is None or request.is_ending:
            return Verdict()
        request = request.of_kind(self._targets[request.about.target].kind)
        outcomes = (_ask(bound, request, lambda bound: bound.validate(request)) for bound in asked)
        return Verdict(tuple(outcome for outcome in outcomes if outcome is not None))

    def mutate(self, request: Request) -> Verdict:
        """Ask every mutating policy that applies, in order, each seeing the result of the one before.

        What has no object (DELETE), or is being deleted already, is never patched.
        """
        asked = self._mutating.get(request.about.target)
        if asked is None or request.object is None or request.is_ending:
            return Verdict()
        patcher = Patcher(request.object)
        request = request.of_kind(self._targets[request.about.target].kind)
        outcomes = []
        for bound in asked:
            seen = request.with_object(patcher.object)
            outcome = _ask(bound, seen, lambda bound, seen=seen: bound.mutate(seen, patcher))  # type: ignore[misc]
            if outcome is not None:
                outcomes.append(outcome)
        return Verdict(tuple(outcomes), patcher.operations, patcher.object)

    def targets(self, *, mutating: bool, fails_closed: bool) -> tuple[Target, ...]:
        """Return what the policies of one sort look at, in a fixed order: what a webhook must be registered for."""
        index = self._mutating if mutating else self._validating
        operations: dict[tuple[Kind, str], set[str]] = {}
        for key, policies in index.items():
            if any(bound.fails_closed is fails_closed for bound in policies):
                target = self._targets[key]
                operations.setdefault((target.kind, target.subresource), set()).add(key[3])
        merged = [Target(kind, sub, tuple(sorted(found))) for (kind, sub), found in operations.items()]
        return tuple(sorted(merged, key=lambda each: (each.kind.group, each.kind.plural, each.subresource)))

    def _asked(self, key: TargetKey) -> tuple[BoundPolicy, ...]:
        return (*self._validating.get(key, ()), *self._mutating.get(key, ()))

    def _index(self, policies: Iterable[BoundPolicy]) -> Index:
        index: Index = {}
        for bound in policies:
            for target in bound.policy.targets:
                match = bound.match.for_kind(target.kind.kind)
                if match is None or (bound.namespace is not None and not target.kind.namespaced):
                    continue  # what no clause can select; a Namespace is the platform's, not its tenant's
                for key in target.keys:
                    self._targets[key] = target
                    index[key] = (*index.get(key, ()), replace(bound, match=match))
        return index


def _ask(bound: BoundPolicy, request: Request, judge: Callable[[BoundPolicy], Outcome | None]) -> Outcome | None:
    """Return what one policy says, or None where it does not apply. Whatever it raises becomes an outcome."""
    try:
        return judge(bound) if bound.applies(request) else None
    except WrongTypeError as error:
        malformed = Violation(error.path, error.found, f"it must be {error.wanted}", error.fix)
        return Outcome(bound.title, bound.actions, malformed=malformed)
    except Exception as error:  # noqa: BLE001  one of two in the project: a policy's failure is for its failurePolicy
        return Outcome(bound.title, bound.actions, error=error, fails_closed=bound.fails_closed)
