"""Judge requests: the policies in force, found by one look-up, asked one after the other."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial

from webhook.engine.bound import BoundPolicy
from webhook.engine.children import SCALE_PARENT, Child, children
from webhook.engine.conflicts import ConflictingPoliciesError, check_conflicts
from webhook.engine.exceptions import NOW
from webhook.engine.fields import WrongTypeError
from webhook.engine.index import EVERYWHERE, Index
from webhook.engine.jsonpatch import Patcher
from webhook.engine.judging_children import judge_children
from webhook.engine.kinds import Kind, Target, TargetKey
from webhook.engine.origins import value_at
from webhook.engine.planners import SERVED, Planner, Planners, RefusedError
from webhook.engine.policy import Violation
from webhook.engine.request import NAMESPACE_LABELS, Request
from webhook.engine.verdict import Outcome, Verdict, as_sent, without_repeats

NOTHING_NEEDED: frozenset[str] = frozenset()
_KNOWN = {("", "namespaces"): frozenset({NAMESPACE_LABELS})}  # by the object itself: nobody looks it up

DENY = frozenset({"Deny"})
NO_PLANNERS = Planners()


class Engine:
    """An immutable set of policies in force. A change builds a new engine; asking one changes nothing.

    What would be made of an object, as its planner says, is judged with the object.
    """

    def __init__(self, policies: Iterable[BoundPolicy], planners: Planners = NO_PLANNERS) -> None:
        """Index the policies by what they judge.

        ConflictingPoliciesError where two of them would set one field to different values.
        """
        self.policies = tuple(policies)
        self._planners = planners
        self._validating = Index(each for each in self.policies if each.policy.validate is not None)
        self._mutating = Index(each for each in self.policies if each.policy.mutate is not None)
        self._targets = self._validating.targets | self._mutating.targets
        self._needs = dict(self._needed())
        self._needs_of_children = {
            key: self._looked_up_for(planner, target)
            for planner in planners
            for target in planner.targets
            for key in target.keys
        }
        self._refuse_conflicts()

    def with_policies(self, policies: Iterable[BoundPolicy]) -> "Engine":
        """Return an engine of other policies and the same planners. ConflictingPoliciesError as for a new one."""
        return Engine(policies, self._planners)

    def _needed(self) -> Iterator[tuple[tuple[TargetKey, str], frozenset[str]]]:
        """Yield what must be looked up for each target: for the cluster's policies, and for each tenant's."""
        for key in self._targets:
            needed: dict[str, frozenset[str]] = {}
            for bound in self._asked(key):
                where = bound.namespace or EVERYWHERE
                needed[where] = needed.get(where, NOTHING_NEEDED) | bound.needs - _KNOWN.get(key[:2], NOTHING_NEEDED)
            yield from (((key, where), names) for where, names in needed.items() if names)

    def _refuse_conflicts(self) -> None:
        wholes = {key: target.kind for key, target in self._targets.items() if not target.subresource}
        conflicts = {
            line: None
            for key, policies in self._mutating.all.items()
            if key in wholes
            for line in check_conflicts(wholes[key], policies)
        }
        if conflicts:
            raise ConflictingPoliciesError("\n".join(conflicts))

    def needs(self, request: Request, *, mutating: bool = False) -> frozenset[str]:
        """Return what must be looked up in the cluster before this request can be judged, or its object changed.

        What would be made of it is looked at only where it is judged.
        """
        target = request.attributes.target
        own = self._needs.get((target, EVERYWHERE), NOTHING_NEEDED)
        if tenants := self._needs.get((target, request.attributes.namespace)):
            own |= tenants
        return own if mutating else own | self._needs_of_children.get(target, NOTHING_NEEDED)

    def validate(self, request: Request) -> Verdict:
        """Ask every validating policy that applies; all of their findings are in the verdict.

        Where an object is being deleted already, its finalizers can always go; whatever else is changed is judged,
        since many a thing goes on working until they are gone. Nothing more is made of it.
        """
        if request.only_removes_finalizers:
            return Verdict()
        outcomes = tuple(self._found(request))
        if request.attributes.username == self._planners.controller_user.username:
            outcomes = tuple(each.mapped(partial(self._with_controller_fix, request)) for each in outcomes)
        planner = None if request.is_being_deleted else self._planners.asked_about(request.attributes)
        if planner is not None:
            outcomes = without_repeats(outcomes, self._of_made(planner, request))
        return Verdict(as_sent(outcomes, request.attributes))

    def _found(self, request: Request) -> Iterator[Outcome]:
        asked = self._validating.asked(request.attributes)
        if asked:
            request = request.of_kind(self._targets[request.attributes.target].kind)
            for bound in asked:
                outcome = _ask(bound, request, lambda bound: bound.validate(request))
                if outcome is not None:
                    yield outcome

    def _with_controller_fix(self, request: Request, violation: Violation) -> Violation:
        """Return a finding in what the controller makes; of an image that it chose with the setting that helps."""
        if violation.controller_fix and self._planners.is_chosen(str(value_at(request.value, violation.path))):
            return replace(violation, fix=violation.controller_fix)
        return violation

    def _of_made(self, planner: Planner, request: Request) -> Iterator[Outcome]:
        """Yield what would come of all that would be made; a planner that raises is an outcome, as a policy is."""
        found: list[Child] = []

        def plan() -> Outcome | None:
            try:
                found.extend(children(self._planners, planner, request))
            except RefusedError as error:
                return Outcome(f"{planner.kind.kind.lower()}-schema", DENY, error.violations)
            return None

        failed = _guarded(f"{planner.kind.kind.lower()}-plan", DENY, plan)
        if failed is not None:
            yield failed
        yield from judge_children(self, found, request.looked_up)

    def mutate(self, request: Request) -> Verdict:
        """Ask every mutating policy that applies, in order, each seeing the result of the one before.

        What has no object (DELETE), or is being deleted already, is never patched.
        """
        asked = self._mutating.asked(request.attributes)
        if not asked or request.object is None or request.is_being_deleted:
            return Verdict()
        patcher = Patcher(request.object)
        request = request.of_kind(self._targets[request.attributes.target].kind)
        outcomes = []
        for bound in asked:
            seen = request.with_object(patcher.object)
            outcome = _ask(bound, seen, lambda bound, seen=seen: bound.mutate(seen, patcher))  # type: ignore[misc]
            if outcome is not None:
                outcomes.append(outcome)
        return Verdict(as_sent(outcomes, request.attributes), patcher.operations, patcher.object)

    def targets(self, *, mutating: bool, fails_closed: bool) -> tuple[Target, ...]:
        """Return what the policies of one sort look at, in a fixed order: what a webhook must be registered for."""
        index = self._mutating if mutating else self._validating
        operations: dict[tuple[Kind, str], set[str]] = {}
        for key, policies in index.all.items():
            if any(bound.fails_closed is fails_closed for bound in policies):
                target = self._targets[key]
                operations.setdefault((target.kind, target.subresource), set()).add(key[3])
        for planner in () if mutating else self._planners:
            if fails_closed in self._may_deny(planner):
                for target in planner.targets:
                    operations.setdefault((target.kind, target.subresource), set()).update(target.operations)
        merged = [Target(kind, sub, tuple(sorted(found))) for (kind, sub), found in operations.items()]
        return tuple(sorted(merged, key=lambda each: (each.kind.group, each.kind.plural, each.subresource)))

    def _may_deny(self, planner: Planner) -> Iterator[bool]:
        """Yield for all that can be found wrong with what a planner makes whether that fails closed."""
        for kind in self._planners.reach(planner):
            if self._planners.of(kind.group, kind.plural) is not None:
                yield True  # its type may refuse it
            for key in Target(kind).keys:
                yield from (bound.fails_closed for bound in self._asked(key))

    def _looked_up_for(self, planner: Planner, target: Target) -> frozenset[str]:
        keys = {key for kind in self._planners.reach(planner) for key in Target(kind).keys}
        own = frozenset({NOW, SCALE_PARENT} if target.subresource else {NOW})
        own |= {SERVED} if self._planners.has_optional(planner) else NOTHING_NEEDED
        return own.union(*(names for (key, _), names in self._needs.items() if key in keys))

    def _asked(self, key: TargetKey) -> tuple[BoundPolicy, ...]:
        return (*self._validating.all.get(key, ()), *self._mutating.all.get(key, ()))


def _ask(bound: BoundPolicy, request: Request, judge: Callable[[BoundPolicy], Outcome | None]) -> Outcome | None:
    """Return what one policy says, or None where it does not apply."""

    def asked() -> Outcome | None:
        return judge(bound) if bound.applies(request) else None

    return _guarded(bound.title, bound.actions, asked, fails_closed=bound.fails_closed)


def _guarded(
    title: str, actions: frozenset[str], judge: Callable[[], Outcome | None], *, fails_closed: bool = True
) -> Outcome | None:
    """Return what is said; whatever is raised becomes an outcome."""
    try:
        return judge()
    except WrongTypeError as error:
        malformed = Violation(error.path, error.found, f"it must be {error.wanted}", error.fix)
        return Outcome(title, actions, malformed=malformed)
    except Exception as error:  # noqa: BLE001  one of two in the project: a policy's failure is for its failurePolicy
        return Outcome(title, actions, error=error, fails_closed=fails_closed)
