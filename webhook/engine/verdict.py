"""What the engine answers: one outcome for each policy that applied, never an HTTP word."""

from dataclasses import dataclass, field
from typing import Any

from webhook.engine.policy import Violation


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one policy object said about one request.

    At most one of `violations`, `malformed` and `error` is filled: the object breaks the rule, the object is not what
    its kind says, or the policy itself failed (then `fails_closed` decides). `tolerated` are violations that an update
    found there and did not make worse.
    """

    policy: str
    actions: frozenset[str]
    violations: tuple[Violation, ...] = ()
    tolerated: tuple[Violation, ...] = ()
    malformed: Violation | None = None
    error: BaseException | None = None
    fails_closed: bool = True
    patched: bool = False

    @property
    def denies(self) -> bool:
        """Whether this outcome alone is a denial."""
        if self.malformed is not None:
            return True
        if self.error is not None:
            return self.fails_closed
        return bool(self.violations) and "Deny" in self.actions


@dataclass(frozen=True, slots=True)
class Verdict:
    """All outcomes of one request, in the order of the policy set; after a mutation, the patch and what it makes.

    `operations` is a JSONPatch (RFC 6902), empty where nothing is to be changed; `object` is the object as patched.
    A verdict with no outcome says that no policy applied.
    """

    outcomes: tuple[Outcome, ...] = ()
    operations: list[dict[str, Any]] = field(default_factory=list)
    object: dict[str, Any] | None = None

    @property
    def allowed(self) -> bool:
        """Whether nothing denies."""
        return not any(outcome.denies for outcome in self.outcomes)
