"""Installing and removing Gatewright without Helm: `kubectl apply` of the plain manifests."""

import time

import pytest

from tests.e2e.conftest import CONFIG
from tests.gatewright.started import once
from tests.node.conftest import Figures
from tests.node.installation import Installation
from tests.node.release import NAMESPACE

pytestmark = [pytest.mark.node, pytest.mark.long]


def test_without_helm(bare: Installation, figure: Figures) -> None:
    """The plain manifests make pods that judge the policies of the cluster; `unregister` and delete remove it."""
    kubectl = bare.cluster.kubectl
    bare.namespace("production")
    began = time.monotonic()
    for directory in ("crd/bases", "rbac", "manager"):
        kubectl("apply", "--server-side", "--force-conflicts", "-f", str(CONFIG / directory))
    kubectl("apply", "-f", str(CONFIG / "policies/production.yaml"))
    try:
        bare.until("a bad object is denied", bare.denies)
        figure(f"first denial {time.monotonic() - began:.1f} s after `kubectl apply`")
    finally:
        kubectl("delete", "-f", str(CONFIG / "policies/production.yaml"))
        unregister(bare)
        for directory in ("manager", "rbac"):
            kubectl("delete", "--ignore-not-found", "-f", str(CONFIG / directory))
        unregister(bare)
    bare.until("nothing is left", lambda: bare.left() == [])


def unregister(installation: Installation) -> None:
    """Run `gatewright unregister` as admin."""
    kubeconfig = str(installation.plane.kubeconfig)
    done = once("unregister", "--kubeconfig", kubeconfig, "--namespace", NAMESPACE)
    assert done.returncode == 0, done.stderr
