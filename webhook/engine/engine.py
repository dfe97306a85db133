"""Judges requests: finds the policies in force by one look-up, and runs them in order."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from operator import methodcaller
from typing import NamedTuple

from webhook.engine.bound import BoundPolicy, outcomes_of
from webhook.engine.children import judge_children
from webhook.engine.conflicts import PolicyConflict, without_conflicts
from webhook.engine.exemptions import NOW
from webhook.engine.index import NO_VERSIONS, Index
from webhook.engine.jsonpatch import Patcher
from webhook.engine.kinds import Kind, Target, TargetKey, versions_sent
from webhook.engine.planners import NO_PLANNERS, SERVED, Planners
from webhook.engine.ranks import RankChanges, Ranked, Ranking
from webhook.engine.request import PARENT, Attributes, Request
from webhook.engine.verdict import Outcome, Verdict, as_sent, without_repeats
from webhook.engine.violation import Violation

MAX_LIGHT_RULES = 200  # rules of tenants: about 20 ms of judging


class Requirements(NamedTuple):
    """Requirements for judging a request: the names of look-ups, and whether it may be slow."""

    needs: frozenset[str]
    takes_long: bool


class Engine:
    """An immutable set of policies in force.

    A change of policies builds a new engine. The planned children of an object are judged with it.
    """

    def __init__(
        self,
        policies: Iterable[BoundPolicy],
        planners: Planners = NO_PLANNERS,
        *,
        counts_exceptions: bool = False,
        converted: bool = False,
        before: "Engine | None" = None,
    ) -> None:
        """Index the policies, without those that conflict with earlier ones: see `conflicts`.

        With `counts_exceptions`, outcomes name the exceptions that cover violations. `converted` is
        whether the API server sends every object in the versions that policies name. What an engine
        `before` has indexed is used again.
        """
        self.policies: tuple[BoundPolicy, ...]
        self.conflicts: tuple[PolicyConflict, ...]
        self._written: Ranking  # of all policies, and of those in force
        self._ranking: Ranking
        self.planners = planners
        self._counts_exceptions = counts_exceptions
        self._converted = converted
        self._rank(tuple(policies), before)
        changes = self._ranking.changes
        if before is not None and changes is not None and self._sent == before._sent:
            self._change_indexes(before, changes)
        else:
            everything = list(self._ranking.ranked)
            self._validating = Index(_of_verb(everything, mutating=False), self._sent)
            self._mutating = Index(_of_verb(everything, mutating=True), self._sent)
            self._tenants_rules = _count_rules(everything)
        self._needed_by: dict[TargetKey, frozenset[str]] = {}  # of the targets asked for

    def _rank(self, policies: tuple[BoundPolicy, ...], before: "Engine | None") -> None:
        """Find the conflicts of policies, if others mutate, and rank the policies without them."""
        written = Ranking(policies, None if before is None else before._written)
        self._written = written
        if before is not None and written.changes is not None and not _mutate(written.changes):
            self.conflicts = before.conflicts
        else:
            mutating = [each for each in policies if each.policy.mutate is not None]
            self.conflicts = without_conflicts(mutating)[1]
        if not self.conflicts and (before is None or not before.conflicts):
            self.policies, self._ranking = policies, written
            return
        conflicting = {id(each.policy) for each in self.conflicts}
        self.policies = tuple(each for each in policies if id(each) not in conflicting)
        self._ranking = Ranking(self.policies, None if before is None else before._ranking)

    def _change_indexes(self, before: "Engine", changes: RankChanges) -> None:
        """Derive the indexes from those of an engine with other policies."""
        removed, added = changes
        self._validating, self._mutating = (
            index.with_changes(
                _of_verb(removed, mutating=is_mutating), _of_verb(added, mutating=is_mutating)
            )
            for index, is_mutating in ((before._validating, False), (before._mutating, True))
        )
        self._tenants_rules = before._tenants_rules.copy()
        self._tenants_rules.subtract(_count_rules(removed))
        self._tenants_rules.update(_count_rules(added))

    def with_policies(self, policies: Iterable[BoundPolicy]) -> "Engine":
        """Return an engine with other policies, and the same planners and options.

        Its time is that of what changed; what concerns the other policies is shared.
        """
        return Engine(
            policies,
            self.planners,
            counts_exceptions=self._counts_exceptions,
            converted=self._converted,
            before=self,
        )

    def counting_exceptions(self, before: "Engine | None" = None) -> "Engine":
        """Return an engine for an audit: its outcomes name the exceptions that cover violations.

        What the engine of an audit `before` has indexed is used again.
        """
        return Engine(self.policies, self.planners, counts_exceptions=True, before=before)

    def changes_from(self, before: "Engine") -> tuple[Sequence[BoundPolicy], Sequence[BoundPolicy]]:
        """Return policies that the engine before had and others that this one has.

        These are the policies that changed, if this engine was built from that one with most of
        its policies; else all.
        """
        changes = self._ranking.changes
        if changes is None:
            return before.policies, self.policies
        return [bound for _, bound in changes.removed], [bound for _, bound in changes.added]

    @cached_property
    def versions_sent(self) -> Mapping[Kind, tuple[str, ...]]:
        """The versions in which the API server sends objects of each kind that policies name."""
        distinct = self._ranking.targets
        return versions_sent(target.kind for targets in distinct for target in targets)

    @property
    def _sent(self) -> Mapping[Kind, Iterable[str]]:
        return self.versions_sent if self._converted else NO_VERSIONS

    @cached_property
    def for_owned(self) -> "Engine":
        """The engine for objects whose owner is judged: only with policies about owned objects."""
        owned = [each for each in self.policies if each.policy.judges_owned]
        return Engine(owned, self.planners, counts_exceptions=self._counts_exceptions)

    def requirements(
        self, attributes: Attributes, *, mutating: bool = False
    ) -> Requirements | None:
        """Return the requirements for judging such a request, or for mutating its object.

        None if no policy matches: then its objects need not be decoded. Children matter only for
        validation. Whether judging may be slow depends on the number of tenants' rules that will
        run, however small the object is; with children, on all rules of the namespace.
        """
        policies = (self._mutating if mutating else self._validating).policies_for(attributes)
        if not mutating and self.planners.of_request(attributes) is not None:
            needs = policies.needs | self._needed_by_children(attributes.target)
            return Requirements(needs, self._tenants_rules[attributes.namespace] > MAX_LIGHT_RULES)
        if policies.kind is None:
            return None
        return Requirements(policies.needs, policies.rules > MAX_LIGHT_RULES)

    def needs(self, attributes: Attributes) -> frozenset[str]:
        """Return the look-ups for validating and mutating such a request."""
        both = (self.requirements(attributes, mutating=each) for each in (False, True))
        return frozenset[str]().union(*(each.needs for each in both if each is not None))

    def validate(self, request: Request) -> Verdict:
        """Run every validating policy that applies, and return all violations.

        Finalizers of an object that is being deleted can always be removed; every other change is
        judged, since many objects keep working until their finalizers are removed. Its children are
        not judged, since none are created.
        """
        if request.is_being_deleted and request.only_removes_finalizers:
            return Verdict()
        attributes = request.attributes
        outcomes: Iterable[Outcome] = ()
        policies = self._validating.policies_for(attributes)
        if policies.kind is not None:
            request = request.of_kind(policies.kind)
            method = "validate_and_count" if self._counts_exceptions else "validate"
            outcomes = outcomes_of(policies.ranked.select(request), methodcaller(method, request))
        if attributes.username == self.planners.controller_user.username:
            outcomes = [each.map_violations(self._with_controller_fix) for each in outcomes]
        planner = self.planners.of_request(attributes)
        if planner is not None and not request.is_being_deleted:
            outcomes = without_repeats(outcomes, judge_children(self, planner, request))
        return Verdict(as_sent(outcomes, attributes))

    def _with_controller_fix(self, violation: Violation) -> Violation:
        """Return a violation with the fix for an image that the controller chose."""
        if violation.controller_fix and self.planners.is_chosen(violation.value):
            return replace(violation, fix=violation.controller_fix)
        return violation

    def mutate(self, request: Request) -> Verdict:
        """Run each mutating policy that applies, in order, on the result of the previous one.

        The request's object is patched in place. A request without an object (DELETE), or for one
        that is being deleted, is never patched, and neither is a mirror pod.
        """
        attributes = request.attributes
        policies = self._mutating.policies_for(attributes)
        if policies.kind is None or request.object is None or request.is_being_deleted:
            return Verdict()
        if request.is_mirror_pod:
            return Verdict()
        request = request.of_kind(policies.kind)
        patcher = Patcher(request)
        outcomes = outcomes_of(policies.ranked.all(), methodcaller("mutate", request, patcher))
        return Verdict(as_sent(outcomes, attributes), patcher.operations, request.object)

    @property
    def judged_kinds(self) -> frozenset[Kind]:
        """The kinds whose new objects are judged, directly or through their planned children.

        A planned child can be denied by a policy, or by its own type if it has a planner.
        """
        targets = self._validating.targets | self._mutating.targets
        new = (
            target for key, target in self._validating.targets.items() if key[2:] == ("", "CREATE")
        )
        judged = {target.kind for target in new}
        for planner in self.planners:
            for kind in self.planners.reach(planner):
                if self.planners.of(kind) is not None or targets.keys() & Target(kind).keys:
                    judged.add(planner.kind)
        return frozenset(judged)

    def _needed_by_children(self, target: TargetKey) -> frozenset[str]:
        """Return the look-ups for judging the children of an object, or of its /scale."""
        if (cached := self._needed_by.get(target)) is not None:
            return cached
        planner = self.planners.by_target[target]
        kinds = self.planners.reach(planner)
        needed = {NOW, PARENT} if target[2] else {NOW}
        for kind_planner in (planner, *map(self.planners.of, kinds)):
            if kind_planner is not None and kind_planner.optional:
                needed.add(SERVED)
        for key in (key for kind in kinds for key in Target(kind).keys):
            needed |= self._validating.needs_of(key) | self._mutating.needs_of(key)
        self._needed_by[target] = frozenset(needed)
        return self._needed_by[target]


def _of_verb(ranked: Iterable[Ranked], *, mutating: bool) -> list[Ranked]:
    """Return the policies that mutate, or those that validate."""
    return [
        (place, bound)
        for place, bound in ranked
        if (bound.policy.mutate if mutating else bound.policy.validate) is not None
    ]


def _count_rules(ranked: Iterable[Ranked]) -> Counter[str]:
    """Return the number of rules in tenants' policies, by namespace."""
    rules = Counter[str]()
    for _, bound in ranked:
        if bound.namespace is not None:
            rules[bound.namespace] += bound.rules
    return rules


def _mutate(changes: RankChanges) -> bool:
    changed = (*changes.removed, *changes.added)
    return any(bound.policy.mutate is not None for _, bound in changed)
