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

ROOT = Path(__file__).parents[3]
PARTS = ("certs", "config", "controller", "gatewright", "kube", "webhook")
FILES = ("pyproject.toml", "README.md", "LICENSE")
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
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of another version, in which `maximum` is denied, too."""
    source = tmp_path_factory.mktemp("other") / "source"
    for part in PARTS:
        shutil.copytree(ROOT / part, source / part, ignore=shutil.ignore_patterns("__pycache__"))
    for file in FILES:
        shutil.copy(ROOT / file, source / file)
    policy = source / "webhook/policies/replica_limits.py"
    text = policy.read_text()
    assert LIMIT in text
    policy.write_text(text.replace(LIMIT, LIMIT.replace(">", ">=")))
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    subprocess.run([*command, f"--wheel-dir={source.parent}", source], check=True, timeout=300)
    (built,) = source.parent.glob("*.whl")
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
    """What only it denies is listed; what both deny is unchanged, also in recorded reviews."""
    request = {
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
            "spec": {"replicas": 10},
        },
    }
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    Path("reviews.jsonl").write_text(json.dumps(review))
    options = ("--against", str(wheel), "--reviews", "reviews.jsonl", "-o", "json")
    code, out, err = impact(*options, "few.yaml", "few.yaml", "shop.yaml")
    assert (code, err) == (0, "")
    verdicts = {each["name"]: each["verdict"] for each in json.loads(out)["results"]}
    assert verdicts == {"shop": "no longer denied", "big": "unchanged", "live": "no longer denied"}


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
    labels = ("--namespace-labels", "web=team=shop", "-n", "web")
    code, out, _ = impact(
        "--against", "gatewright:0.1.0", *labels, str(old), "few.yaml", "shop.yaml"
    )
    assert code == 1
    assert "newly denied  Deployment web/big" in out
    given = docker.read_text().splitlines()
    image = given.index("gatewright:0.1.0")
    assert given[:3] == ["run", "--rm", "--network=none"]
    assert {f"--volume={work}:{work}:ro", f"--volume={old}:{old}:ro"} <= set(given[:image])
    assert given[image + 1] == "check"
    assert given[-2:] == ["--", "shop.yaml"]
    assert "few.yaml" not in given[image:]


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
