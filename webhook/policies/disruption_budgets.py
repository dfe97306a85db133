"""A PodDisruptionBudget allows at least one eviction.

Why: a budget that never allows an eviction stops every drain of a node, and with it every upgrade of the cluster.

Judged: PodDisruptionBudgets by themselves; with `workloads: true` also against the replicas of the Deployments,
StatefulSets, ReplicaSets and ReplicationControllers whose pods they select, and these workloads against the budgets
that select them. The policy then needs to look up both. A workload with 0 replicas has nothing to evict; ReplicaSets
that a Deployment owns are ignored.

Allowed: `maxUnavailable: 1`; `maxUnavailable: 1%`, which is rounded up; `minAvailable: 1` for two replicas.
Denied:  `maxUnavailable: 0`; `minAvailable: 100%`; neither of the two; `minAvailable: 2` for two replicas.
Fix: allow at least one pod to be evicted.
See: https://kubernetes.io/docs/concepts/workloads/pods/disruptions/
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any

from pydantic import Field, ValidationError

from config.api.policy import LabelSelector
from webhook.engine import Fields, Params, Policy, Request, Violation, Violations
from webhook.engine.look_ups import read_each
from webhook.engine.match import compile_selector

BUDGETS, WORKLOADS = "disruption_budgets", "workloads"  # what is looked up: objects of the namespace, with their kind

SPEC = "spec"
PERCENT = re.compile(r"([0-9]{1,9})%")
NEVER = "a budget must allow the eviction of at least one pod"


class DisruptionBudgets(Params):
    """What budgets are held against."""

    workloads: bool = Field(False, description="whether budgets are compared with the replicas of workloads")


@dataclass(frozen=True, slots=True)
class Workload:
    """What counts of an object that runs replicas: how many it wants of itself."""

    title: str
    labels: dict[str, str]
    replicas: int


@dataclass(frozen=True, slots=True)
class Budget:
    """What counts of a budget: what it keeps, of which pods; `blocking` is the field that never allows an eviction."""

    title: str
    minimum: int | str | None
    blocking: str
    selector: dict[str, Any] | None

    def kept(self, workload: Workload) -> int:
        """Return how many pods of a workload it keeps; 0 where it does not select them."""
        least = _share(self.minimum)
        if least is None or not self._selects(workload.labels):
            return 0
        return least if type(least) is int else ceil(least * workload.replicas)

    def _selects(self, labels: dict[str, str]) -> bool:
        if self.selector is None:
            return False
        try:
            return compile_selector(LabelSelector.model_validate(self.selector))(labels)
        except ValidationError:  # an operator that there is not, which the API refuses
            return False


def validate(request: Request, params: DisruptionBudgets) -> Violations:
    """Yield a violation for a budget that allows no eviction, or for replicas too few for their budget."""
    if request.kind == "PodDisruptionBudget":
        budget = _budget(request)
        if budget.blocking == SPEC:
            yield Violation(SPEC, "neither minAvailable nor maxUnavailable", NEVER, "set maxUnavailable to 1 or more")
        elif budget.blocking:
            yield Violation(
                budget.blocking, str(request.integer_or_string(budget.blocking)), NEVER, "allow at least one"
            )
        elif params.workloads:
            yield from _too_strict(budget, read_each(request.lookup(WORKLOADS), _workload))
    elif params.workloads:
        yield from _too_few(_workload(request), read_each(request.lookup(BUDGETS), _budget))


def _too_strict(budget: Budget, workloads: Iterable[Workload]) -> Violations:
    for workload in workloads:
        kept = budget.kept(workload)
        if 0 < workload.replicas <= kept:
            yield Violation(
                "spec.minAvailable",
                found=f"{budget.minimum}, and {workload.title} runs {workload.replicas}",
                rule=NEVER,
                fix="lower it, or run more replicas",
                excess=kept - workload.replicas,
            )


def _too_few(workload: Workload, budgets: Iterable[Budget]) -> Violations:
    for budget in budgets:
        kept = budget.kept(workload)
        if 0 < workload.replicas <= kept and not budget.blocking:
            yield Violation(
                "spec.replicas",
                found=f"{workload.replicas}, and {budget.title} keeps {kept}",
                rule=NEVER,
                fix=f"run {kept + 1} or more replicas, or lower its minAvailable",
                excess=kept - workload.replicas,
            )


def _budget(object: Fields) -> Budget:
    minimum, maximum = (object.integer_or_string(f"{SPEC}.{field}") for field in ("minAvailable", "maxUnavailable"))
    least, blocking = _share(minimum), ""
    if minimum is None and maximum is None:
        blocking = SPEC
    elif _share(maximum) == 0:
        blocking = f"{SPEC}.maxUnavailable"
    elif type(least) is Fraction and least >= 1:
        blocking = f"{SPEC}.minAvailable"
    return Budget(_title(object), minimum, blocking, _selector(object))


def _share(value: int | str | None) -> int | Fraction | None:
    """Return a number of pods, or a share of them (`50%`); None for other text, which the API refuses."""
    percent = PERCENT.fullmatch(value) if type(value) is str else None
    return Fraction(int(percent[1]), 100) if percent else value if type(value) is int else None


def _selector(budget: Fields) -> dict[str, Any] | None:
    """Return the selector of a budget; None where there is none, which selects nothing."""
    if not budget.is_set("spec.selector"):
        return None
    selector = budget.fields("spec.selector")
    expressions = [
        {"key": each.string("key"), "operator": each.string("operator"), "values": each.strings("values")}
        for each in selector.each("matchExpressions")
    ]
    return {"matchLabels": selector.texts("matchLabels"), "matchExpressions": expressions}


def _workload(object: Fields) -> Workload:
    return Workload(_title(object), object.texts("spec.template.metadata.labels"), _replicas(object))


def _replicas(workload: Fields) -> int:
    """Return how many replicas a workload wants of itself: none where a Deployment scales it."""
    owners = workload.each("metadata.ownerReferences")
    if workload.string("kind") == "ReplicaSet" and any(owner.boolean("controller") for owner in owners):
        return 0
    replicas = workload.integer("spec.replicas")
    return 1 if replicas is None else replicas


def _title(object: Fields) -> str:
    return f"{object.string('kind')} {object.string('metadata.name')}"


def needs(params: DisruptionBudgets) -> tuple[str, ...]:
    """Name what must be looked up."""
    return (BUDGETS, WORKLOADS) if params.workloads else ()


POLICY = Policy(
    "disruption-budgets",
    DisruptionBudgets,
    validate=validate,
    kinds=("PodDisruptionBudget", "Deployment", "StatefulSet", "ReplicaSet", "ReplicationController"),
    category="capacity",
    needs=needs,
)
