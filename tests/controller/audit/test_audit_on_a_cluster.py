"""The audit of `gatewright controller` on a real API server, from the first report to the last fixed violation."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.controller.audit.reported import until_reported
from tests.controlplane.plane import ControlPlane
from tests.gatewright.started import Gatewright, call

pytestmark = [pytest.mark.controlplane, pytest.mark.long]

ROOT = Path(__file__).parents[3]
WITHIN = 60.0  # seconds
POLICY = """\
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata: {name: few}
spec:
  policy: replica-limits
  params: {maximum: 2}
  validationActions: [Warn]
  match: {any: [{namespaces: [shop]}]}
"""
MESSAGE = "spec.replicas: 3; production workloads cannot exceed 2 replicas. Set it to 2 or less."


@pytest.fixture
def plane(empty_plane: ControlPlane) -> ControlPlane:
    """A cluster of the test's own, with the CRDs of policies and reports, a policy and three Deployments."""
    empty_plane.kubectl("apply", "--server-side", "-f", str(ROOT / "config/crd/bases"))
    empty_plane.kubectl(
        "apply", "--server-side", "-f", str(ROOT / "config/crd/reports/openreports.io.yaml")
    )
    empty_plane.create_namespace("shop")
    empty_plane.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=90s")
    empty_plane.kubectl("apply", "-f", "-", input=POLICY)
    for name, replicas in (("many", 3), ("more", 3), ("few", 1)):
        image = "registry.company.com/app:1"
        empty_plane.kubectl(
            "create", "deployment", name, "-n", "shop", f"--image={image}", f"--replicas={replicas}"
        )
    return empty_plane


@pytest.fixture
def controllers(plane: ControlPlane, tmp_path: Path) -> Iterator[list[Gatewright]]:
    """Two controllers that audit every second and share one Lease; tests start them."""
    options = (
        "--kinds",
        "none",
        "--audit",
        "--audit-interval",
        "1s",
        "--audit-qps",
        "200",
        "--namespace",
        "default",
    )
    lease = ("--lease-duration", "3s", "--renew-deadline", "2s", "--retry-period", "500ms")
    with ExitStack() as stack:
        yield [
            stack.enter_context(Gatewright(plane, tmp_path, "controller", *options, *lease))
            for _ in range(2)
        ]


def test_violations_are_reported_until_they_are_fixed(
    plane: ControlPlane, controllers: list[Gatewright]
) -> None:
    """The next leader continues after the first one is killed; the policy's status has the numbers."""
    leader, standby = controllers
    leader.start()
    until_reported(plane, {"many": [MESSAGE], "more": [MESSAGE]})
    wait = ("wait", "clusteradmissionpolicy/few", f"--timeout={WITHIN:.0f}s")
    plane.kubectl(*wait, "--for=jsonpath={.status.wouldDeny}=2", timeout=WITHIN)
    standby.start()
    leader.kill()
    plane.kubectl("scale", "deployment", "many", "-n", "shop", "--replicas=2")
    until_reported(plane, {"more": [MESSAGE]})
    plane.kubectl("delete", "deployment", "more", "-n", "shop")
    until_reported(plane, {})
    plane.kubectl(*wait, "--for=jsonpath={.status.wouldDeny}=0", timeout=WITHIN)


def test_exceptions_for_existing_violations_are_written_and_counted(
    plane: ControlPlane,
    controllers: list[Gatewright],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With the exceptions, no violations are left; later, the audit and the command report the unused one."""
    deny = '{"spec": {"validationActions": ["Deny"]}}'
    plane.kubectl("patch", "clusteradmissionpolicy", "few", "--type=merge", "-p", deny)
    cluster = ("--kubeconfig", str(plane.kubeconfig), "--installed-in", "default")
    file = tmp_path / "exceptions.yaml"
    because = ("--expires", "2100-01-01", "--reason", "older than the rule")
    assert (
        call(capsys, "check", *cluster, "--write-exceptions", str(file), *because).returncode == 1
    )
    plane.kubectl("apply", "-f", str(file))
    assert call(capsys, "check", *cluster).returncode == 0
    many, more = (
        object["metadata"]["name"]
        for object in json.loads(plane.kubectl("get", "-f", str(file), "-o", "json").stdout)[
            "items"
        ]
    )
    controllers[0].start()
    wait = ("wait", f"--timeout={WITHIN:.0f}s")
    for name in (many, more):
        covers = (f"policyexception/{name}", "--for=jsonpath={.status.covers}=1")
        plane.kubectl(*wait, *covers, timeout=WITHIN)
    assert call(capsys, "exceptions", *cluster).returncode == 0
    plane.kubectl("scale", "deployment", "many", "-n", "shop", "--replicas=1")
    covers = (f"policyexception/{many}", "--for=jsonpath={.status.covers}=0")
    plane.kubectl(*wait, *covers, timeout=WITHIN)
    listed = call(capsys, "exceptions", *cluster)
    assert listed.returncode == 1
    assert listed.stdout.splitlines()[-1] == "2 exceptions: 1 unused, 1 in use"
    assert f"unused  PolicyException default/{many}" in listed.stdout
