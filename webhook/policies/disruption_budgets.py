"""A PodDisruptionBudget allows at least one eviction.

Why: a budget that never allows an eviction stops every drain of a node, and with it every upgrade
of the cluster.

Judged: PodDisruptionBudgets alone. With `workloads: true` also Deployments, StatefulSets,
ReplicaSets and ReplicationControllers, each with the budgets that select its pods; and budgets with
the workloads that they select. Both are looked up. The same holds for their /scale subresource
(`kubectl scale`, autoscalers), whose workload is looked up too. The replicas of all workloads that
one budget selects count together. A workload with 0 replicas has nothing to evict; replicas that
an autoscaler decides (HorizontalPodAutoscaler, KEDA's ScaledObject) count as its minimum.
ReplicaSets that a Deployment owns are ignored.

Allowed: `maxUnavailable: 1`; `maxUnavailable: 1%`, which is rounded up; `minAvailable: 1` for two
replicas.
Denied:  `maxUnavailable: 0`; `minAvailable: 100%`; neither of the two; `minAvailable: 2` for two
replicas.
Fix: allow at least one pod to be evicted.
See: https://kubernetes.io/docs/concepts/workloads/pods/disruptions/
"""

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import NamedTuple

from pydantic import Field

from webhook.engine import PARENT, Fields, Params, Policy, Request, Violation, Violations
from webhook.engine.look_ups import read_each
from webhook.engine.match import meets
from webhook.policies._autoscalers import AUTOSCALERS, WorkloadName, minimums, with_minimum
from webhook.policies._records import LabelRequirement, is_scaled_by_deployment, requirements

# Look-ups: objects of the namespace, with their kind.
BUDGETS, WORKLOADS = ("disruption_budgets", "workloads")

MINIMUM, MAXIMUM = "spec.minAvailable", "spec.maxUnavailable"
PERCENT = re.compile(r"0*([0-9]{1,9})%")
NEVER = "a budget must allow the eviction of at least one pod"
SCALED = ("Deployment", "StatefulSet", "ReplicaSet", "ReplicationController", "scale")


class DisruptionBudgets(Params):
    """Whether budgets are compared with workloads."""

    workloads: bool = Field(
        False, description="whether budgets are compared with the replicas of workloads"
    )


class BudgetedWorkload(NamedTuple):
    """A workload: its pods' labels, and how many replicas it sets itself."""

    title: str
    labels: dict[str, str]
    replicas: int


class Budget(NamedTuple):
    """A budget, with the number or percentage of its pods that must stay."""

    title: str
    minimum: int | str | None
    requirements: list[LabelRequirement]

    def selects(self, workload: BudgetedWorkload) -> bool:
        """Return whether it selects the pods of a workload."""
        return all(meets(workload.labels, *each) for each in self.requirements)

    def kept_pods(self, replicas: int) -> int:
        """Return the number of pods that must stay; 0 if one can be evicted."""
        kept = _pods(self.minimum, replicas) or 0
        return kept if kept >= replicas > 0 else 0


def validate(request: Request, params: DisruptionBudgets) -> Violations:
    """Yield a violation for a budget that allows no eviction, or for too few replicas."""
    if request.kind == "PodDisruptionBudget":
        yield from _judge_budget(request, params)
    elif params.workloads:
        yield from _judge_workload(request)


def _judge_budget(request: Request, params: DisruptionBudgets) -> Violations:
    minimum, maximum = request.integer_or_string(MINIMUM), request.integer_or_string(MAXIMUM)
    if minimum is None and maximum is None:
        found = "neither minAvailable nor maxUnavailable"
        yield Violation("spec", found, NEVER, "set maxUnavailable to 1 or more")
    elif _pods(maximum, 100) == 0:
        yield Violation(MAXIMUM, str(maximum), NEVER, "allow at least one")
    elif _is_all(minimum):
        yield Violation(MINIMUM, str(minimum), NEVER, "allow at least one")
    elif params.workloads:
        budget = _budget(request)
        selected = [each for each in _workloads(request) if budget.selects(each) and each.replicas]
        replicas = sum(each.replicas for each in selected)
        if kept := budget.kept_pods(replicas):
            titles = " and ".join(each.title for each in selected)
            found = f"{minimum}, and {titles} {'runs' if len(selected) == 1 else 'run'} {replicas}"
            fix = "lower it, or run more replicas"
            yield Violation(MINIMUM, found, NEVER, fix, kept - replicas, id=f"{NEVER}: {titles}")


