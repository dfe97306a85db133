"""How the programs of the control plane are found."""

import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from tests.controlplane import fixtures
from tests.controlplane.binaries import PROGRAMS, find_binaries, found_helm, helm_binary
from tests.controlplane.gobuild import BuildError, MissingToolError, build

HELLO = 'package main\n\nfunc main() {\n\tprint("hello")\n}\n'
needs_go = pytest.mark.skipif(not shutil.which("go"), reason="there is no Go")
ENVTEST = (
    "KUBEBUILDER_ASSETS",
    *("TEST_ASSET_" + name.upper().replace("-", "_") for name in PROGRAMS),
)


@pytest.fixture(autouse=True)
def _nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of envtest."""
    for name in ENVTEST:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A Go module that builds in a moment, and an empty cache of built programs."""
    gocache = subprocess.run(
        ["go", "env", "GOCACHE"], capture_output=True, text=True, check=True
    ).stdout.strip()
    monkeypatch.setenv("GOCACHE", gocache)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    directory = tmp_path / "module"
    directory.mkdir()
    (directory / "go.mod").write_text("module example.invalid/hello\n\ngo 1.20\n")
    (directory / "go.sum").touch()
    (directory / "main.go").write_text(HELLO)
    return directory


def _programs(directory: Path, *names: str) -> Path:
    directory.mkdir()
    for name in names:
        (directory / name).touch(mode=0o755)
    return directory


def test_the_variables_of_envtest_come_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """KUBEBUILDER_ASSETS is a directory of programs, and TEST_ASSET_… names one program in particular."""
    assets = _programs(tmp_path / "assets", "etcd", "kube-apiserver", "kubectl")
    other = _programs(tmp_path / "other", "etcd")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(assets))
    monkeypatch.setenv("TEST_ASSET_ETCD", str(other / "etcd"))
    assert find_binaries.__wrapped__() == {
        "etcd": other / "etcd",
        "kube-apiserver": assets / "kube-apiserver",
        "kubectl": assets / "kubectl",
    }


def test_an_incomplete_set_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If one of envtest's three programs is missing, the error names it and the searched directories."""
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(_programs(tmp_path / "assets", "etcd")))
    with pytest.raises(
        MissingToolError, match=r"kube-apiserver is not at .*/assets/kube-apiserver"
    ):
        find_binaries.__wrapped__()


def test_without_go_the_error_names_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With neither Go nor binaries the error names both."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("tests.controlplane.binaries.DEFAULT_ASSETS", tmp_path / "none")
    with pytest.raises(
        MissingToolError, match=r"KUBEBUILDER_ASSETS is not set, and there is no Go \(1.26 or newer"
    ):
        find_binaries.__wrapped__()


def test_a_helm_on_the_path_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is built if helm is installed."""
    monkeypatch.setenv("PATH", str(_programs(tmp_path / "bin", "helm")))
    assert helm_binary.__wrapped__() == tmp_path / "bin" / "helm"
    assert found_helm() == tmp_path / "bin" / "helm"


def test_looking_for_helm_builds_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`make manifests` renders the chart only if a helm exists."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(
        "shutil.which", lambda name, which=shutil.which: name != "helm" and which(name)
    )
    assert found_helm() is None
    assert list(tmp_path.iterdir()) == []


@needs_go
def test_a_program_is_built_once(module: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A second build of the same content uses the cached program; one of other content does not."""
    program = build(module, ".", "hello")
    assert "building hello" in capfd.readouterr().err
    assert build(module, ".", "hello") == program
    assert capfd.readouterr().err == ""
    (module / "main.go").write_text(HELLO.replace("hello", "goodbye"))
    assert build(module, ".", "hello") != program


@needs_go
def test_two_builds_at_once_make_one_program(
    module: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The second build waits for the first, and builds nothing."""
    with ThreadPoolExecutor(2) as threads:
        first, second = [threads.submit(build, module, ".", "hello") for _ in range(2)]
    assert first.result() == second.result()
    assert capfd.readouterr().err.count("done in") == 1


@needs_go
def test_a_failed_build_shows_the_error_of_the_compiler(module: Path) -> None:
    """The error ends with the Go compiler's error, and no incomplete build remains."""
    (module / "main.go").write_text("package main\n\nfunc main() { undefined() }\n")
    with pytest.raises(BuildError, match="undefined: undefined"):
        build(module, ".", "hello")


@pytest.mark.parametrize(
    ("ci", "outcome"), [("false", pytest.skip.Exception), ("true", pytest.fail.Exception)]
)
def test_without_a_control_plane_tests_skip_or_fail(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    ci: str,
    outcome: type[BaseException],
) -> None:
    """Such tests are skipped with the reason, and fail where CI=true."""
    monkeypatch.setenv("CI", ci)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    monkeypatch.setattr(fixtures, "find_binaries", partial(find_binaries.__wrapped__))
    request.node.add_marker("controlplane")
    with pytest.raises(outcome) as told:
        fixtures.pytest_runtest_setup(request.node)
    assert (
        str(told.value)
        == f"no control plane: etcd is not at {tmp_path}/etcd (KUBEBUILDER_ASSETS, TEST_ASSET_ETCD)"
    )
