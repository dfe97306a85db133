from pathlib import Path

import pytest
import yaml

from config.api.policy import ClusterAdmissionPolicy
from tests.charts.rendered import CHART, NAMESPACE

pytestmark = pytest.mark.controlplane  # helm is built as the control plane is

PRESETS = sorted((Path(__file__).parents[2] / "config/policies").glob("*.yaml"))


def mounted(objects):
    """Return the policy objects that the webhook mounts."""
    return list(
        yaml.safe_load_all(objects["ConfigMap", "gatewright-policies"]["data"]["preset.yaml"])
    )


@pytest.mark.parametrize("action", ["Deny", "Warn", "Audit"])
@pytest.mark.parametrize("preset", PRESETS, ids=lambda path: path.stem)
def test_a_preset_carries_the_shipped_policies(render, preset, action):
    """The ConfigMap has the policies of config/policies with the action of the values.

    Policies that deny nothing fail open.
    """
    expected = []
    for policy in yaml.safe_load_all(preset.read_text()):
        policy["spec"]["validationActions"] = [action]
        if action != "Deny":
            policy["spec"]["failurePolicy"] = "Ignore"
        ClusterAdmissionPolicy.model_validate(policy)
        expected.append(policy)
    assert (
        mounted(render(f"policies.preset={preset.stem}", f"policies.action={action}")) == expected
    )


def test_the_server_takes_every_preset(render, empty_plane):
    """The API server accepts the policy objects of a preset, and all rendered objects, without a warning."""
    empty_plane.kubectl("apply", "--server-side", "-f", str(CHART.parents[1] / "config/crd/bases"))
    empty_plane.create_namespace(NAMESPACE)
    options = [
        "--server-side",
        "--force-conflicts",
        "--dry-run=server",
        "--validate=strict",
        "-f",
        "-",
    ]
    for preset in PRESETS:
        objects = render(f"policies.preset={preset.stem}", "policies.action=Warn")
        items = [*objects.values(), *yaml.safe_load_all(preset.read_text())]
        applied = empty_plane.kubectl(
            "apply", *options, input={"apiVersion": "v1", "kind": "List", "items": items}
        )
        assert (applied.stderr, len(applied.stdout.splitlines())) == ("", len(items))


def test_registries_are_those_of_the_values(render):
    """The registries of a preset's policy can be replaced."""
    objects = render(
        "policies.preset=production", "policies.registries={a.example.com,b.example.com/x}"
    )
    (registries,) = (
        policy for policy in mounted(objects) if policy["spec"]["policy"] == "image-registries"
    )
    assert registries["spec"]["params"] == {"registries": ["a.example.com", "b.example.com/x"]}


@pytest.mark.parametrize("preset", ["none", "baseline", "restricted", "best-practices"])
def test_registries_without_their_policy_are_an_error(template, preset):
    """They must not be ignored silently."""
    result = template(f"policies.preset={preset}", "policies.registries={a.example.com}")
    assert result.returncode != 0
    assert (
        "policies.registries needs a preset with the policy image-registries, such as production; "
        f"policies.preset is {preset}"
    ) in result.stderr


def test_a_preset_can_be_narrowed(render):
    """`policies.match` sets the scope of all its policies."""
    objects = render("policies.preset=baseline", "policies.match.any[0].namespaces={shop-*}")
    assert [each["spec"]["match"] for each in mounted(objects)] == [
        {"any": [{"namespaces": ["shop-*"]}]}
    ]


def test_a_narrowed_preset_keeps_what_it_excludes(render):
    """Without its exclusions, the preset would deny the objects of the controller."""
    narrowed = "policies.match.any[0].namespaces={shop-*}"
    whole = mounted(render("policies.preset=best-practices"))
    objects = mounted(render("policies.preset=best-practices", narrowed))
    for before, after in zip(whole, objects, strict=True):
        assert after["spec"]["match"] == {
            "any": [{"namespaces": ["shop-*"]}],
            "exclude": before["spec"]["match"]["exclude"],
        }


@pytest.mark.parametrize(
    ("values", "account"),
    [
        ((), "gate-controller-manager"),
        (("controller.serviceAccount.name=chosen",), "chosen"),
    ],
    ids=["default", "named"],
)
def test_a_preset_excludes_the_controller_by_its_account(render, values, account):
    """The account has the release's names and namespace, or a name of its own."""
    objects = render(
        "policies.preset=best-practices", "fullnameOverride=gate", *values, namespace="policy"
    )
    mounted = yaml.safe_load_all(objects["ConfigMap", "gate-policies"]["data"]["preset.yaml"])
    accounts = {
        name for policy in mounted for name in policy["spec"]["match"]["exclude"]["serviceAccounts"]
    }
    assert accounts == {"kube-system/*", f"policy/{account}"}


def test_the_action_applies_to_own_policies(render, tmp_path):
    """It applies to those without an action; others keep theirs, and an exception has none."""
    about = {"apiVersion": "gatewright.io/v1alpha1", "kind": "ClusterAdmissionPolicy"}
    values = {
        "policies": {
            "action": "Warn",
            "objects": [
                {**about, "metadata": {"name": "tags"}, "spec": {"policy": "image-tags"}},
                {
                    **about,
                    "metadata": {"name": "ports"},
                    "spec": {
                        "policy": "host-ports",
                        "validationActions": ["Audit"],
                        "failurePolicy": "Fail",
                    },
                },
                {
                    **about,
                    "kind": "PolicyException",
                    "metadata": {"name": "sale"},
                    "spec": {"reason": "a sale"},
                },
            ],
        }
    }
    (tmp_path / "values.yaml").write_text(yaml.safe_dump(values))
    specs = {
        policy["metadata"]["name"]: policy["spec"]
        for policy in mounted(render(files=(tmp_path / "values.yaml",)))
    }
    assert specs == {
        "tags": {"policy": "image-tags", "validationActions": ["Warn"], "failurePolicy": "Ignore"},
        "ports": {"policy": "host-ports", "validationActions": ["Audit"], "failurePolicy": "Fail"},
        "sale": {"reason": "a sale"},
    }


@pytest.mark.parametrize(
    ("action", "chosen", "expected"),
    [("Deny", "Ignore", "Ignore"), ("Warn", "Fail", None), ("Warn", "Ignore", "Ignore")],
)
def test_the_failure_policy_can_be_chosen(render, action, chosen, expected):
    """The behaviour during an outage is separate from the action."""
    objects = render(
        "policies.preset=production",
        f"policies.action={action}",
        f"policies.failurePolicy={chosen}",
    )
    assert [policy["spec"].get("failurePolicy") for policy in mounted(objects)] == [expected] * 4


def test_the_preset_without_registries_keeps_its_own(render):
    """An empty list keeps the registries of the shipped file."""
    registries, *_ = mounted(render("policies.preset=production"))
    assert registries["spec"]["params"]["registries"] == ["registry.company.com"]


def test_without_a_preset_there_are_no_policies(render):
    """There is no policy file either, since an empty file is an error."""
    assert render()["ConfigMap", "gatewright-policies"]["data"] == {}


def test_several_presets_are_installed_together(render):
    """`policies.preset` may be a list; the policies are those of each preset."""
    names = ["production", "best-practices"]
    found = mounted(render("policies.preset={production,best-practices}"))
    written = [
        document["metadata"]["name"]
        for path in PRESETS
        if path.stem in names
        for document in yaml.safe_load_all(path.read_text())
    ]
    assert sorted(each["metadata"]["name"] for each in found) == sorted(written)