def _judge_workload(request: Request) -> Violations:
    """Yield a violation for each budget that allows no eviction of its workloads' pods."""
    scaled = minimums(request)
    workload = (
        _workload(scaled, request) if request.kind != "Scale" else _read_scaled(scaled, request)
    )
    budgets = read_each(request.lookup(BUDGETS), _budget)
    keeping = [
        budget
        for budget in budgets
        if budget.selects(workload) and budget.kept_pods(workload.replicas)
    ]
    workloads = _workloads(request) if keeping else ()
    others = [each for each in workloads if each.title != workload.title]
    for budget in keeping:
        beside = sum(each.replicas for each in others if budget.selects(each))
        if kept := budget.kept_pods(workload.replicas + beside):
            found = f"{workload.replicas}, and {budget.title} keeps {kept}"
            fix = f"run {kept - beside + 1} or more replicas, or lower its minAvailable"
            excess, id = kept - workload.replicas - beside, f"{NEVER}: {budget.title}"
            yield Violation("spec.replicas", found, NEVER, fix, excess, id=id)


def _workloads(request: Request) -> Iterator[BudgetedWorkload]:
    """Return the workloads of the namespace."""
    return read_each(request.lookup(WORKLOADS), partial(_workload, minimums(request)))


def _budget(object: Fields) -> Budget:
    """Read a budget; it keeps no pods if it has no selector, or if it is denied anyway."""
    minimum, selector = object.integer_or_string(MINIMUM), object.fields("spec.selector")
    keeps_none = _is_all(minimum) or not object.is_set("spec.selector")
    return Budget(_title(object), None if keeps_none else minimum, requirements(selector))


def _pods(value: int | str | None, replicas: int) -> int | None:
    """Return `2` or `50%` of `replicas` as a number, rounded up; None for other text."""
    if not isinstance(value, str):
        return value
    percent = PERCENT.fullmatch(value)
    return -(-int(percent[1]) * replicas // 100) if percent else None


def _is_all(value: int | str | None) -> bool:
    """Return whether it is 100 % of the pods, or more."""
    return isinstance(value, str) and (_pods(value, 100) or 0) >= 100


def _workload(scaled: Mapping[WorkloadName, int], object: Fields) -> BudgetedWorkload:
    """Read a workload; one that a Deployment scales counts with 0 replicas."""
    replicas = object.integer("spec.replicas")
    desired = 0 if is_scaled_by_deployment(object) else 1 if replicas is None else replicas
    desired = with_minimum(desired, scaled.get(_name(object)))
    return BudgetedWorkload(_title(object), object.texts("spec.template.metadata.labels"), desired)


def _read_scaled(scaled: Mapping[WorkloadName, int], request: Request) -> BudgetedWorkload:
    """Read the workload of a /scale, with the new replicas; the API omits 0."""
    parent = Fields(request.lookup(PARENT))
    replicas = 0 if is_scaled_by_deployment(parent) else request.integer("spec.replicas") or 0
    replicas = with_minimum(replicas, scaled.get(_name(parent)))
    return _workload(scaled, parent)._replace(replicas=replicas)


def _name(object: Fields) -> WorkloadName:
    return object.string("kind"), object.string("metadata.name")


def _title(object: Fields) -> str:
    return f"{object.string('kind')} {object.string('metadata.name')}"


POLICY = Policy(
    "disruption-budgets",
    DisruptionBudgets,
    validate=validate,
    kinds=("PodDisruptionBudget", *SCALED),
    category="capacity",
    needs=lambda params: (BUDGETS, WORKLOADS, AUTOSCALERS, PARENT) if params.workloads else (),
)
