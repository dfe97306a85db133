"""A PodDisruptionBudget leaves room for a drain.

Why: a budget that never allows an eviction stops every drain of a node, and with it every upgrade of the cluster.

Judged: PodDisruptionBudgets by themselves; with `workloads: true` also against the replicas of the Deployments,
StatefulSets, ReplicaSets and ReplicationControllers whose pods they select, and those against their budgets, wherever
either of them is applied. The policy can then judge only where both can be looked up. A workload without replicas has
nothing to evict; of ReplicaSets only those count that nobody else scales.

Allowed: `maxUnavailable: 1`; `maxUnavailable: 1%`, which is rounded up; `minAvailable: 1` for two replicas.
Denied:  `maxUnavailable: 0`; `minAvailable: 100%`; `minAvailable: 2` for two replicas.
Fix: leave at least one pod that may be evicted.
See: https://kubernetes.io/docs/concepts/workloads/pods/disruptions/
"""

import re
from collections.abc import Iterable, Iterator
from fractions import Fraction
from math import ceil

from pydantic import Field, ValidationError

from config.api.policy import LabelSelector
from webhook.engine import Fields, Params, Policy, Request, Violation
from webhook.engine.match import compile_selector

BUDGETS, WORKLOADS = "disruption_budgets", "workloads"  # what is looked up: objects of the namespace, with their kind

PERCENT = re.compile(r"([0-9]{1,9})%")
NEVER = "a budget must allow the eviction of at least one pod"


class DisruptionBudgets(Params):
    """What budgets are held against."""

    workloads: bool = Field(False, description="whether budgets and the replicas of workloads are compared")


def validate(request: Request, params: DisruptionBudgets) -> Iterator[Violation]:
    """Yield a violation for a budget that allows no eviction, or for replicas too few for their budget."""
    if request.kind == "PodDisruptionBudget":
        path = _never(request)
        if path is not None:
            found = str(request.integer_or_string(path))
            yield Violation(path, found, NEVER, "allow at least one")
        elif params.workloads:
            yield from _too_strict(request, map(Fields, request.lookup(WORKLOADS)))
    elif params.workloads:
        yield from _too_few(request, map(Fields, request.lookup(BUDGETS)))


def _share(budget: Fields, path: str) -> int | Fraction | None:
    """Return a number of pods, or a share of them (`50%`); None for other text, which the API refuses."""
    value = budget.integer_or_string(path)
    percent = PERCENT.fullmatch(value) if type(value) is str else None
    return Fraction(int(percent[1]), 100) if percent else value if type(value) is int else None


def _never(budget: Fields) -> str | None:
    """Return the field by which a budget never allows an eviction, whatever it selects."""
    if _share(budget, "spec.maxUnavailable") == 0:
        return "spec.maxUnavailable"
    least = _share(budget, "spec.minAvailable")
    return "spec.minAvailable" if type(least) is Fraction and least >= 1 else None


def _too_strict(budget: Request, workloads: Iterable[Fields]) -> Iterator[Violation]:
    for workload in workloads:
        kept, replicas = _kept(budget, workload), _replicas(workload)
        if 0 < replicas <= kept:
            yield Violation(
                "spec.minAvailable",
                found=f"{budget.integer_or_string('spec.minAvailable')}, and {_title(workload)} runs {replicas}",
                rule=NEVER,
                fix="lower it, or run more replicas",
                excess=kept - replicas,
            )


def _too_few(workload: Request, budgets: Iterable[Fields]) -> Iterator[Violation]:
    for budget in budgets:
        kept, replicas = _kept(budget, workload), _replicas(workload)
        if 0 < replicas <= kept and _never(budget) is None:
            yield Violation(
                "spec.replicas",
                found=f"{replicas}, and {_title(budget)} keeps {kept}",
                rule=NEVER,
                fix=f"run {kept + 1} or more replicas, or lower its minAvailable",
                excess=kept - replicas,
            )


def _kept(budget: Fields, workload: Fields) -> int:
    """Return how many pods of a workload its budget keeps; 0 where it does not select them."""
    least = _share(budget, "spec.minAvailable")
    if least is None or not _selects(budget, workload.texts("spec.template.metadata.labels")):
        return 0
    return least if type(least) is int else ceil(least * _replicas(workload))


def _selects(budget: Fields, labels: dict[str, str]) -> bool:
    """Return whether a budget selects pods with these labels; one without a selector selects none."""
    if not budget.is_set("spec.selector"):
        return False
    selector = budget.fields("spec.selector")
    said = {
        "matchLabels": selector.texts("matchLabels"),
        "matchExpressions": [
            {"key": each.string("key"), "operator": each.string("operator"), "values": each.strings("values")}
            for each in selector.each("matchExpressions")
        ],
    }
    try:
        return compile_selector(LabelSelector.model_validate(said))(labels)
    except ValidationError:  # an operator that there is not, which the API refuses
        return False


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
