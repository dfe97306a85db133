import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from config.documents import parse_documents
from kube.resource import JsonObject
from tests.charts.conftest import Result
from tests.charts.rendered import CHART, MODES, NAMESPACE
from tests.controlplane.plane import ControlPlane

OPERATORS = (
    "cert-manager.io",
    "monitoring.coreos.com",
)  # groups that a bare cluster does not serve

CONFIGURATION = ("validatingwebhookconfiguration", "gatewright")
FILLED = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingWebhookConfiguration",
    "metadata": {"name": "gatewright"},
    "webhooks": [
        {
            "name": "validate.gatewright.io",
            "admissionReviewVersions": ["v1"],
            "clientConfig": {
                "service": {
                    "name": "gatewright-webhook",
                    "namespace": NAMESPACE,
                    "path": "/validate",
                }
            },
            "sideEffects": "None",
            "rules": [
                {
                    "apiGroups": ["none.example.com"],
                    "apiVersions": ["*"],
                    "operations": ["*"],
                    "resources": ["*"],
                }
            ],
        }
    ],
}
CRD = ("crd", "voteconfigs.voting.schoolofdevops.com")
SERVICE = {"name": "gatewright-webhook", "namespace": NAMESPACE, "path": "/convert"}
CONVERSION = {
    "strategy": "Webhook",
    "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"service": SERVICE}},
}


@pytest.mark.controlplane
def test_the_api_server_accepts_every_rendered_object(
    template: Callable[..., Result], control_plane: ControlPlane, namespace: str
):
    """The API server accepts every rendered object of a group that it serves, strictly and without a warning."""
    objects: list[JsonObject] = []
    for mode in MODES:
        rendered = template(files=(mode,) if mode else (), release="dry-run", namespace=namespace)
        assert rendered.returncode == 0, rendered.stderr
        for document in parse_documents(rendered.stdout.encode(), f"as rendered for {mode}"):
            if (
                not document.value["apiVersion"].startswith(OPERATORS)
                and document.value not in objects
            ):
                objects.append(document.value)
    # Server-side, because other tests may have made some of these objects: a client-side apply
    # would warn of that.
    options = [
        "--server-side",
        "--force-conflicts",
        "--dry-run=server",
        "--validate=strict",
        "-f",
        "-",
    ]
    manifest = {"apiVersion": "v1", "kind": "List", "items": objects}
    applied = control_plane.kubectl("apply", *options, input=manifest)
    assert (applied.stderr, len(applied.stdout.splitlines())) == ("", len(objects))


@pytest.mark.controlplane("kube-controller-manager", "kube-scheduler", "hollow-kubelet")
def test_a_release_lives_and_ends(
    own_control_plane: Callable[..., ControlPlane], helm: Path, tmp_path: Path
):
    """An upgrade keeps fields that the controller set and restores deleted objects.

    CRDs outlive an uninstall. The CRDs exist before the installation, as after `make install`, and
    the chart takes them over. The Jobs of the hooks end (simulated nodes run no programs) and leave
    nothing behind.
    """
    plane = own_control_plane(audit=False)
    environment = {"KUBECONFIG": str(plane.kubeconfig), "HOME": str(tmp_path)}

    def run(command: str, *options: str) -> None:
        result = subprocess.run(
            [helm, command, "gatewright", f"--namespace={NAMESPACE}", *options],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert result.returncode == 0, result.stderr

    def webhooks() -> str:
        return plane.kubectl("get", *CONFIGURATION, "-o=jsonpath={.webhooks[*].name}").stdout

    plane.kubectl("apply", "-f", str(CHART.parents[1] / "config/crd/bases"))
    run("install", str(CHART), "--create-namespace", "--take-ownership")
    assert webhooks() == ""
    plane.kubectl(
        "apply", "--server-side", "--field-manager=gatewright-controller", "-f", "-", input=FILLED
    )
    conversion = json.dumps({"spec": {"conversion": CONVERSION}})
    plane.kubectl(
        "patch",
        *CRD,
        "--type=merge",
        "--field-manager=gatewright-controller",
        f"--patch={conversion}",
    )
    run("upgrade", str(CHART), "--set=policies.preset=production")
    assert webhooks() == "validate.gatewright.io"
    assert plane.kubectl("get", *CRD, "-o=jsonpath={.spec.conversion.strategy}").stdout == "Webhook"
    run("rollback", "1")
    assert webhooks() == "validate.gatewright.io"
    plane.kubectl("delete", *CONFIGURATION)
    run("upgrade", str(CHART))
    assert webhooks() == ""
    run("test")
    run("uninstall")
    hooks = "jobs,pods,serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings"
    left = plane.kubectl(
        "get", hooks, "-A", "-l=app.kubernetes.io/name=gatewright", "-o=name"
    ).stdout
    assert [each for each in left.split() if "uninstall" in each or "test" in each] == []
    assert plane.kubectl("get", *CONFIGURATION, check=False).returncode != 0
    plane.kubectl("get", "crd", "webapps.example.com")
    run("install", str(CHART))
