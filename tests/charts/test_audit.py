"""The audit as the chart runs it: its arguments and rights, with a webhook and without."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.charts.rendered import NAMESPACE, Rendered
from tests.controlplane.plane import ControlPlane
from tests.gatewright.started import Gatewright
from tests.waiting import until

pytestmark = pytest.mark.controlplane  # helm is built as the control plane is

CONTROLLER = "gatewright-controller-manager"
WITHIN = 60.0  # seconds
AUDIT = (
    "audit.enabled=true",
    "audit.reports=wgpolicyk8s",
    "audit.qps=200",
    "audit.interval=1h",
    "kinds={none}",
)
INSTALLED = (
    "ConfigMap",
    "CustomResourceDefinition",
    "ServiceAccount",
    "ClusterRole",
    "ClusterRoleBinding",
    "Role",
    "RoleBinding",
)


def test_values_become_arguments(render: Callable[..., Rendered]):
    """How often, how fast, by which policies and into which API."""
    found = render(*AUDIT, "audit.kubernetesPolicies=false").arguments(CONTROLLER)
    assert found[-5:] == [
        "--audit",
        "--audit-interval=1h",
        "--audit-qps=200",
        "--audit-reports=wgpolicyk8s",
        "--no-kubernetes-policies",
    ]


def test_an_audit_needs_no_webhook(render: Callable[..., Rendered]):
    """Policies can be tried on a cluster before they deny anything."""
    objects = render("audit.enabled=true", "webhook.enabled=false", "policies.preset=production")
    arguments = objects.arguments(CONTROLLER)
    assert {"--audit", "--policies-config-map=gatewright-policies"} <= set(arguments)
    assert not [each for each in arguments if each.startswith("--webhook")]
    assert ("ClusterRole", "gatewright-audit") in objects


@pytest.mark.long
def test_the_chart_gives_the_audit_its_rights(
    render: Callable[..., Rendered], own_control_plane: Callable[..., ControlPlane], tmp_path: Path
):
    """It reports violations of the chart's policy set in the older report API, and no request is forbidden."""
    plane = own_control_plane(parts=("etcd", "kube-apiserver"))
    plane.create_namespace(NAMESPACE)
    plane.create_namespace("production")
    objects = render(*AUDIT, "webhook.enabled=false", "policies.preset=production")
    installed = [each for (kind, _), each in objects.items() if kind in INSTALLED]
    plane.kubectl("apply", "--server-side", "-f", "-", input=yaml.safe_dump_all(installed))
    plane.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=90s")
    plane.kubectl("create", "deployment", "shop", "-n", "production", "--image=nginx:1.21")

    own = ("--metrics-listen", "--health-listen", "--leader-elect")
    options = [each for each in objects.arguments(CONTROLLER)[1:] if not each.startswith(own)]
    account = plane.service_account_kubeconfig(NAMESPACE, CONTROLLER)
    with Gatewright(plane, tmp_path, "controller", *options, kubeconfig=account) as controller:
        controller.start()
        (report,) = until(
            lambda: json.loads(plane.kubectl("get", "policyreports", "-A", "-o", "json").stdout)[
                "items"
            ],
            within=WITHIN,
            problem=controller.process.tail,
        )
    assert (report["scope"]["kind"], report["scope"]["name"]) == ("Deployment", "shop")
    assert {each["policy"] for each in report["results"]} >= {"image-registries", "resource-limits"}
    user = f"system:serviceaccount:{NAMESPACE}:{CONTROLLER}"
    events = [event for event in plane.audit_events() if event["user"]["username"] == user]
    assert [event["requestURI"] for event in events if event["responseStatus"]["code"] == 403] == []
