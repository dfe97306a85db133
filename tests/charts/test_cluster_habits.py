"""Values for special clusters: issuers, security contexts, budgets, DNS, runtimes, registries, IP families."""

from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.controlplane  # helm is built as the control plane is

CONTROLLER, WEBHOOK = DEPLOYMENTS = ("gatewright-controller-manager", "gatewright-webhook")
VALUES = {
    "containerSecurityContext": {"seLinuxOptions": {"type": "spc_t"}},
    "runtimeClassName": "gvisor",
    "dnsPolicy": "Default",
    "dnsConfig": {"options": [{"name": "ndots", "value": "1"}]},
    "extraContainers": [{"name": "proxy", "image": "proxy:1"}],
    "podDisruptionBudget": {"minAvailable": 1},
    "global": {"imageRegistry": "registry.example.com"},
    "extraObjects": [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": '{{ include "gatewright.fullname" . }}-mine'},
        }
    ],
    "webhook": {
        "updateStrategy": {"type": "Recreate"},
        "annotations": {"team": "platform"},
        "service": {"ipFamilyPolicy": "PreferDualStack", "ipFamilies": ["IPv6", "IPv4"]},
    },
}


def test_pods_fit_into_any_cluster(render, tmp_path: Path) -> None:
    """Both pods have the values; a security context is merged with the chart's own."""
    (tmp_path / "values.yaml").write_text(yaml.safe_dump(VALUES))
    objects = render(files=(tmp_path / "values.yaml",))
    for name in DEPLOYMENTS:
        pod = objects.pod(name)
        own, extra = pod["containers"]
        assert (pod["runtimeClassName"], pod["dnsPolicy"]) == ("gvisor", "Default")
        assert pod["dnsConfig"] == VALUES["dnsConfig"]
        assert extra == VALUES["extraContainers"][0]
        assert own["securityContext"]["seLinuxOptions"] == {"type": "spc_t"}
        assert own["securityContext"]["readOnlyRootFilesystem"] is True
        assert own["image"].startswith("registry.example.com/gatewright:")
        budget = objects["PodDisruptionBudget", name]["spec"]
        assert (budget["minAvailable"], "maxUnavailable" in budget) == (1, False)
    assert objects["Deployment", WEBHOOK]["spec"]["strategy"] == {"type": "Recreate"}
    assert "strategy" not in objects["Deployment", CONTROLLER]["spec"]
    service = objects["Service", WEBHOOK]["spec"]
    assert (service["ipFamilyPolicy"], service["ipFamilies"]) == (
        "PreferDualStack",
        ["IPv6", "IPv4"],
    )
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        assert objects[kind, "gatewright"]["metadata"]["annotations"] == {"team": "platform"}
    assert ("ConfigMap", "gatewright-mine") in objects


def test_cert_manager_may_use_an_issuer_of_the_cluster(render) -> None:
    """The chart then creates no certificate authority."""
    objects = render(
        "certManager.enabled=true",
        "certManager.issuerRef.kind=ClusterIssuer",
        "certManager.issuerRef.name=internal",
    )
    assert [name for kind, name in objects if kind == "Issuer"] == []
    (certificate,) = (each for (kind, _), each in objects.items() if kind == "Certificate")
    assert certificate["spec"]["issuerRef"] == {"kind": "ClusterIssuer", "name": "internal"}


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (
            "extraArgs={--no-such-flag}",
            "has no option --no-such-flag; docs/reference/settings.md lists those it has",
        ),
        (
            "webhook.extraArgs={--workers=3}",
            "extraArgs: `gatewright webhook` has no option --workers; "
            "docs/reference/settings.md lists those it has",
        ),
        (
            "env.GATEWRIGHT_WORKRS=three",
            "env: there is no setting GATEWRIGHT_WORKRS; docs/reference/settings.md lists the variables",
        ),
        (
            "extraEnv[0].name=GATEWRIGHT_WORKRS",
            "env: there is no setting GATEWRIGHT_WORKRS; docs/reference/settings.md lists the variables",
        ),
        ("certManager.issuerRef.kind=ClusterIssuer", "name"),
    ],
)
def test_unknown_options_and_variables_fail_the_render(template, value: str, error: str) -> None:
    """A pod would not start with it."""
    result = template(value)
    assert result.returncode != 0
    assert error in result.stderr


def test_options_may_have_separate_values(render) -> None:
    """Only an argument that begins with a dash is an option."""
    objects = render("controller.extraArgs={--log-level,debug,--no-object-metrics}")
    assert objects.arguments(CONTROLLER)[-3:] == ["--log-level", "debug", "--no-object-metrics"]
