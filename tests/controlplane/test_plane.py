"""The behaviour of the test control plane that other tests rely on."""

import asyncio
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.controlplane.audit import WRITES
from tests.controlplane.kubectl import KubectlError
from tests.controlplane.plane import ControlPlane, ControlPlaneError

SERVER_ONLY = ("etcd", "kube-apiserver")


@pytest.mark.controlplane("kube-controller-manager")
def test_what_is_owned_is_collected(control_plane: ControlPlane, namespace: str) -> None:
    """A ConfigMap is deleted after its owner."""
    control_plane.kubectl("create", "configmap", "owner", "-n", namespace)
    uid = control_plane.kubectl(
        "get", "configmap/owner", "-o=jsonpath={.metadata.uid}", "-n", namespace
    ).stdout
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}
    owned = {"name": "owned", "namespace": namespace, "ownerReferences": [reference]}
    control_plane.kubectl(
        "create", "-f-", input={"apiVersion": "v1", "kind": "ConfigMap", "metadata": owned}
    )
    control_plane.kubectl("delete", "configmap/owner", "-n", namespace)
    control_plane.kubectl(
        "wait", "configmap/owned", "--for=delete", "--timeout=90s", "-n", namespace
    )


@pytest.mark.controlplane
def test_requests_are_counted_by_user_verb_and_resource(
    control_plane: ControlPlane, namespace: str
) -> None:
    """The audit log distinguishes a user's writes from reads and from writes of other users."""
    mark = control_plane.audit_mark()
    control_plane.kubectl("create", "configmap", "one", "-n", namespace)
    control_plane.kubectl("get", "configmap/one", "-n", namespace)
    control_plane.kubectl("delete", "configmap/one", "-n", namespace)
    found = control_plane.audit_events(
        mark, user="admin", verb=WRITES, resource="configmaps", namespace=namespace
    )
    assert [event["verb"] for event in found] == ["create", "delete"]
    assert control_plane.audit_events(mark, user="alice") == []


@pytest.mark.controlplane
def test_users_have_the_rights_that_a_test_gives_them(
    control_plane: ControlPlane, namespace: str
) -> None:
    """RBAC applies to the limited users."""
    alice = control_plane.kubeconfig_for("alice", namespace=namespace)
    with pytest.raises(KubectlError, match='User "alice" cannot list resource "pods"'):
        control_plane.kubectl("get", "pods", kubeconfig=alice)
    control_plane.kubectl(
        "create", "role", "look", "--verb=list", "--resource=pods", "-n", namespace
    )
    control_plane.kubectl(
        "create", "rolebinding", "look", "--role=look", "--group=developers", "-n", namespace
    )
    assert "No resources found" in control_plane.kubectl("get", "pods", kubeconfig=alice).stderr


@pytest.mark.controlplane
def test_a_service_account_can_log_in(control_plane: ControlPlane, namespace: str) -> None:
    """A kubeconfig of a ServiceAccount is that ServiceAccount."""
    control_plane.kubectl("create", "serviceaccount", "product", "-n", namespace)
    kubeconfig = control_plane.service_account_kubeconfig(namespace, "product")
    answer = control_plane.kubectl(
        "auth", "whoami", "-o=jsonpath={.status.userInfo.username}", kubeconfig=kubeconfig
    )
    assert answer.stdout == f"system:serviceaccount:{namespace}:product"


@pytest.mark.controlplane
def test_a_client_certificate_can_log_in(control_plane: ControlPlane) -> None:
    """A client certificate names its user and groups."""
    kubeconfig = control_plane.certificate_kubeconfig("carol", "system:masters")
    answer = control_plane.kubectl(
        "auth", "whoami", "-o=jsonpath={.status.userInfo}", kubeconfig=kubeconfig
    )
    assert '"username":"carol"' in answer.stdout
    assert "system:masters" in answer.stdout


