"""Installing, upgrading and removing Gatewright as its users do, by Helm and without."""

import threading
import time

import pytest

from tests.e2e.conftest import CONFIG
from tests.gatewright.started import once
from tests.node.conftest import Figures
from tests.node.installation import BAD, PRODUCTION, Installation
from tests.node.release import NAMESPACE

pytestmark = [pytest.mark.node, pytest.mark.long]

# Twenty seconds on a machine that does nothing else.
PROTECTED_WITHIN = 60.0


def test_helm_installs_it_and_it_denies(bare: Installation, figure: Figures) -> None:
    """`helm install --wait` succeeds, and the first denial comes within seconds of the command."""
    bare.namespace("production")
    began = time.monotonic()
    helm = threading.Thread(target=bare.release.install, args=(PRODUCTION,))
    helm.start()
    protected = bare.until("a bad object is denied", bare.denies)
    helm.join()
    figure(f"first denial {protected:.1f} s after `helm install`")
    figure(f"`helm install --wait` returned after {time.monotonic() - began:.1f} s")
    assert protected < PROTECTED_WITHIN
    assert bare.release.status() == "deployed"
    assert "Phase:          Succeeded" in bare.release.helm("test", "gatewright")


def test_an_upgrade_can_be_rolled_back(installed: Installation) -> None:
    """Values of an upgrade are in force, and those of before after a rollback."""
    installed.release.install(PRODUCTION, "policies.action=Warn")
    installed.until("a bad object is allowed", lambda: installed.create(BAD)[0] == 201)
    installed.release.helm("rollback", "gatewright", "--wait")
    installed.until("a bad object is denied", installed.denies)


def test_nothing_is_left_after_helm_uninstall(installed: Installation, figure: Figures) -> None:
    """What remains are the CustomResourceDefinitions and the namespace; nothing is denied."""
    began = time.monotonic()
    installed.remove()
    figure(f"`helm uninstall --wait` returned after {time.monotonic() - began:.1f} s")
    installed.until("nothing is left", lambda: left(installed) == [])
    assert installed.create(BAD)[0] == 201


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
    bare.until("nothing is left", lambda: left(bare) == [])


def unregister(installation: Installation) -> None:
    """Run `gatewright unregister` as admin."""
    kubeconfig = str(installation.plane.kubeconfig)
    done = once("unregister", "--kubeconfig", kubeconfig, "--namespace", NAMESPACE)
    assert done.returncode == 0, done.stderr


def left(installation: Installation) -> list[str]:
    """Return what is there of Gatewright besides CustomResourceDefinitions and the namespace."""
    kubectl = installation.cluster.kubectl
    own = "all,configmaps,secrets,leases,serviceaccounts,roles,rolebindings,poddisruptionbudgets"
    found = kubectl("get", own, "-n", NAMESPACE, "-o", "name", "--ignore-not-found").split()
    wide = (
        "clusterroles,clusterrolebindings,validatingwebhookconfigurations,"
        "mutatingwebhookconfigurations,clusteradmissionpolicies,priorityclasses"
    )
    found += [each for each in kubectl("get", wide, "-o", "name").split() if "gatewright" in each]
    kubernetes = {"configmap/kube-root-ca.crt", "serviceaccount/default"}
    return sorted(set(found) - kubernetes)
