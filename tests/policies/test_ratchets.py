"""Updates in small steps: none leads from what is allowed to what is denied, and none keeps a correction out.

The objects are those of the cases of every built-in policy; a step takes a field of another one.
"""

import copy
import os
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kube.resource import group_version_kind
from webhook.harness.cases import Trial, load_trials
from webhook.harness.reviews import Admission, ReviewAnswer, ask
from webhook.policy_sets.catalogue import catalogue

WALKS = int(os.environ.get("ROUNDS", "300"))  # 50000: a thorough run
STEPS = 6
# An update can change neither; the API server refuses it.
IDENTITY = ("apiVersion", "kind", "metadata.name", "metadata.namespace", "metadata")
# Rules about the change itself: what may be created may not be changed into.
ABOUT_CHANGES = {"service-account-changes", "default-roles"}


@dataclass(frozen=True)
class Group:
    """A trial whose policies are in force, and the objects of its kind in the cases of a policy."""

    trial: Trial
    objects: list[dict[str, Any]]

    def judge(self, **fields: Any) -> ReviewAnswer:
        """Return the answer to a request of the trial's user."""
        request: Admission = replace(self.trial.admission, **fields)
        return ask(self.trial.engine, request, self.trial.looked_up)


@cache
def groups() -> list[Group]:
    """Return the groups of all policies."""
    found = list[Group]()
    for file in sorted(Path(__file__).parent.glob("*.yaml")):
        by_kind: dict[tuple[int, str], list[Trial]] = defaultdict(list)
        for trial in load_trials(file, catalogue()):
            admission = trial.admission
            if admission.object is not None and not admission.subresource:
                group, _, kind = group_version_kind(admission.object)
                # Custom resources have rules about changes, such as of versions.
                if "." not in group or group.endswith(".k8s.io"):
                    by_kind[id(trial.engine), kind].append(trial)
        for trials in by_kind.values():
            admissions = [each.admission for each in trials]
            objects = [each.object for each in admissions]
            objects += [each.old_object for each in admissions if each.old_object is not None]
            found.append(Group(trials[0], objects))
    return found


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of each field and item that an update can change."""
    if path and ".".join(map(str, path)) not in IDENTITY:
        yield path
    if isinstance(value, dict):
        for name, item in value.items():
            yield from paths(item, (*path, name))
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from paths(item, (*path, at))


def take(old: dict[str, Any], other: Any, path: tuple[Any, ...]) -> dict[str, Any]:
    """Return an object with the field of another one, whose lists it takes whole if it has none."""
    new = copy.deepcopy(old)
    at: Any = new
    for step in path[:-1]:
        other = other[step]
        inside = at.get(step) if isinstance(at, dict) else at[step] if step < len(at) else None
        if type(inside) is not type(other):
            path = path[: path.index(step) + 1]
            break
        at = inside
    else:
        other = other[path[-1]]
    last = path[-1]
    if isinstance(at, list) and last >= len(at):
        at.append(copy.deepcopy(other))
    else:
        at[last] = copy.deepcopy(other)
    return new


def is_judged(answer: ReviewAnswer) -> bool:
    """Whether every policy could read the object, and had what it looks up."""
    return not any(each.malformed or each.error for each in answer.outcomes)


def violations(answer: ReviewAnswer) -> Counter[Any]:
    """Return policy, field and value of each violation."""
    return Counter(
        (outcome.policy, violation.field, str(violation.identity))
        for outcome in answer.outcomes
        for violation in outcome.violations
    )


@pytest.mark.long
@settings(max_examples=WALKS, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_small_steps_lead_nowhere_that_one_step_does_not(data: st.DataObject) -> None:
    """An accepted update has no more violations than before; one without new violations is accepted."""
    group = data.draw(st.sampled_from(groups()), "group")
    old = data.draw(st.sampled_from(group.objects), "first")
    for _ in range(STEPS):
        other = data.draw(st.sampled_from(group.objects), "other")
        path = data.draw(st.sampled_from([*paths(other)] or [()]), "path")
        if not path:
            return
        new = take(old, other, path)
        updated = group.judge(operation="UPDATE", object=new, old_object=old)
        before, after = (
            group.judge(operation="CREATE", object=created, old_object=None)
            for created in (old, new)
        )
        if not (is_judged(before) and is_judged(after) and is_judged(updated)):
            continue
        many, few = violations(before), violations(after)
        if updated.allowed:
            assert after.allowed or not before.allowed
            assert few.total() <= many.total()
            old = new if updated.object is None else updated.object
        elif not ABOUT_CHANGES & {each.policy for each in updated.outcomes if each.violations}:
            assert few - many
