"""Users' own controllers as processes on a real API server."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gatewright.tools.scaffolds.kind_files import NewKind, in_package
from tests.controlplane.audit import WRITES
from tests.controlplane.plane import ControlPlane
from tests.controlplane.processes import Process, Reaper
from tests.gatewright.documented import blocks
from tests.gatewright.packages import declare
from tests.gatewright.started import COMMAND, once
from tests.waiting import until

WIDGETS = Path("config/crd/bases/example.com_widgets.yaml")
COGS = {
    "apiVersion": "example.com/v1",
    "kind": "Widget",
    "metadata": {"name": "cogs"},
    "spec": {"replicas": 2},
}


@contextmanager
def running(log: Path, *command: str, **environment: str) -> Iterator[Process]:
    """Run a process until an interrupt; it must end cleanly."""
    reaper = Reaper()
    settings = {
        "GATEWRIGHT_METRICS_LISTEN": "127.0.0.1:0",
        "GATEWRIGHT_HEALTH_LISTEN": "127.0.0.1:0",
    }
    variables = [f"{name}={value}" for name, value in {**settings, **environment}.items()]
    process = Process(log.stem, ["/usr/bin/env", *variables, *command], log, reaper)
    process.start()
    try:
        yield process
        assert process.end(20.0) == 0, log.read_text()
    finally:
        reaper.close()


def until_logged(process: Process, text: str) -> None:
    """Wait until a process has logged a text: before that, it may have no signal handlers yet."""
    until(lambda: process.died or text in process.log.read_text(), within=30, problem=process.tail)
    assert not process.died, process.tail()


@pytest.mark.controlplane("kube-controller-manager", "kube-scheduler", "hollow-kubelet")
def test_the_examples_run(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> None:
    """`python widgets.py` and `python deployments.py` run side by side, as on the page."""
    control_plane.kubectl(
        "apply", "--server-side", "-f", str(WIDGETS)
    )  # earlier tests may have left objects
    control_plane.kubectl("wait", "--for=condition=Established", "crd/widgets.example.com")
    where = {"KUBECONFIG": str(control_plane.kubeconfig), "GATEWRIGHT_NAMESPACES": namespace}
    for name, block in (("widgets", "Widgets"), ("deployments", "Logs")):
        (tmp_path / f"{name}.py").write_text(blocks()[block])
    log = tmp_path / "deployments.log"
    mark = control_plane.audit_mark()
    with (
        running(tmp_path / "widgets.log", sys.executable, str(tmp_path / "widgets.py"), **where),
        running(log, sys.executable, str(tmp_path / "deployments.py"), **where) as deployments,
    ):
        control_plane.kubectl("apply", "-n", namespace, "-f", "-", input=COGS)
        available = "--for=jsonpath={.status.availableReplicas}=2"
        control_plane.kubectl("wait", available, "widget/cogs", "-n", namespace, "--timeout=90s")
        ready = "--for=condition=Ready"
        control_plane.kubectl("wait", ready, "widget/cogs", "-n", namespace, "--timeout=90s")
        until_logged(deployments, "saw deployment")
    saw = [
        line
        for line in map(json.loads, log.read_text().splitlines())
        if line["message"] == "saw deployment"
    ]
    assert {(line["name"], line["replicas"]) for line in saw} == {(f"{namespace}/cogs", 2)}
    written = [
        audited["objectRef"]["resource"]
        for audited in control_plane.audit_events(mark, namespace=namespace, verb=WRITES)
        if audited["userAgent"] == "widgets" and audited["responseStatus"]["code"] < 300
    ]
    assert (written.count("deployments"), written.count("events")) == (1, 1)


@pytest.mark.controlplane
def test_a_controller_that_cannot_run_prints_one_line(tmp_path: Path) -> None:
    """The exit code is 1."""
    script = tmp_path / "deployments.py"
    script.write_text(blocks()["Logs"])
    for variable, message in (
        ("GATEWRIGHT_WORKERS=none", '$GATEWRIGHT_WORKERS: "none": should be a valid integer'),
        (f"GATEWRIGHT_KUBECONFIG={tmp_path}/none", f"{tmp_path}/none: no such file or directory"),
    ):
        done = subprocess.run(
            ["/usr/bin/env", "-i", variable, sys.executable, str(script)],
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert (done.returncode, done.stdout) == (1, "")
        assert json.loads(done.stderr)["message"].startswith(message)


@pytest.mark.controlplane
def test_a_package_works_with_its_generated_rights(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    """It is scaffolded, installed, and gets the CRD and RBAC that Gatewright prints; its sample becomes ready."""
    group = f"{namespace}.example.com"  # the CRD and RBAC are cluster-scoped
    for path, text in in_package(
        NewKind("Sprocket", group, "v1", "sprockets"), "our-kinds", is_new=True
    ).items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    declare(tmp_path, sprocket="our_kinds.sprocket:SPROCKET")
    account = ("--namespace", namespace, "--controller-account", "maker")
    control_plane.kubectl("create", "serviceaccount", "maker", "-n", namespace)
    for printed in (once("crds", "Sprocket", path=tmp_path), once("rbac", *account, path=tmp_path)):
        control_plane.kubectl("apply", "-f", "-", input=printed.stdout)
    control_plane.kubectl("wait", "--for=condition=Established", f"crd/sprockets.{group}")
    own = control_plane.service_account_kubeconfig(namespace, "maker")
    options = ("--kubeconfig", str(own), "--kinds", "Sprocket", "--no-leader-elect")
    mark = control_plane.audit_mark()
    with running(
        tmp_path / "controller.log", str(COMMAND), "controller", *options, PYTHONPATH=str(tmp_path)
    ):
        control_plane.kubectl(
            "apply", "-n", namespace, "-f", str(tmp_path / "samples/my-sprocket.yaml")
        )
        sprocket = f"sprockets.{group}/my-sprocket"
        control_plane.kubectl(
            "wait", "--for=condition=Ready", sprocket, "-n", namespace, "--timeout=90s"
        )
        message = control_plane.kubectl(
            "get", "configmap", "my-sprocket", "-n", namespace, "-o", "jsonpath={.data.message}"
        )
        assert message.stdout == "hello"
    user = f"system:serviceaccount:{namespace}:maker"
    answers = [
        event for event in control_plane.audit_events(mark) if event["user"]["username"] == user
    ]
    refused = [event for event in answers if event["responseStatus"]["code"] == 403]
    assert [(each["verb"], each["objectRef"]) for each in refused] == []
    assert {event["responseStatus"]["code"] for event in answers} == {200, 201}


@pytest.mark.controlplane("kube-controller-manager")
def test_tenants_work_with_their_generated_rights(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    """TenantNamespace as on the page: with `bind` on the one role that it names, it grants and repairs."""
    (tmp_path / "tenants").mkdir()
    (tmp_path / "tenants/tenantnamespace.py").write_text(blocks()["TenantNamespace"])
    declare(tmp_path, tenantnamespace="tenants.tenantnamespace:TENANT_NAMESPACE")
    account = ("--namespace", namespace, "--controller-account", "maker")
    control_plane.kubectl("create", "serviceaccount", "maker", "-n", namespace)
    rights = once("rbac", *account, path=tmp_path)
    for printed in (once("crds", "TenantNamespace", path=tmp_path), rights):
        control_plane.kubectl("apply", "-f", "-", input=printed.stdout)
    crd = "crd/tenantnamespaces.platform.example.com"
    control_plane.kubectl("wait", "--for=condition=Established", crd)
    own = control_plane.service_account_kubeconfig(namespace, "maker")
    options = ("--kubeconfig", str(own), "--kinds", "TenantNamespace", "--no-leader-elect")
    team = f"{namespace}-team"
    tenant = {
        "apiVersion": "platform.example.com/v1",
        "kind": "TenantNamespace",
        "metadata": {"name": team},
        "spec": {"editors": ["developers"]},
    }
    taken = {**tenant, "metadata": {"name": namespace}}
    mallory = [{"op": "add", "path": "/subjects/-", "value": {"kind": "User", "name": "mallory"}}]
    log = tmp_path / "controller.log"
    with running(log, str(COMMAND), "controller", *options, PYTHONPATH=str(tmp_path)):
        for manifest in (tenant, taken):
            control_plane.kubectl("apply", "-f-", input=manifest)
        kubectl = control_plane.kubectl
        kubectl("wait", "--for=condition=Ready", f"tenantnamespace/{team}", "--timeout=90s")
        reason = "--for=jsonpath={.status.conditions[0].reason}=NameTaken"
        kubectl("wait", reason, f"tenantnamespace/{namespace}", "--timeout=90s")
        kubectl("delete", "resourcequota/tenant", "-n", team)
        kubectl("wait", "--for=create", "resourcequota/tenant", "-n", team, "--timeout=90s")
        kubectl(
            "patch", "rolebinding/editors", "--type=json", "-p", json.dumps(mallory), "-n", team
        )

        def subjects() -> list[str]:
            path = "-o=jsonpath={.subjects[*].name}"
            return kubectl("get", "rolebinding/editors", "-n", team, path).stdout.split()

        until(lambda: subjects() == ["developers"], within=30)
        kubectl("delete", "tenantnamespace", team, namespace, "--timeout=90s")
        kubectl("wait", "--for=delete", f"namespace/{team}", "--timeout=60s")
    assert kubectl("get", "namespace", namespace).returncode == 0
    kubectl("delete", crd)
