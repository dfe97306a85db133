"""A policy: a name, parameters, and a pure function that yields violations or patches."""

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from typing import Any, ClassVar, NamedTuple

from pydantic import BaseModel, ConfigDict

from webhook.engine.kinds import CREATE_AND_UPDATE, SETS, Kind, Target, targets
from webhook.engine.request import Request
from webhook.engine.violation import Patch, Violation

RequestPredicate = Callable[[Request], bool]


class RuleError(Exception):
    """A rule that could not be evaluated; the message names the rule and the reason."""


class SkippedMutationError(RuleError):
    """One of several mutations failed, and was skipped; the patches of the others count."""


class Params(BaseModel):
    """The parameters of a policy; a policy without any uses this class itself."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


class Fix(NamedTuple):
    """Whether the values that fix a policy's violations are safe, and why."""

    is_safe: bool
    """Whether such a value cannot stop an application; unsafe values are written only on
    request."""
    why: str


@dataclass(frozen=True)
class Policy:
    """A policy as its module declares it. Policy objects put it in force.

    `kinds` is the name of a set of kinds ("pods", "scalable", "namespaced", "all", "exec",
    "scale"), or a tuple of sets and of kinds, by name or in full; `operations` are those judged on
    whole objects; `needs` has the names of look-ups, or is a function that returns them from the
    parameters; `always` puts it in force, with its default parameters and its `action`, if no
    policy set names it (only for rules that belong to one of Gatewright's own kinds); `fix` tells
    whether its fixes are safe.
    """

    name: str
    params: type[Params] = Params
    validate: Callable[[Request, Any], Iterable[Violation]] | None = None
    mutate: Callable[[Request, Any], Iterable[Patch]] | None = None
    # Yields keys and values for the audit log.
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
    """Whether an audit judges owned objects too, since the rules may be about other fields."""

    def needed_look_ups(self, params: Params) -> frozenset[str]:
        """Return the look-ups that it needs with these parameters."""
        return frozenset(self.needs(params) if callable(self.needs) else self.needs)

    @property
    def targets(self) -> tuple[Target, ...]:
        """The resources and subresources that it judges."""
        return targets(self.kinds, self.operations)

    @property
    def judges_containers(self) -> bool:
        """Whether it can report single containers or images, which exceptions can name."""
        named = (self.kinds,) if isinstance(self.kinds, str) else self.kinds
        narrow = targets(each for each in named if each == "pods" or each not in SETS)
        return any(target.kind.has_pods or target.kind.container for target in narrow)

    @cached_property
    def documentation(self) -> str:
        """The docstring of its module, which is its documentation page."""
        function = self.validate or self.mutate
        return (sys.modules[function.__module__].__doc__ or "").strip()

    @cached_property
    def summary(self) -> str:
        """The first line of its documentation."""
        return self.documentation.partition("\n")[0]


def judge_each_pod(policy: Policy) -> Policy:
    """Return a policy that judges each pod of an object with several pod templates."""
    validate, mutate = policy.validate, policy.mutate
    return replace(
        policy,
        validate=None if validate is None else _in_each_pod(validate),
        mutate=None if mutate is None else _in_each_pod(mutate),
    )


def _in_each_pod(function: Callable[[Request, Any], Iterable[Any]]) -> Any:
    """Return a function that yields the distinct results for all pods."""

    @wraps(function)
    def results(request: Request, params: Any) -> Iterator[Any]:
        seen = set[Any]()
        for pod_request in request.each_pod() or (request,):
            for result in function(pod_request, params):
                # Of a field outside the pods, each pod has the same violation.
                if not isinstance(result, Violation) or result.key not in seen:
                    yield result
                if isinstance(result, Violation):
                    seen.add(result.key)

    return results
