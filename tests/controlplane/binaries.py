"""Finds the control plane's programs: by envtest's variables, or else built from the Go modules in this directory.

The variables and their order are envtest's: `TEST_ASSET_ETCD`, `TEST_ASSET_KUBE_APISERVER`, `TEST_ASSET_KUBECTL`,
then `KUBEBUILDER_ASSETS` (a directory). Binaries that envtest does not provide are always built.
"""

import functools
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from tests.controlplane.gobuild import MissingToolError, build, program_path

PARTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "hollow-kubelet")
NEEDED = ("etcd", "kube-apiserver", "kubectl")
PROGRAMS = (*PARTS, "kubectl")
MODULE = Path(__file__).parent
HELM_MODULE = MODULE / "helm"
DEFAULT_ASSETS = Path("/usr/local/kubebuilder/bin")


@functools.cache
def find_binaries() -> Mapping[str, Path]:
    """Return the path of every available program of the control plane; build it if necessary."""
    if "KUBEBUILDER_ASSETS" in os.environ or any(
        _variable(name) in os.environ for name in PROGRAMS
    ):
        return _assets(Path(os.environ.get("KUBEBUILDER_ASSETS", DEFAULT_ASSETS)))
    try:
        return _built()
    except MissingToolError as reason:
        if DEFAULT_ASSETS.is_dir():
            return _assets(DEFAULT_ASSETS)
        raise MissingToolError(
            f"no control plane: KUBEBUILDER_ASSETS is not set, and {reason}"
        ) from None


@functools.cache
def helm_binary() -> Path:
    """The helm on the PATH, else one built from its Go module."""
    if found := shutil.which("helm"):
        return Path(found)
    try:
        package, ldflags = _helm()
        return build(HELM_MODULE, package, "helm", ldflags=ldflags, takes="4 minutes with 2 cores")
    except MissingToolError as reason:
        raise MissingToolError(f"no helm: it is not on the PATH, and {reason}") from None


def found_helm() -> Path | None:
    """The helm that `helm_binary` returns, if it exists already."""
    if found := shutil.which("helm"):
        return Path(found)
    try:
        package, ldflags = _helm()
        program = program_path(HELM_MODULE, package, "helm", ldflags=ldflags)
    except MissingToolError:
        return None
    return program if program.exists() else None


def _variable(name: str) -> str:
    return "TEST_ASSET_" + name.upper().replace("-", "_")


def _assets(directory: Path) -> Mapping[str, Path]:
    candidates = {
        name: Path(os.environ.get(_variable(name), directory / name)).absolute()
        for name in PROGRAMS
    }
    found = {name: path for name, path in candidates.items() if path.is_file()}
    for name in NEEDED:
        if name not in found:
            variables = f"KUBEBUILDER_ASSETS, {_variable(name)}"
            raise MissingToolError(
                f"no control plane: {name} is not at {candidates[name]} ({variables})"
            )
    return found


def _built() -> Mapping[str, Path]:
    """Link one program under several names, so that the cache directory can be used as KUBEBUILDER_ASSETS."""
    version = re.search(r"k8s\.io/kubernetes v(\d+)\.(\d+)\.(\d+)", (MODULE / "go.mod").read_text())
    major, minor, patch = version.groups()
    facts = {
        "gitVersion": f"v{major}.{minor}.{patch}",
        "gitMajor": major,
        "gitMinor": minor,
        "gitTreeState": "clean",
    }
    ldflags = " ".join(
        [
            "-s -w",
            *(f"-X k8s.io/component-base/version.{name}={fact}" for name, fact in facts.items()),
        ]
    )
    program = build(
        MODULE, ".", "controlplane", ldflags=ldflags, takes="5 to 10 minutes with 2 cores"
    )
    links = {name: program.with_name(name) for name in PROGRAMS}
    for link in links.values():
        if not link.is_symlink():
            _link(link, program)
    return links


def _helm() -> tuple[str, str]:
    """The package of helm, and the flags of its linker."""
    version = re.search(r"helm\.sh/helm/v4 (\S+)", (HELM_MODULE / "go.mod").read_text())[1]
    ldflags = f"-s -w -X helm.sh/helm/v4/internal/version.version={version}"
    return "helm.sh/helm/v4/cmd/helm", ldflags


def _link(link: Path, program: Path) -> None:
    try:
        link.symlink_to(program.name)
    except FileExistsError:
        return  # another process has created it
