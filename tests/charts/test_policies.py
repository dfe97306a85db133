from pathlib import Path

import pytest
import yaml

from config.api.policy import ClusterAdmissionPolicy

pytestmark = pytest.mark.controlplane  # helm is built as the control plane is

PRODUCTION = Path(__file__).parents[2] / "config/policies/production.yaml"


@pytest.mark.parametrize("action", ["Deny", "Warn", "Audit"])
def test_the_preset_carries_the_shipped_policies(render, action):
    """The ConfigMap holds the policies of config/policies, with action and registries from the values.

    What denies nothing denies nothing either while no webhook answers.
    """
    sets = (
        "policies.preset=production",
        f"policies.action={action}",
        "policies.registries={a.example.com,b.example.com/x}",
    )
    mounted = yaml.safe_load_all(render(*sets)["ConfigMap", "gatewright-policies"]["data"]["preset.yaml"])
    expected = []
    for policy in yaml.safe_load_all(PRODUCTION.read_text()):
        policy["spec"]["validationActions"] = [action]
        if action != "Deny":
            policy["spec"]["failurePolicy"] = "Ignore"
        if policy["spec"]["policy"] == "image-registries":
            policy["spec"]["params"]["registries"] = ["a.example.com", "b.example.com/x"]
        ClusterAdmissionPolicy.model_validate(policy)
        expected.append(policy)
    assert list(mounted) == expected


@pytest.mark.parametrize(
    ("action", "chosen", "expected"),
    [("Deny", "Ignore", "Ignore"), ("Warn", "Fail", None), ("Warn", "Ignore", "Ignore")],
)
def test_the_failure_policy_can_be_chosen(render, action, chosen, expected):
    """What happens while no webhook answers can be said apart from what a violation leads to."""
    objects = render("policies.preset=production", f"policies.action={action}", f"policies.failurePolicy={chosen}")
    mounted = list(yaml.safe_load_all(objects["ConfigMap", "gatewright-policies"]["data"]["preset.yaml"]))
    assert [policy["spec"].get("failurePolicy") for policy in mounted] == [expected] * 4


def test_the_preset_without_registries_keeps_its_own(render):
    """With an empty list the registries are those of the shipped file."""
    mounted = render("policies.preset=production")["ConfigMap", "gatewright-policies"]["data"]["preset.yaml"]
    assert "registry.company.com" in mounted


def test_no_preset_is_no_policy(render):
    """By default nothing is denied: the mounted file is there, for the webhook to watch, and empty."""
    mounted = render()["ConfigMap", "gatewright-policies"]["data"]
    assert [list(yaml.safe_load_all(text)) for text in mounted.values()] == [[]]
