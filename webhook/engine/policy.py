"""What a policy is: a name, its parameters, and a pure function that finds violations or makes patches."""

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pydantic import BaseModel, ConfigDict

from webhook.engine.kinds import CREATE_AND_UPDATE, Kind, Target, targets
from webhook.engine.request import Request

Step = str | int


class Params(BaseModel):
    """The parameters of a policy; a policy without any uses this class itself."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


@dataclass(frozen=True, slots=True)
class Violation:
    """One finding: the field, what was found there, the rule, and what to do about it.

    `of` names the object where that is not the one that is judged: what would be made of it, as `Deployment/shop`.
    Where a field counts by what stands beside it, `reach` is all that it gives, which an update may only make less.
    `controller_fix` is what to do instead about an image that nobody wrote, since the controller chose it.
    """

    path: str
    found: str | int
    rule: str
    fix: str
    excess: int | Fraction | None = None  # how far beyond the limit, so that an update may come nearer to it
    of: str = ""
    reach: frozenset[str] = frozenset()
    controller_fix: str = ""

    @property
    def where(self) -> str:
        """The field, and of which object where that has to be said."""
        return f"{self.of}: {self.path}" if self.of else self.path

    def is_below(self, paths: tuple[str, ...]) -> bool:
        """Whether it is about what stands at one of some paths, each with a dot at its end, or below."""
        return f"{self.path}.".startswith(paths)

    @property
    def message(self) -> str:
        """The finding as one line."""
        fix = f"{self.fix[:1].upper()}{self.fix[1:]}"
        return f"{self.where}: {self.found}; {self.rule}. {fix}."


class Before:
    """What was found before an update, to hold what is found now against."""

    def __init__(self, violations: Iterable[Violation]) -> None:
        """Index it: there may be as many findings as fit into an object."""
        self._found: dict[tuple[str, str, str | int], set[frozenset[str]]] = {}
        self._excess: dict[tuple[str, str], int | Fraction] = {}
        for each in violations:
            self._found.setdefault((each.path, each.rule, each.found), set()).add(each.reach)
            if each.excess is not None:
                key = each.path, each.rule
                self._excess[key] = max(each.excess, self._excess.get(key, each.excess))

    def holds(self, violation: Violation) -> bool:
        """Whether this was found already: the same field and rule, and the value equal, or no further beyond."""
        most = self._excess.get((violation.path, violation.rule))
        if violation.excess is not None and most is not None:
            return violation.excess <= most
        there = self._found.get((violation.path, violation.rule, violation.found), ())
        return any(violation.reach <= reach for reach in there)


@dataclass(frozen=True, slots=True)
class Patch:
    """One field to be set, its parents made where they are missing. What is already set is kept, unless `overwrite`."""

    path: tuple[Step, ...]
    value: Any
    overwrite: bool = False


@dataclass(frozen=True)
class Policy:
    """A policy as its module declares it. What it is in force for is said by objects that name it.

    `kinds` is the name of a set of kinds ("pods", "scalable", "namespaced", "all", "exec"), or a tuple of sets and of
    kinds, by name or in full; `operations` are those judged on whole objects; `needs` names what must be looked up in
    the cluster before it can judge, or is a function that tells it from the parameters; `always` puts it in force, with
    its default parameters, where no policy set names it: only for rules that belong to a kind of our own.
    """

    name: str
    params: type[Params] = Params
    validate: Callable[[Request, Any], Iterator[Violation]] | None = None
    mutate: Callable[[Request, Any], Iterator[Patch]] | None = None
    kinds: str | tuple[str | Kind, ...] = "pods"
    operations: tuple[str, ...] = CREATE_AND_UPDATE
    category: str = "general"
    severity: str = "medium"
    needs: tuple[str, ...] | Callable[[Any], tuple[str, ...]] = ()
    always: bool = False

    def needed(self, params: Params) -> frozenset[str]:
        """Return what must be looked up before it can judge by these parameters."""
        return frozenset(self.needs(params) if callable(self.needs) else self.needs)

    @property
    def targets(self) -> tuple[Target, ...]:
        """The resources and subresources it judges."""
        return targets(self.kinds, self.operations)

    @property
    def documentation(self) -> str:
        """The docstring of its module: its page of documentation."""
        function = self.validate or self.mutate
        return (sys.modules[function.__module__].__doc__ or "").strip()
