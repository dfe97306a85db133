"""Policies about replicas also judge /scale."""

import copy

import pytest

from tests.policies.trials import trials_of_policy
from tests.webhook.asking import about
from webhook.engine import PARENT, Request
from webhook.engine.kinds import KINDS
from webhook.harness.bases import merge
from webhook.policy_sets.catalogue import catalogue

SCALING = {each.kind for each in KINDS.values() if each.scales}
BEFORE, AFTER = 5, (0, 1, 2, 3, 11, 1000)
# Too few instances for a field of the object are a condition of it: a Scale has no such field.
BY_CONTROLLER = {"postgresql-rules"}


def scale(replicas):
    """Write a Scale; the API leaves 0 out."""
    spec = {"replicas": replicas} if replicas else {}
    return {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {"name": "case"},
        "spec": spec,
    }


def violations(trial, subresource, new, old, parent):
    """The violations of an update by a trial's policies: path and message."""
    asked = about(parent["kind"], subresource, operation="UPDATE", name="case", namespace="default")
    request = Request(
        asked, copy.deepcopy(new), copy.deepcopy(old), trial.looked_up | {PARENT: parent}
    )
    return sorted(
        violation.message
        for outcome in trial.engine.validate(request).outcomes
        for violation in outcome.violations
    )


def applied(trial, object, replicas):
    """The violations if the object is applied with other replicas."""
    old = merge(object, {"spec": {"replicas": BEFORE}})
    return violations(trial, "", merge(old, {"spec": {"replicas": replicas}}), old, old)


def scaled(trial, object, replicas):
    """The violations if the object is scaled."""
    old = merge(object, {"spec": {"replicas": BEFORE}})
    return violations(trial, "scale", scale(replicas), scale(BEFORE), old)


@pytest.mark.long
def test_scaling_is_judged_as_applying_the_same_replicas():
    """Each case about a workload runs with several numbers: if they matter, /scale gets the same verdict."""
    about_replicas, differing = set(), []
    for name in catalogue():
        for trial in trials_of_policy(name):
            object = trial.admission.object
            if object is None or object["kind"] not in SCALING or trial.expect == "malformed":
                continue
            if "autoscaling" in object.get("spec", {}):
                continue  # its kind allows no replicas beside it, which a Scale would set
            found = [applied(trial, object, each) for each in AFTER]
            if all(each == found[0] for each in found):
                continue
            about_replicas.add(name)
            if name in BY_CONTROLLER:
                continue
            if (other := [scaled(trial, object, each) for each in AFTER]) != found:
                differing.append((trial.where, trial.name, found, other))
    assert differing == []
    assert about_replicas == {"disruption-budgets", "replica-limits"} | BY_CONTROLLER
