"""The simulated nodes and volumes look real to controllers."""

import json
from typing import Any

import pytest

from tests.controlplane.plane import NODES, ControlPlane

pytestmark = pytest.mark.controlplane("kube-controller-manager", "kube-scheduler", "hollow-kubelet")

MESSAGE = "hollow.gatewright.io/termination-message"
CRASH_LOOP = "jsonpath={.status.containerStatuses[0].state.waiting.reason}=CrashLoopBackOff"


def test_pods_of_a_deployment_run_on_nodes_of_their_own(
    control_plane: ControlPlane, namespace: str
) -> None:
    """There are three nodes, so three pods with anti-affinity can be scheduled."""
    apart = {
        "labelSelector": {"matchLabels": {"app": "web"}},
        "topologyKey": "kubernetes.io/hostname",
    }
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    template = _pod("nginx", affinity=affinity)
    spec = {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    _apply(control_plane, namespace, "apps/v1", "Deployment", "web", spec)
    _wait(control_plane, namespace, "deployment/web", "condition=Available")
    nodes = control_plane.kubectl(
        "get", "pods", "-n", namespace, "-o=jsonpath={.items[*].spec.nodeName}"
    ).stdout
    assert sorted(nodes.split()) == list(NODES)


def test_a_job_completes_and_leaves_its_message(
    control_plane: ControlPlane, namespace: str
) -> None:
    """A pod with restartPolicy Never succeeds; its termination message comes from an annotation of its template."""
    template = _pod("busybox", annotations={MESSAGE: '{"bytes": 42}'}, restartPolicy="Never")
    _apply(control_plane, namespace, "batch/v1", "Job", "once", {"template": template})
    _wait(control_plane, namespace, "job/once", "condition=Complete")
    status = control_plane.kubectl(
        "get", "pods", "-n", namespace, "-o=jsonpath={.items[0].status}"
    ).stdout
    ended = json.loads(status)["containerStatuses"][0]["state"]["terminated"]
    assert (ended["exitCode"], ended["message"]) == (0, '{"bytes": 42}')


def test_an_image_of_nowhere_is_never_pulled(control_plane: ControlPlane, namespace: str) -> None:
    """A pod with an image of a registry under .invalid stays Pending, with a reason."""
    control_plane.kubectl("run", "stuck", "--image=registry.invalid/web:1", "-n", namespace)
    reason = "jsonpath={.status.containerStatuses[0].state.waiting.reason}=ImagePullBackOff"
    _wait(control_plane, namespace, "pod/stuck", reason)


def test_an_image_may_fail_or_never_be_ready(control_plane: ControlPlane, namespace: str) -> None:
    """`:fails` restarts later and later, or ends its pod and its Job; `:never-ready` runs and is not ready."""
    control_plane.kubectl("run", "again", "--image=registry.example/web:fails", "-n", namespace)
    control_plane.kubectl("run", "over", "--image=web:fails", "--restart=Never", "-n", namespace)
    control_plane.kubectl("run", "slow", "--image=web:never-ready", "-n", namespace)
    template = _pod("web:fails", restartPolicy="OnFailure")
    _apply(
        control_plane,
        namespace,
        "batch/v1",
        "Job",
        "retried",
        {"backoffLimit": 2, "template": template},
    )
    _wait(control_plane, namespace, "pod/again", CRASH_LOOP)
    _wait(control_plane, namespace, "pod/over", "jsonpath={.status.phase}=Failed")
    _wait(control_plane, namespace, "pod/slow", "jsonpath={.status.phase}=Running")
    _wait(control_plane, namespace, "pod/slow", "condition=Ready=false")
    _wait(control_plane, namespace, "job/retried", "condition=Failed")
    failed = control_plane.kubectl(
        "get", "job/retried", "-n", namespace, "-o=jsonpath={.status.conditions[*].reason}"
    )
    assert set(failed.stdout.split()) == {"BackoffLimitExceeded"}


def test_a_deleted_pod_ends(control_plane: ControlPlane, namespace: str) -> None:
    """The kubelet ends a deleted pod without waiting for its grace period."""
    control_plane.kubectl("run", "short", "--image=nginx", "-n", namespace)
    _wait(control_plane, namespace, "pod/short", "condition=Ready")
    control_plane.kubectl("delete", "pod/short", "--timeout=90s", "-n", namespace)


def test_a_stateful_set_has_volumes_that_grow(control_plane: ControlPlane, namespace: str) -> None:
    """A claim is bound to a volume of the default class, grows with its request, and is deleted with its volume."""
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    spec = {
        "serviceName": "db",
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": _pod("postgres:14"),
        "volumeClaimTemplates": [claim],
    }
    _apply(control_plane, namespace, "apps/v1", "StatefulSet", "db", spec)
    _wait(control_plane, namespace, "statefulset/db", "jsonpath={.status.readyReplicas}=2")
    patch = '{"spec": {"resources": {"requests": {"storage": "2Gi"}}}}'
    control_plane.kubectl("patch", "pvc/data-db-0", "--type=merge", f"-p={patch}", "-n", namespace)
    _wait(control_plane, namespace, "pvc/data-db-0", "jsonpath={.status.capacity.storage}=2Gi")
    claims = json.loads(control_plane.kubectl("get", "pvc", "-n", namespace, "-o=json").stdout)[
        "items"
    ]
    volumes = [f"pv/{claim['spec']['volumeName']}" for claim in claims]
    sizes = control_plane.kubectl(
        "get", *volumes, "-o=jsonpath={.items[*].spec.capacity.storage}"
    ).stdout
    assert sizes == "2Gi 1Gi"
    assert [claim["status"].get("conditions") for claim in claims] == [None, None]
    control_plane.kubectl(
        "delete", "statefulset/db", "pvc/data-db-0", "pvc/data-db-1", "-n", namespace
    )
    for volume in volumes:
        _wait(control_plane, namespace, volume, "delete")


def _pod(image: str, *, annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    """Return a pod template."""
    metadata = {"labels": {"app": "web"}, "annotations": annotations or {}}
    return {
        "metadata": metadata,
        "spec": {"containers": [{"name": "main", "image": image}], **spec},
    }


def _apply(
    plane: ControlPlane, namespace: str, version: str, kind: str, name: str, spec: dict[str, Any]
) -> None:
    metadata = {"name": name, "namespace": namespace}
    plane.kubectl(
        "apply",
        "-f-",
        input={"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec},
    )


def _wait(plane: ControlPlane, namespace: str, what: str, condition: str) -> None:
    plane.kubectl("wait", what, f"--for={condition}", "--timeout=90s", "-n", namespace)
