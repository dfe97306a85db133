"""What a policy is: a name, parameters, and a pure function that yields its results."""

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from pydantic import BaseModel, ConfigDict

from webhook.engine.kinds import CREATE_AND_UPDATE, SETS, Kind, Target, targets
from webhook.engine.request import Request
from webhook.engine.violation import Patch, Violation

RequestPredicate = Callable[[Request], bool]


class RuleError(Exception):
    """A rule that could not be evaluated; the text says which, and why."""


class Params(BaseModel):
    """The parameters of a policy; a policy without any uses this class itself."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


class Fix(NamedTuple):
    """What is known of the values that mend a policy's violations."""

    is_safe: bool
    """Whether an application runs on with such a value; others are written when asked for."""
    why: str


@dataclass(frozen=True)
class Policy:
    """A policy as its module declares it. What it is in force for is said by objects that name it.

    `kinds` is the name of a set of kinds ("pods", "scalable", "namespaced", "all", "exec",
    "scale"), or a tuple of sets and of kinds, by name or in full; `operations` are those judged on
    whole objects; `needs` names what must be looked up in the cluster before it can judge, or is a
    function that tells it from the parameters; `always` puts it in force, with its default
    parameters and its `action`, where no policy set names it: only for rules that belong to a kind
    of Gatewright's own; `fix` says how safe the values are that mend its violations.
    """

    name: str
    params: type[Params] = Params
    validate: Callable[[Request, Any], Iterable[Violation]] | None = None
    mutate: Callable[[Request, Any], Iterable[Patch]] | None = None
    # Keys and values for the audit log.
    annotate: Callable[[Request, Any], Iterable[tuple[str, str]]] | None = None
    kinds: str | tuple[str | Kind, ...] = "pods"
    operations: tuple[str, ...] = CREATE_AND_UPDATE
    category: str = "general"
    severity: str = "medium"
    needs: tuple[str, ...] | Callable[[Any], tuple[str, ...]] = ()
    always: bool = False
    action: str = "Deny"
    fix: Fix | None = None
    judges_owned: ClassVar[bool] = False
    """Whether an audit judges an owned object itself: the rules may be about other fields."""

    def needed(self, params: Params) -> frozenset[str]:
        """Return what must be looked up before it can judge by these parameters."""
        return frozenset(self.needs(params) if callable(self.needs) else self.needs)

    @property
    def targets(self) -> tuple[Target, ...]:
        """The resources and subresources it judges."""
        return targets(self.kinds, self.operations)

    @property
    def judges_containers(self) -> bool:
        """Whether its rules may be about single containers or images, for exceptions."""
        named = (self.kinds,) if isinstance(self.kinds, str) else self.kinds
        narrow = targets(each for each in named if each == "pods" or each not in SETS)
        return any(target.kind.pod_spec or target.kind.container for target in narrow)

    @property
    def documentation(self) -> str:
        """The docstring of its module: its page of documentation."""
        function = self.validate or self.mutate
        return (sys.modules[function.__module__].__doc__ or "").strip()
