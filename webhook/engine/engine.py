"""Judge requests: the policies in force, found by one look-up, asked one after the other."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

from webhook.engine.bound import BoundPolicy
from webhook.engine.children import Child, children, judge_children
from webhook.engine.conflicts import refuse_conflicts
from webhook.engine.exceptions import NOW
from webhook.engine.fields import WrongTypeError
from webhook.engine.index import Index
from webhook.engine.jsonpatch import Patcher
from webhook.engine.kinds import Kind, Target, TargetKey
from webhook.engine.origins import value_at
from webhook.engine.planners import SERVED, Planner, Planners, RefusedError
from webhook.engine.request import PARENT, Attributes, Request
from webhook.engine.verdict import Outcome, Verdict, as_sent, without_repeats
from webhook.engine.violation import Violation

NOTHING_NEEDED: frozenset[str] = frozenset()
DENY = frozenset({"Deny"})
NO_PLANNERS = Planners()


class Engine:
    """An immutable set of policies in force. A change builds a new engine; asking one changes nothing.

    The planned children of an object, as its planner names them, are judged with the object.
    """

    def __init__(self, policies: Iterable[BoundPolicy], planners: Planners = NO_PLANNERS) -> None:
        """Index the policies by what they judge.

        ConflictingPoliciesError where two of them would set one field to different values.
        """
        self.policies = tuple(policies)
        self.planners = planners
        self._validating = Index(each for each in self.policies if each.policy.validate is not None)
        self._mutating = Index(each for each in self.policies if each.policy.mutate is not None)
        self._targets = self._validating.targets | self._mutating.targets
        self._needs_of_children = {
            key: self._looked_up_for(planner, target)
            for planner in planners
            for target in planner.targets
            for key in target.keys
        }
        refuse_conflicts(self._mutating)

    def with_policies(self, policies: Iterable[BoundPolicy]) -> "Engine":
        """Return an engine of other policies and the same planners. ConflictingPoliciesError as for a new one."""
        return Engine(policies, self.planners)

    @cached_property
    def for_owned(self) -> "Engine":
        """The engine for objects whose owner is judged: the policies whose rules may be about these alone."""
        return self.with_policies(each for each in self.policies if each.policy.judges_owned)

    def judges(self, attributes: Attributes, *, mutating: bool = False) -> bool:
        """Return whether anything here looks at such a request: if not, its objects need not be decoded."""
        index = self._mutating if mutating else self._validating
        return bool(index.asked(attributes).policies) or (
            not mutating and self.planners.asked_about(attributes) is not None
        )

    def needs(self, attributes: Attributes, *, mutating: bool = False) -> frozenset[str]:
        """Return what must be looked up in the cluster before such a request can be judged, or its object changed.

        Children are looked at only where the request is judged.
        """
        if mutating:
            return self._mutating.asked(attributes).needs
        own = self._validating.asked(attributes).needs
        if not self._needs_of_children:
            return own
        return own | self._needs_of_children.get(attributes.target, NOTHING_NEEDED)

    def validate(self, request: Request) -> Verdict:
        """Ask every validating policy that applies; all violations are in the verdict.

        Where an object is being deleted already, its finalizers can always be removed; every other change is judged,
        since many objects go on working until their finalizers are gone. No children are created then.
        """
        if request.only_removes_finalizers:
            return Verdict()
        attributes = request.attributes
        outcomes: list[Outcome] = []
        asked = self._validating.asked(attributes).policies
        if asked:
            request = request.of_kind(self._targets[attributes.target].kind)
            for bound in asked:
                outcome = _guarded(bound.title, bound.actions, bound.fails_closed, bound.validate, request)
                if outcome is not None:
                    outcomes.append(outcome)
        if attributes.username == self.planners.controller_user.username:
            outcomes = [each.mapped(partial(self._with_controller_fix, request)) for each in outcomes]
        planner = self.planners.asked_about(attributes)
        if planner is not None and not request.is_being_deleted:
            outcomes = list(without_repeats(outcomes, self._judge_children(planner, request)))
        return Verdict(as_sent(outcomes, attributes))

    def _with_controller_fix(self, request: Request, violation: Violation) -> Violation:
        """Return a violation in what the controller creates, with the fix for an image that the controller chose."""
        if violation.controller_fix and self.planners.is_chosen(str(value_at(request.value, violation.path))):
            return replace(violation, fix=violation.controller_fix)
        return violation

    def _judge_children(self, planner: Planner, request: Request) -> Iterator[Outcome]:
        """Yield the outcomes of all planned children; a planner that raises is an outcome, as a policy is."""
        found: list[Child] = []
        kind = planner.kind.kind.lower()

        def plan() -> Outcome | None:
            try:
                found.extend(children(self.planners, planner, request))
            except RefusedError as error:
                return Outcome(f"{kind}-schema", DENY, error.violations)
            return None

        failed = _guarded(f"{kind}-plan", DENY, True, plan)
        if failed is not None:
            yield failed
        yield from judge_children(self, found, request.looked_up)

    def mutate(self, request: Request) -> Verdict:
        """Ask every mutating policy that applies, in order, each seeing the result of the one before.

        The request's object is patched in place. What has no object (DELETE), or is being deleted already, is never
        patched.
        """
        attributes = request.attributes
        asked = self._mutating.asked(attributes).policies
        if not asked or request.object is None or request.is_being_deleted:
            return Verdict()
        request = request.of_kind(self._targets[attributes.target].kind)
        patcher = Patcher(request)
        outcomes: list[Outcome] = []
        for bound in asked:
            outcome = _guarded(bound.title, bound.actions, bound.fails_closed, bound.mutate, request, patcher)
            if outcome is not None:
                outcomes.append(outcome)
        return Verdict(as_sent(outcomes, attributes), patcher.operations, request.object)

    @property
    def judged_kinds(self) -> frozenset[Kind]:
        """The kinds of which new objects are judged, themselves or by what is planned for them."""
        judged = {
            target.kind
            for (_, _, subresource, operation), target in self._validating.targets.items()
            if not subresource and operation == "CREATE"
        }
        return frozenset(judged | {planner.kind for planner in self.planners if self._may_deny(planner)})

    def _may_deny(self, planner: Planner) -> bool:
        """Return whether a planned child may be denied: by a policy, or by its type where it is planned for itself."""
        reach = self.planners.reach(planner)
        return any(
            self.planners.of(kind.group, kind.plural) or not self._targets.keys().isdisjoint(Target(kind).keys)
            for kind in reach
        )

    def _looked_up_for(self, planner: Planner, target: Target) -> frozenset[str]:
        keys = {key for kind in self.planners.reach(planner) for key in Target(kind).keys}
        own = frozenset({NOW, PARENT} if target.subresource else {NOW})
        own |= {SERVED} if self.planners.has_optional(planner) else NOTHING_NEEDED
        return own.union(*(bound.needs_anywhere for key in keys for bound in self._asked(key)))

    def _asked(self, key: TargetKey) -> tuple[BoundPolicy, ...]:
        return (*self._validating.all.get(key, ()), *self._mutating.all.get(key, ()))


def _guarded(
    title: str, actions: frozenset[str], fails_closed: bool, judge: Callable[..., Outcome | None], *args: Any
) -> Outcome | None:
    """Return what `judge` returns; an exception becomes an outcome."""
    try:
        return judge(*args)
    except WrongTypeError as error:
        malformed = Violation(error.path, error.found, f"it must be {error.wanted}", error.fix)
        return Outcome(title, actions, malformed=malformed)
    except Exception as error:  # noqa: BLE001  one of two in the project: a policy's failure is for its failurePolicy
        return Outcome(title, actions, error=error, fails_closed=fails_closed)