@pytest.mark.controlplane
def test_kubectl_reads_nothing_of_the_person(
    control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The person's HOME, KUBECONFIG and proxies do not reach kubectl."""
    for name in ("HOME", "KUBECONFIG", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://nowhere.invalid:1")
    assert "https://127.0.0.1" in control_plane.kubectl("cluster-info").stdout


@pytest.mark.controlplane
def test_a_killed_api_server_comes_back_with_its_data(
    own_control_plane: Callable[..., ControlPlane],
) -> None:
    """A restart keeps port and objects; meanwhile requests fail, and the audit log is continued."""
    plane = own_control_plane(parts=SERVER_ONLY)
    plane.kubectl("create", "configmap", "kept")
    mark = plane.audit_mark()
    plane.kill("kube-apiserver")
    assert "refused" in plane.kubectl("get", "configmap/kept", check=False).stderr
    plane.restart("kube-apiserver")
    plane.kubectl("get", "configmap/kept")
    assert len(plane.audit_events(mark, resource="configmaps", verb="get")) == 1


@pytest.mark.controlplane
async def test_a_frozen_api_server_answers_later(empty_plane: ControlPlane) -> None:
    """Requests to the stopped API server are answered when it continues."""
    empty_plane.stop("kube-apiserver")
    async with asyncio.TaskGroup() as tasks:
        asked = tasks.create_task(asyncio.to_thread(empty_plane.kubectl, "get", "namespaces"))
        done, _ = await asyncio.wait([asked], timeout=0.5)
        empty_plane.cont("kube-apiserver")
    assert not done
    assert "kube-system" in asked.result().stdout


@pytest.mark.controlplane
def test_a_part_that_died_shows_its_log(own_control_plane: Callable[..., ControlPlane]) -> None:
    """When kubectl fails because a part died by itself, the error ends with the log of that part."""
    plane = own_control_plane(parts=SERVER_ONLY)
    os.kill(plane.pids["etcd"], signal.SIGKILL)
    os.kill(plane.pids["kube-apiserver"], signal.SIGKILL)
    with pytest.raises(ControlPlaneError, match="etcd died\n--- etcd: the end of "):
        plane.kubectl("get", "namespaces")


@pytest.mark.controlplane
def test_nothing_runs_after_close(own_control_plane: Callable[..., ControlPlane]) -> None:
    """Closing ends every process, even a frozen one."""
    plane = own_control_plane(parts=SERVER_ONLY)
    plane.stop("kube-apiserver")
    pids = plane.pids.values()
    plane.close()
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]


@pytest.mark.controlplane
def test_nothing_runs_after_we_were_killed(tmp_path: Path) -> None:
    """The parts end with the process that started them, even when that is killed."""
    source = (
        "import pathlib, signal, sys\n"
        "from tests.controlplane.plane import ControlPlane\n"
        "plane = ControlPlane.start(pathlib.Path(sys.argv[1]), parts=('etcd', 'kube-apiserver'))\n"
        "print(*plane.pids.values(), flush=True)\n"
        "signal.pause()\n"
    )
    command = [sys.executable, "-c", source, str(tmp_path / "plane")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as starter:
        alive = {os.pidfd_open(int(pid)) for pid in starter.stdout.readline().split()}
        starter.kill()
    assert len(alive) == len(SERVER_ONLY)
    for process in alive:
        ended, _, _ = select.select([process], [], [], 10)
        os.close(process)
        assert ended


@pytest.mark.controlplane
def test_objects_are_read_by_each_name_of_their_kind(
    control_plane: ControlPlane, namespace: str
) -> None:
    """A plural, a singular and a short name give what kubectl prints."""
    control_plane.kubectl("create", "configmap", "one", "--from-literal=a=1", "-n", namespace)
    printed = control_plane.kubectl("get", "configmap/one", "-n", namespace, "-o", "json").stdout
    for resource in ("configmaps", "configmap", "cm"):
        assert control_plane.resources.get(f"{resource}/one", namespace) == json.loads(printed)
    with pytest.raises(AssertionError, match="not found"):
        control_plane.resources.get("cm/two", namespace)
    with pytest.raises(AssertionError, match="the API server has no gadget"):
        control_plane.resources.get("gadget/one", namespace)
