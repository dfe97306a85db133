"""Installing from the plain manifests, on a cluster without Gatewright."""

import shutil
from collections.abc import Iterator

import pytest

from tests.controlplane.plane import ControlPlane
from tests.e2e.conftest import CONFIG, Cluster

pytestmark = pytest.mark.controlplane("kube-controller-manager", "kube-scheduler", "hollow-kubelet")

CRD = CONFIG / "crd/bases/example.com_webapps.yaml"


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster without any part of Gatewright."""
    with ControlPlane.start(tmp_path_factory.mktemp("installation") / "controlplane") as plane:
        yield Cluster(plane)
    shutil.rmtree(plane.directory / "etcd")


def test_s1_a_webapp_can_be_stored(empty: Cluster) -> None:
    """S1: the CRD installs without a warning, and a WebApp can be stored, listed and described."""
    applied = empty.plane.kubectl("apply", "-f", str(CRD))
    assert (
        applied.stdout
        == "customresourcedefinition.apiextensions.k8s.io/webapps.example.com created\n"
    )
    assert applied.stderr == ""
    empty.kubectl("wait", "crd/webapps.example.com", "--for=condition=Established")
    assert "webapps.example.com" in empty.kubectl("get", "crd", "webapps.example.com")
    resources = empty.kubectl("api-resources", "--api-group=example.com", "--no-headers")
    assert resources.split() == ["webapps", "wa", "example.com/v1", "true", "WebApp"]

    created = empty.kubectl("apply", "-f", str(CONFIG / "samples/my-webapp.yaml"))
    assert created == "webapp.example.com/my-webapp created\n"
    row = empty.kubectl("get", "webapp", "my-webapp", "--no-headers").split()
    assert row[:3] == ["my-webapp", "3", "nginx:1.21"]
    described = empty.kubectl("describe", "webapp", "my-webapp")
    assert "Image:     nginx:1.21\n  Port:      80\n  Replicas:  3\n" in described
    explained = empty.kubectl("explain", "webapp.spec.replicas")
    assert (
        "FIELD: replicas <integer>\n\n\nDESCRIPTION:\n    Number of pods, 1 to 10.\n" in explained
    )


def test_s2_the_manifests_apply_in_their_order(empty: Cluster) -> None:
    """S2: CRDs, rights, then the Deployments, which become available; no warning is printed."""
    for directory in ("crd/bases", "rbac", "manager"):
        assert empty.plane.kubectl("apply", "-f", str(CONFIG / directory)).stderr == ""
    empty.wait(
        "deployment/gatewright-controller-manager", "condition=Available", "gatewright-system"
    )
    empty.wait("deployment/gatewright-webhook", "condition=Available", "gatewright-system")
    empty.kubectl("wait", "crd/webapps.example.com", "--for=condition=Established")
    empty.kubectl("get", "webapps", "--all-namespaces")
