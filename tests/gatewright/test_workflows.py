"""The workflows pin every action, use existing targets, and stop after a failed scan."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yaml"))
USES = re.compile(r"uses: (\S+)@(\S+)(?: # (v\d+\.\d+\.\d+))?$", re.MULTILINE)


def jobs(name: str) -> dict[str, Any]:
    """Return the jobs of a workflow."""
    loaded: dict[str, Any] = yaml.safe_load((ROOT / f".github/workflows/{name}.yaml").read_text())
    return loaded["jobs"]


def test_every_python_of_the_package_is_tested() -> None:
    """The classifiers name the versions that the unit tests run on."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = [each.rpartition(" ")[2] for each in project["classifiers"] if "Python :: 3." in each]
    assert jobs("ci")["unit"]["strategy"]["matrix"]["python"] == named
    assert project["requires-python"] == f">={named[0]}"


def test_actions_are_pinned_by_commit() -> None:
    """Each action has one commit in all workflows, with its version as a comment."""
    used = [match for file in WORKFLOWS for match in USES.findall(file.read_text())]
    assert [each for each in used if not (re.fullmatch(r"[0-9a-f]{40}", each[1]) and each[2])] == []
    assert len({action for action, *_ in used}) == len(set(used))
    assert sum(file.read_text().count("uses:") for file in WORKFLOWS) == len(used)


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_workflows_use_existing_names(file: Path) -> None:
    """Make targets, needed jobs, and permissions exist."""
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    called = re.findall(r"run: make ((?:[a-z-]+ ?)+)", file.read_text())
    assert {target for each in called for target in each.split()} <= set(targets)
    workflow = yaml.safe_load(file.read_text())
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        needs = job.get("needs", [])
        assert set([needs] if isinstance(needs, str) else needs) <= set(workflow["jobs"])
        assert job["timeout-minutes"] <= 60


def test_a_failed_scan_stops_the_deployment() -> None:
    """High and critical findings with a fix end the job, and the findings are still uploaded."""
    scan, upload = jobs("ci")["scan"]["steps"][1:]
    gate = {"severity": "HIGH,CRITICAL", "ignore-unfixed": True, "exit-code": "1"}
    assert scan["with"].items() >= gate.items()
    assert upload["if"] == "always()"
    assert "scan" in jobs("ci")["deploy"]["needs"]
    steps = jobs("release")["images"]["steps"]
    scanned, pushed = (
        next(n for n, each in enumerate(steps) if key in each.get("with", {}))
        for key in ("exit-code", "push")
    )
    assert steps[scanned]["with"].items() >= gate.items()
    assert scanned < pushed


def test_a_release_has_all_its_parts() -> None:
    """Both tags of the image, both platforms, an SBOM, and signatures for image, chart and files."""
    release = jobs("release")
    assert list(release) == ["verify", "wheel", "images", "chart", "release"]
    (push,) = (
        step["with"] for step in release["images"]["steps"] if step.get("with", {}).get("push")
    )
    assert (push["platforms"], push["sbom"], push["provenance"]) == (
        "linux/amd64,linux/arm64",
        True,
        "mode=max",
    )
    tags = [tag.rpartition(":")[2] for tag in push["tags"].split("\n") if tag]
    assert tags == ["${{ needs.verify.outputs.version }}", "v${{ needs.verify.outputs.version }}"]
    for name in ("images", "chart", "release"):
        assert any("cosign sign" in each.get("run", "") for each in release[name]["steps"])
        assert release[name]["permissions"]["id-token"] == "write"
