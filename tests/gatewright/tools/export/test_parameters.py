"""Exported rules decide as the policy does, for all parameters in its cases; a cluster tries fewer."""

import pytest

from gatewright.tools.export.counterparts import COUNTERPARTS
from gatewright.tools.export.pod_rules import used_variables
from tests.config.regenerate import ROOT
from webhook.engine import BoundPolicy, Engine
from webhook.harness.cases import Trial, load_trials
from webhook.harness.reviews import review
from webhook.policy_sets.bound_objects import bind
from webhook.policy_sets.catalogue import catalogue
from webhook.review import read

CUSTOM = ("apps.gatewright", "shop.", "example.com", "keda.sh", "argoproj.io")
FEWEST = 4  # cases of a policy that have exported rules


def is_denied(engine: Engine, trial: Trial) -> bool:
    """Return whether an engine denies the request of a case, or finds it malformed."""
    request = read(review(trial.admission)).with_looked_up(trial.looked_up)
    return not engine.validate(request).allowed


def exported(trial: Trial) -> Engine | None:
    """Return the exported rules of a case's policy about its kind; None if there are none."""
    (policy,) = [each for each in trial.engine.policies if each.policy.name in COUNTERPARTS]
    rules = COUNTERPARTS[policy.policy.name](policy.params)
    if not rules:
        return None
    about = trial.admission.about
    spec = {
        "match": {"any": [{"kinds": [f"{about['apiVersion']}/{about['kind']}"]}]},
        "variables": used_variables(rules),
        "validations": [each.validation for each in rules],
    }
    object = {
        "apiVersion": "gatewright.io/v1alpha1",
        "kind": "ClusterAdmissionPolicy",
        "metadata": {"name": "exported"},
        "spec": spec,
    }
    bound = bind(object, catalogue())
    assert isinstance(bound, BoundPolicy)
    return Engine([bound])


def is_compared(trial: Trial) -> bool:
    """Return whether a case is a creation of an object of Kubernetes' own that it could take."""
    about = trial.admission
    return (
        about.operation == "CREATE"
        and not about.subresource
        and trial.expect != "not-matched"
        and not about.about["apiVersion"].startswith(CUSTOM)
        and not getattr(trial.expect, "malformed", None)
        and trial.name != "no containers at all is for the API server to refuse"
    )


@pytest.mark.long
@pytest.mark.parametrize("name", COUNTERPARTS)
def test_exported_rules_decide_as_the_policy(name):
    """Each creation among its cases."""
    compared = 0
    for trial in load_trials(ROOT / f"tests/policies/{name.replace('-', '_')}.yaml", catalogue()):
        if not is_compared(trial):
            continue
        engine = exported(trial)
        if engine is not None:
            compared += 1
            assert is_denied(engine, trial) == is_denied(trial.engine, trial), trial.name
    assert compared >= FEWEST
