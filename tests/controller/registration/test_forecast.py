"""What the registration gives up for a policy is known before the policy is in force."""

import pytest

from controller.registration.configurations import registration
from controller.registration.forecast import RegistrationForecast
from controller.registration.grouping import MAX_WEBHOOKS
from webhook.engine import Engine
from webhook.policy_sets.bound_objects import bind, document_of
from webhook.policy_sets.catalogue import catalogue


def policy(name, **clause):
    """Return a policy object that selects namespaces by a clause."""
    spec = {"policy": "replica-limits", "params": {}, "match": {"any": [clause]}}
    return {
        "apiVersion": "gatewright.io/v1alpha1",
        "kind": "ClusterAdmissionPolicy",
        "metadata": {"name": name},
        "spec": spec,
    }


def by_label(number):
    """Return a policy object with a label of its own."""
    return policy(f"p-{number}", namespaceSelector={"matchLabels": {f"k{number}": "x"}})


class InForce:
    """An engine that changes, and forecasts about it."""

    def __init__(self, *values):
        self.put(*values)
        self.time = 0.0
        self.forecast = RegistrationForecast(
            lambda: self.engine, ["gatewright-system"], clock=lambda: self.time
        )

    def put(self, *values):
        """Put policy objects in force."""
        self.engine = Engine([bind(document_of(each), catalogue()) for each in values])

    def widened_by(self, value):
        """Return a forecast that is made long after the last one."""
        self.time += 3600
        return self.forecast.widened_by(value)

    def after(self, *values):
        """Return the policies that are widened when these are in force."""
        bound = [bind(document_of(each), catalogue()) for each in values]
        return {name for _, name in registration(Engine(bound), ["gatewright-system"]).widened}


@pytest.mark.long
def test_the_policy_that_needs_one_webhook_too_many_is_told_with_the_others():
    """Each prediction is what the registration of all of them gives up."""
    by_name = policy("named", namespaces=["shop"])
    values = [by_name, *(by_label(each) for each in range(MAX_WEBHOOKS - 1))]
    running = InForce()
    for number, each in enumerate(values):
        assert not running.widened_by(each)
        running.put(*values[: number + 1])
    last = by_label(MAX_WEBHOOKS)
    assert set(running.widened_by(last)) == running.after(*values, last) != set()
    assert not running.widened_by(policy("other", namespaces=["staging"]))
    assert not running.widened_by(values[3])
    assert not running.widened_by(last | {"metadata": {"name": "p-3"}})
    running.put(*values, last)
    assert running.widened_by(by_label(MAX_WEBHOOKS + 1)) == [f"p-{MAX_WEBHOOKS + 1}"]


def test_nothing_is_foretold_of_invalid_objects_or_without_policies():
    """Another policy denies these, and there is no registration before there are policies."""
    running = InForce()
    invalid = by_label(1)
    invalid["spec"]["policy"] = "no-such-policy"
    assert running.widened_by(invalid) == ()
    running.engine = None
    assert running.widened_by(by_label(1)) == ()


def test_many_policies_at_once_are_not_slowed_down():
    """A forecast that follows another at once is left out."""
    running = InForce(*(by_label(each) for each in range(MAX_WEBHOOKS)))
    last = by_label(MAX_WEBHOOKS)
    assert running.widened_by(last)
    assert not running.forecast.widened_by(last)
    assert running.widened_by(last)
