"""`gatewright impact --against`: the verdicts of another version on the same objects."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gatewright.cli import main
from tests.controlplane.fixtures import available
from tests.node.previous import sources

LIMIT = "        if number > most:\n"
POLICY = """\
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata: {name: few}
spec: {policy: replica-limits, params: {maximum: 10}}
"""
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: %s, namespace: web}
spec: {replicas: %d}
"""
REVIEW = {
    "apiVersion": "admission.k8s.io/v1",
    "kind": "AdmissionReview",
    "request": {
        "uid": "1",
        "kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
        "resource": {"group": "apps", "version": "v1", "resource": "deployments"},
        "name": "live",
        "namespace": "web",
        "operation": "CREATE",
        "userInfo": {"username": "somebody"},
        "object": {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "live", "namespace": "web"},
            "spec": {"replicas": 11},
        },
    },
}
# Stands for docker: it takes the options, and runs this version instead of the image's.
DOCKER = """\
#!/bin/sh
printf '%s\\n' "$@" > "$DOCKER_ARGUMENTS"
until [ "$1" = check ]; do shift; done
exec {gatewright} "$@"
"""
Impact = Callable[..., tuple[object, str, str]]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory with a policy and two Deployments: one at the limit, one above it."""
    monkeypatch.chdir(tmp_path)
    Path("few.yaml").write_text(POLICY)
    Path("shop.yaml").write_text(f"{DEPLOYMENT % ('shop', 10)}---\n{DEPLOYMENT % ('big', 11)}")


@pytest.fixture
def impact(capsys: pytest.CaptureFixture[str]) -> Impact:
    """Run `gatewright impact`; return exit code, stdout and stderr."""

    def run(*arguments: str) -> tuple[object, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(["impact", *arguments])
        out, err = capsys.readouterr()
        return ended.value.code, out, err

    return run


@pytest.fixture(scope="module")
def wheel(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of the previous release, changed so that `maximum` is denied, too."""
    directory = tmp_path_factory.mktemp("other")
    source = directory / "source"
    shutil.copytree(available(pytestconfig, sources), source)
    policy = source / "webhook/policies/replica_limits.py"
    text = policy.read_text()
    assert LIMIT in text
    policy.write_text(text.replace(LIMIT, LIMIT.replace(">", ">=")))
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    subprocess.run([*command, f"--wheel-dir={directory}", source], check=True, timeout=300)
    (built,) = directory.glob("*.whl")
    return built


@pytest.fixture
def _shared_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the other version use this environment's packages, so that pip downloads none."""
    monkeypatch.setenv("PIP_NO_DEPS", "1")
    packages = [path for path in sys.path if path.endswith("site-packages")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(packages))


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A docker on the PATH; return the file with its arguments, one a line."""
    programs = tmp_path / "programs"
    programs.mkdir()
    gatewright = Path(sys.executable).with_name("gatewright")
    (programs / "docker").write_text(DOCKER.replace("{gatewright}", str(gatewright)))
    (programs / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("DOCKER_ARGUMENTS", str(tmp_path / "arguments"))
    return tmp_path / "arguments"


@pytest.mark.long
@pytest.mark.usefixtures("_shared_packages")
def test_a_wheel_judges_by_its_own_engine(impact: Impact, wheel: Path) -> None:
    """What only it denies is listed; what both deny is unchanged.

    The previous release has fewer options than this one. Neither reads the project file.
    """
    Path("gatewright.yaml").write_text("manifests: [nowhere]\n")
    options = ("--against", str(wheel), "-o", "json")
    code, out, err = impact(*options, "few.yaml", "few.yaml", "shop.yaml")
    assert (code, err) == (0, "")
    verdicts = {each["name"]: each["verdict"] for each in json.loads(out)["results"]}
    assert verdicts == {"shop": "no longer denied", "big": "unchanged"}


@pytest.mark.long
def test_an_image_reads_the_same_files(impact: Impact, docker: Path, tmp_path: Path) -> None:
    """It runs without network, and sees the working directory and files that are named elsewhere."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    old = elsewhere / "old.yaml"
    old.write_text(POLICY.replace("10", "20"))
    work = tmp_path / "work"
    work.mkdir()
    os.chdir(work)
    shutil.copy("../shop.yaml", ".")
    shutil.copy("../few.yaml", ".")
    Path("reviews.jsonl").write_text(json.dumps(REVIEW))
    labels = ("--namespace-labels", "web=team=shop", "-n", "web")
    options = ("--against", "gatewright:0.1.0", *labels, "--reviews", "reviews.jsonl")
    code, out, _ = impact(*options, str(old), "few.yaml", "shop.yaml")
    assert code == 1
    assert "newly denied  Deployment web/big" in out
    assert "newly denied  Deployment web/live" in out
    given = docker.read_text().splitlines()
    image = given.index("gatewright:0.1.0")
    assert given[:3] == ["run", "--rm", "--network=none"]
    assert {f"--volume={work}:{work}:ro", f"--volume={old}:{old}:ro"} <= set(given[:image])
    assert given[image + 1] == "check"
    assert given[-2:] == ["--", "shop.yaml"]
    assert "few.yaml" not in given[image:]
    code, out, _ = impact(*options, str(old), "few.yaml")
    assert code == 1
    assert "newly denied  Deployment web/live" in out
    assert "web/big" not in out


def test_a_version_that_cannot_run_is_named(
    impact: Impact, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without docker and podman an image is an error, not an empty comparison."""
    monkeypatch.setenv("PATH", "")
    code, _, err = impact("--against", "gatewright:0.1.0", "few.yaml", "few.yaml", "shop.yaml")
    assert code == 3
    assert "gatewright:0.1.0: no wheel" in err


def test_standard_input_cannot_be_read_twice(impact: Impact) -> None:
    """Both versions read the manifests."""
    code, _, err = impact("--against", "gatewright:0.1.0", "few.yaml", "few.yaml", "-")
    assert code == 2
    assert "standard input cannot be one" in err
