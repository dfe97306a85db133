"""A policy in force, and how it is asked about one request."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice

from webhook.engine.exceptions import NOW, Exempt
from webhook.engine.fields import WrongTypeError
from webhook.engine.jsonpatch import Patcher
from webhook.engine.match import Match
from webhook.engine.policy import Before, Params, Policy, Violation
from webhook.engine.request import Request
from webhook.engine.verdict import MAX_VIOLATIONS, Outcome


@dataclass(frozen=True, slots=True)
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
    severity: str = ""  # the policy's own where nothing else is said
    category: str = ""

    @property
    def title(self) -> str:
        """What messages call it."""
        return self.name if self.namespace is None else f"{self.namespace}/{self.name}"

    @property
    def needs(self) -> frozenset[str]:
        """What must be looked up before it can judge, also by the parameters that exceptions bring."""
        needed = self.match.needs | self.policy.needed(self.params)
        for exempt in self.exempt:
            needed |= {NOW} | (frozenset() if exempt.params is None else self.policy.needed(exempt.params))
        return needed

    def applies(self, request: Request) -> bool:
        """Return whether it judges this request, which is of its namespace where it has one.

        NotLookedUpError where what would decide is not known.
        """
        return self.match.selects(request)

    def excepted(self, request: Request) -> "BoundPolicy | None":
        """Return the policy as exceptions leave it for this request: as it is, with other parameters, or None."""
        for exempt in self.exempt:
            if exempt.covers(request) and exempt.is_whole:
                if exempt.params is None:
                    return None
                return replace(self, params=exempt.params)
        return self

    def validate(self, request: Request) -> Outcome | None:
        """Return what it finds; None where an exception leaves nothing of it."""
        policy = self.excepted(request)
        if policy is None:
            return None
        violations = policy._left(request, policy._violations(request))
        found = next(violations, None)
        if found is None:
            return Outcome(self.title, self.actions)
        before = request.before() if self.tolerates_existing and "Deny" in self.actions else None
        old = Before(()) if before is None else Before(policy._before(before))
        news: list[Violation] = []
        tolerated: list[Violation] = []
        for each in chain((found,), violations):
            (tolerated if old.holds(each) else news).append(each)
            if len(news) > MAX_VIOLATIONS:
                break
        return Outcome(self.title, self.actions, tuple(news), tuple(tolerated))

    def mutate(self, request: Request, patcher: Patcher) -> Outcome | None:
        """Set what is to be set; None where an exception leaves nothing of it."""
        policy = self.excepted(request)
        if policy is None:
            return None
        assert policy.policy.mutate is not None
        patches = tuple(policy.policy.mutate(request, policy.params))
        trial = Patcher(patcher.object)
        for patch in patches:
            trial.set(patch)  # all of a policy's patches or none: what cannot be set raises here
        changed = [patcher.set(patch) for patch in patches]
        return Outcome(self.title, self.actions, patched=any(changed))

    def _violations(self, request: Request) -> Iterable[Violation]:
        assert self.policy.validate is not None
        return self.policy.validate(request, self.params)

    def _left(self, request: Request, violations: Iterable[Violation]) -> Iterator[Violation]:
        """Yield the violations that no exception for a container or an image takes out.

        One with parameters has its containers judged by those. The first that is about a container counts.
        """
        judged: list[tuple[Params, tuple[str, ...], tuple[str, ...]]] = []
        taken: tuple[str, ...] = ()
        for exempt in self.exempt:
            if not exempt.is_whole and exempt.covers(request):
                paths = tuple(exempt.paths(request))
                if exempt.params is not None:
                    judged.append((exempt.params, paths, taken))
                taken += paths
        yield from (each for each in violations if not each.is_below(taken)) if taken else violations
        for params, paths, before in judged:
            found = replace(self, params=params)._violations(request)
            yield from (each for each in found if each.is_below(paths) and not each.is_below(before))

    def _before(self, request: Request) -> list[Violation]:
        """Return what it would have found before; what was not what its kind says had nothing to tolerate.

        Of more than anybody lets stand, what is left out is not tolerated.
        """
        try:
            return list(islice(self._left(request, self._violations(request)), 10 * MAX_VIOLATIONS))
        except WrongTypeError:
            return []
