"""The wheel in an empty environment, as the GitHub Action installs it: it is complete."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from gatewright import __version__
from gatewright.tools.scaffolds.kind_files import NewKind, in_package

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
SET = """\
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata: {name: image-tags}
spec: {policy: image-tags}
"""
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: shop}
spec: {containers: [{name: app, image: "nginx:latest"}]}
"""
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory of the command that the GitHub Action installs on a runner."""
    runner = tmp_path_factory.mktemp("runner")
    steps = yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"]
    (install,) = [each["run"] for each in steps if each["name"] == "Install Gatewright"]
    variables = {
        **os.environ,
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
        "RUNNER_TEMP": str(runner),
        "GITHUB_ACTION_PATH": str(ROOT),
    }
    bash = ("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c")
    subprocess.run([*bash, install], env=variables, check=True, timeout=600)
    return runner / "gatewright/bin"


@pytest.fixture
def run(installed: Path, tmp_path: Path) -> Run:
    """Run the installed `gatewright` in an empty directory."""

    def call(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        variables = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], **environment}
        command = [installed / "gatewright", *arguments]
        return subprocess.run(
            command, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=120
        )

    return call


def test_it_prints_its_version(run: Run) -> None:
    """Both the command and the option work."""
    for argument in ("version", "--version"):
        assert (run(argument).stdout, run(argument).returncode) == (
            f"gatewright {__version__}\n",
            0,
        )


def test_it_checks_manifests(run: Run, tmp_path: Path) -> None:
    """A violation is exit code 1."""
    (tmp_path / "set.yaml").write_text(SET)
    (tmp_path / "pod.yaml").write_text(POD)
    checked = run("check", "--policies", "set.yaml", "pod.yaml")
    assert (checked.returncode, checked.stderr) == (1, "")
    assert 'image-tags: spec.containers[name=app].image: "nginx:latest"' in checked.stdout


def test_the_wheel_has_its_data(run: Run) -> None:
    """Every command exists, with the policy sets and samples that the demo uses."""
    assert run("demo").returncode == 0
    assert "example.com" in run("crds").stdout
    assert run("explain", "image-tags").returncode == 0
    assert run("explain", "baseline").returncode == 0


def test_a_package_is_installed_as_its_readme_describes(run: Run, tmp_path: Path) -> None:
    """The image recipe installs the package beside Gatewright, without an index."""
    kind = NewKind("Sprocket", "example.com", "v1", "sprockets")
    for name, text in in_package(kind, "our-kinds", is_new=True).items():
        (tmp_path / "src" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "src" / name).write_text(text)
    (recipe,) = (
        line
        for line in (tmp_path / "src/README.md").read_text().splitlines()
        if line.startswith("RUN pip")
    )
    pip = [
        *recipe.removeprefix("RUN ")
        .replace("/kinds", "kinds")
        .replace("/src", f"{tmp_path}/src")
        .split()
    ]
    subprocess.run([sys.executable, "-m", *pip], cwd=tmp_path, check=True, timeout=300)
    listed = run("crds", "Sprocket", PYTHONPATH=str(tmp_path / "kinds"))
    assert "name: sprockets.example.com" in listed.stdout, listed.stderr
