"""The engine's answer: one outcome for each policy that applied, independent of HTTP."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from config.converters import as_written
from webhook.engine.request import Attributes, NotLookedUpError
from webhook.engine.violation import Violation

NAME = "metadata.name"
MAX_VIOLATIONS = 5000  # reported violations; one object can cause a hundred thousand


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one policy object for one request.

    At most one of `violations`, `malformed` and `error` is set: the object breaks the rule, a field
    has a wrong type, or the policy failed (then `fails_closed` decides). A policy stops after
    MAX_VIOLATIONS + 1 violations. `tolerated` are existing violations that an update did not make
    worse.
    """

    policy: str
    actions: frozenset[str]
    violations: tuple[Violation, ...] = ()
    tolerated: tuple[Violation, ...] = ()
    malformed: Violation | None = None
    error: BaseException | None = None
    fails_closed: bool = True
    patched: bool = False
    # Audit annotations from the policy's `annotate`.
    annotations: tuple[tuple[str, str], ...] = ()
    # Titles of exceptions, one for each covered violation, if the engine counts them.
    covered: tuple[str, ...] = ()
    reported: tuple[Violation, ...] = field(init=False, compare=False, repr=False)
    """The violations, or the field with the wrong type."""

    def __post_init__(self) -> None:
        reported = self.violations if self.malformed is None else (self.malformed,)
        object.__setattr__(self, "reported", reported)

    @property
    def denies(self) -> bool:
        """Whether this outcome alone is a denial."""
        if self.error is not None:
            return self.fails_closed
        return "Deny" in self.actions and (self.malformed is not None or bool(self.violations))

    @property
    def lacks(self) -> str:
        """The name of the look-up without which the policy could not decide; "" where it could."""
        return str(self.error) if isinstance(self.error, NotLookedUpError) else ""

    def map_violations(self, mapping: Callable[[Violation], Violation]) -> "Outcome":
        """Return a copy with each violation mapped; the outcome itself if there is none."""
        if not (self.violations or self.tolerated or self.malformed):
            return self
        return replace(
            self,
            violations=tuple(map(mapping, self.violations)),
            tolerated=tuple(map(mapping, self.tolerated)),
            malformed=None if self.malformed is None else mapping(self.malformed),
        )


@dataclass(slots=True)
class Verdict:
    """All outcomes of one request, in the order of the policy set.

    After a mutation, also the patch and the patched object. `operations` is a JSONPatch (RFC 6902),
    empty if nothing changes. Without outcomes, no policy applied. `allowed` is whether no outcome
    denies; a plain verdict allows, patches nothing and reports nothing. `denials` are the outcomes
    that deny.
    """

    outcomes: tuple[Outcome, ...] = ()
    operations: list[dict[str, Any]] = field(default_factory=list)
    object: dict[str, Any] | None = None
    denials: tuple[Outcome, ...] = field(init=False, default=())
    allowed: bool = field(init=False)
    is_plain: bool = field(init=False)

    def __post_init__(self) -> None:
        """Find what denies once."""
        self.is_plain = not self.operations
        for outcome in self.outcomes:
            if outcome.annotations:
                self.is_plain = False
            if (
                outcome.violations
                or outcome.tolerated
                or outcome.malformed is not None
                or outcome.error is not None
            ):
                self.is_plain = False
                if outcome.denies:
                    self.denials += (outcome,)
        self.allowed = not self.denials


def lacked_look_ups(outcomes: Iterable[Outcome]) -> frozenset[str]:
    """Return the names of the look-ups that policies lacked."""
    return frozenset(each.lacks for each in outcomes if each.lacks)


def without_repeats(outcomes: Iterable[Outcome], more: Iterable[Outcome]) -> tuple[Outcome, ...]:
    """Return all outcomes, those of `more` (about children) without duplicates.

    A violation is a duplicate if an earlier outcome of the same policy reports it. If the parent's
    name is denied, violations of names derived from it are left out, since these will change.
    """
    distinct = list(outcomes)
    is_renamed = any(
        violation.where == NAME
        for outcome in distinct
        if outcome.denies
        for violation in outcome.violations
    )
    denied = {_key(outcome, each) for outcome in distinct for each in outcome.violations}
    tolerated = denied | {_key(outcome, each) for outcome in distinct for each in outcome.tolerated}
    others = {
        key for outcome in distinct for key in (_describe_failure(outcome), (outcome.policy, ""))
    }
    for outcome in more:
        new = tuple(each for each in outcome.violations if _key(outcome, each) not in denied)
        new = tuple(each for each in new if not (is_renamed and each.where == NAME))
        kept = tuple(each for each in outcome.tolerated if _key(outcome, each) not in tolerated)
        if new or kept or outcome.covered or _describe_failure(outcome) not in others:
            distinct.append(replace(outcome, violations=new, tolerated=kept))
        others |= {_describe_failure(outcome), (outcome.policy, "")}
        denied |= {_key(outcome, each) for each in new}
        tolerated |= {_key(outcome, each) for each in (*new, *kept)}
    return tuple(distinct)


def _key(outcome: Outcome, violation: Violation) -> tuple[str, str, str]:
    return outcome.policy, violation.where, violation.rule


def _describe_failure(outcome: Outcome) -> tuple[str, str]:
    """Return the policy, and its malformed field or error."""
    failed = "" if outcome.error is None else f"{type(outcome.error).__name__}: {outcome.error}"
    return outcome.policy, outcome.malformed.message if outcome.malformed is not None else failed


def as_sent(outcomes: Iterable[Outcome], attributes: Attributes) -> tuple[Outcome, ...]:
    """Return the outcomes with fields named as in the version that was sent."""
    if attributes.requested is None or attributes.requested[1] == attributes.version:
        return tuple(outcomes)
    group, version, kind = attributes.requested

    def mapping(violation: Violation) -> Violation:
        if violation.of:
            return violation
        return replace(
            violation, field=as_written(violation.path, group, version, kind), holder=None
        )

    return tuple(outcome.map_violations(mapping) for outcome in outcomes)
