import base64
import json
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.controlplane.plane import ControlPlane
from tests.gatewright.processes import Gatewright, registered

CONFIG = Path(__file__).parents[2] / "config"
OURS = "gatewright-system"
BIG = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "big", "namespace": "production"},
    "spec": {
        "replicas": 11,
        "selector": {"matchLabels": {"app": "big"}},
        "template": {
            "metadata": {"labels": {"app": "big"}},
            "spec": {"containers": [{"name": "app", "image": "nginx:1.21"}]},
        },
    },
}


@pytest.mark.controlplane("kube-controller-manager", "kube-scheduler", "hollow-kubelet")
def test_both_processes_manage_with_the_rights_they_have(
    own_control_plane: Callable[..., ControlPlane], tmp_path: Path
):
    """As their own ServiceAccounts, both do all their work and the API server refuses them nothing."""
    plane = own_control_plane()
    for directory in ("crd/bases", "rbac", "manager"):
        plane.kubectl("apply", "-f", str(CONFIG / directory))
    plane.create_namespace("production")
    webhook, controller = prepared(plane, tmp_path)
    with ExitStack() as ending:
        for process in (webhook, controller):
            ending.callback(process.close)
            ending.callback(process.process.kill)  # the webhook would wait for the API server to hang up
        controller.process.start()
        plane.kubectl("wait", "--for=create", "secret/gatewright-webhook-tls", "-n", OURS, "--timeout=30s")
        mount_pair(plane, tmp_path)
        webhook.start()
        controller.until("registered", lambda: registered(plane) == {"validate", "mutate"})

        plane.kubectl("apply", "-f", str(CONFIG / "samples/my-webapp.yaml"))
        plane.kubectl("wait", "--for=jsonpath={.status.phase}=Running", "webapp/my-webapp", "--timeout=30s")
        denied = plane.kubectl("apply", "-f", "-", input=BIG, check=False)
        assert "3 violations" in denied.stderr
        assert refused(plane) == []


def prepared(plane: ControlPlane, directory: Path) -> tuple[Gatewright, Gatewright]:
    """Both processes, each with the kubeconfig of its ServiceAccount, and what their pods would mount."""
    accounts = {name: plane.service_account_kubeconfig(OURS, f"gatewright-{name}") for name in ACCOUNTS}
    policies = ("--policies", str(CONFIG / "policies"))
    pair = ("--tls-cert", str(directory / "tls.crt"), "--tls-key", str(directory / "tls.key"))
    webhook = Gatewright(plane, directory, "webhook", *policies, *pair, kubeconfig=accounts["webhook"])
    at = ("--webhook-url", webhook.url.replace("127.0.0.1", "localhost"))
    return webhook, Gatewright(
        plane, directory, "controller", *policies, *at, kubeconfig=accounts["controller-manager"]
    )


ACCOUNTS = ("controller-manager", "webhook")


def mount_pair(plane: ControlPlane, directory: Path) -> None:
    """Play the kubelet: write the webhook's Secret to where its pod would find it."""
    secret = json.loads(plane.kubectl("get", "secret", "gatewright-webhook-tls", "-n", OURS, "-o", "json").stdout)
    for name, value in secret["data"].items():
        (directory / name).write_bytes(base64.b64decode(value))


def refused(plane: ControlPlane) -> list[tuple[str, str]]:
    """The requests of our ServiceAccounts that the API server forbade."""
    return [
        (event["verb"], event["requestURI"])
        for event in plane.audit_events()
        if event["user"]["username"].startswith(f"system:serviceaccount:{OURS}:")
        and event["responseStatus"]["code"] == 403
    ]
