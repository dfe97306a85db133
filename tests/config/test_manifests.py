from pathlib import Path

import pytest
import yaml

from config.manifests import plain
from tests.config.chart_page import rows
from tests.config.regenerate import CHART, ROOT, from_chart, from_types, from_values
from tests.controlplane.plane import ControlPlane


def test_what_the_chart_reads_is_current():
    """`make manifests` would change none of the committed files that need no helm, and none is left over."""
    expected = from_types()
    assert expected == {path: (ROOT / path).read_text() for path in expected}
    for directory in ("config/crd/bases", "charts/gatewright/files"):
        there = {str(path.relative_to(ROOT)) for path in (ROOT / directory).rglob("*") if path.is_file()}
        assert there == {path for path in expected if path.startswith(directory)}


def test_the_page_of_the_chart_is_current():
    """Each value has a meaning, and the README that Helm shows is made from them."""
    assert [name for name, _, meaning in rows((ROOT / CHART / "values.yaml").read_text()) if not meaning] == []
    assert from_values() == {path: (ROOT / path).read_text() for path in from_values()}


def test_the_plain_manifests_are_current(helm: Path):
    """`make manifests` would change none of the files that are made from the chart."""
    expected = from_chart(helm)
    assert expected == {path: (ROOT / path).read_text() for path in expected}


def test_rights_come_first_and_definitions_elsewhere():
    """The Namespace leads the rights, everything else follows them, and the definitions are not repeated."""
    kinds = ["Deployment", "Role", "CustomResourceDefinition", "ServiceAccount", "Service"]
    sorted_out = plain(yaml.safe_dump_all({"kind": kind} for kind in kinds))
    assert {path: [each["kind"] for each in yaml.safe_load_all(text)] for path, text in sorted_out.items()} == {
        "config/rbac/rbac.yaml": ["Namespace", "Role", "ServiceAccount"],
        "config/manager/manager.yaml": ["Deployment", "Service"],
    }


@pytest.mark.controlplane("kube-scheduler", "kube-controller-manager", "hollow-kubelet")
def test_both_deployments_become_available(installed: ControlPlane):
    """S2: in a namespace that enforces Pod Security `restricted`, the pods of both Deployments are admitted and run."""
    for name in ("gatewright-controller-manager", "gatewright-webhook"):
        awaited = ["--for=condition=Available", f"deployment/{name}", "--timeout=30s"]
        installed.kubectl("wait", "--namespace=gatewright-system", *awaited)


@pytest.mark.controlplane
def test_the_server_has_what_was_applied(installed: ControlPlane):
    """No field is dropped or rewritten on the way, so that tools which compare find no drift."""
    for directory in ("crd/bases", "rbac", "manager"):
        assert installed.kubectl("diff", "-f", str(ROOT / "config" / directory)).stdout == ""
