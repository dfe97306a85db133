from pathlib import Path

import pytest
import yaml

from tests.config.chart_files import plain
from tests.config.chart_page import rows
from tests.config.regenerate import (
    CHART,
    LEFT_OVER,
    OUTDATED,
    ROOT,
    from_chart,
    from_types,
    from_values,
    stale,
)
from tests.controlplane.plane import ControlPlane


def test_the_charts_generated_files_are_current():
    """`make manifests` changes no committed file that needs no helm, and leaves none over."""
    expected = from_types()
    assert stale(expected) == [], OUTDATED
    for directory in ("config/crd/bases", "charts/gatewright/files"):
        there = {
            str(path.relative_to(ROOT)) for path in (ROOT / directory).rglob("*") if path.is_file()
        }
        assert there - expected.keys() == set(), LEFT_OVER


def test_the_charts_readme_is_current():
    """Each value has a description, from which the README is generated."""
    values = rows((ROOT / CHART / "values.yaml").read_text())
    undescribed = [name for name, _, meaning in values if not meaning]
    assert undescribed == [], "write a comment above each of these in values.yaml"
    assert stale(from_values()) == [], OUTDATED


def test_the_plain_manifests_are_current(helm: Path):
    """`make manifests` changes none of the files rendered from the chart."""
    assert stale(from_chart(helm)) == [], OUTDATED


def test_rbac_begins_with_the_namespace():
    """The Namespace comes first, workloads are in another file, and CRDs are not repeated."""
    kinds = ["Deployment", "Role", "CustomResourceDefinition", "ServiceAccount", "Service"]
    sorted_out = plain(yaml.safe_dump_all({"kind": kind} for kind in kinds))
    assert {
        path: [each["kind"] for each in yaml.safe_load_all(text)]
        for path, text in sorted_out.items()
    } == {
        "config/rbac/rbac.yaml": ["Namespace", "Role", "ServiceAccount"],
        "config/manager/manager.yaml": ["Deployment", "Service"],
    }


@pytest.mark.controlplane("kube-scheduler", "kube-controller-manager", "hollow-kubelet")
def test_both_deployments_become_available(installed: ControlPlane):
    """S2: in a namespace that enforces Pod Security `restricted`, the pods of both Deployments are admitted and run."""
    for name in ("gatewright-controller-manager", "gatewright-webhook"):
        awaited = ["--for=condition=Available", f"deployment/{name}", "--timeout=90s"]
        installed.kubectl("wait", "--namespace=gatewright-system", *awaited)


@pytest.mark.controlplane
def test_applied_objects_are_stored_unchanged(installed: ControlPlane):
    """No field is dropped or rewritten, so tools that compare find no difference."""
    for directory in ("crd/bases", "rbac", "manager"):
        assert installed.kubectl("diff", "-f", str(ROOT / "config" / directory)).stdout == ""


@pytest.mark.controlplane("kube-controller-manager")
def test_the_built_in_roles_include_gatewrights_kinds(installed: ControlPlane):
    """The roles edit and admin include writing WebApps; view includes reading only."""
    for role, expected in (("edit", "yes"), ("view", "no")):
        installed.kubectl(
            "create", "rolebinding", role, f"--clusterrole={role}", f"--user={role}er"
        )
        installed.kubectl("auth", "can-i", "list", "webapps", f"--as={role}er")
        asked = installed.kubectl(
            "auth", "can-i", "create", "webapps", f"--as={role}er", check=False
        )
        assert asked.stdout.strip() == expected
