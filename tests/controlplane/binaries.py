"""Where the programs come from: envtest's variables first, else built from the Go modules beside this file.

The variables and their order are envtest's: `TEST_ASSET_ETCD`, `TEST_ASSET_KUBE_APISERVER`,
`TEST_ASSET_KUBECTL`, then `KUBEBUILDER_ASSETS` (a directory). A set of binaries may lack the parts
that envtest knows nothing of.
"""

import functools
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from tests.controlplane.gobuild import MissingToolError, build

PARTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "hollow-kubelet")
NEEDED = ("etcd", "kube-apiserver", "kubectl")
PROGRAMS = (*PARTS, "kubectl")
MODULE = Path(__file__).parent
DEFAULT_ASSETS = Path("/usr/local/kubebuilder/bin")


@functools.cache
def find_binaries() -> Mapping[str, Path]:
    """Name every program of the control plane that this machine has, after building it if need be."""
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
        return _built_helm()
    except MissingToolError as reason:
        raise MissingToolError(f"no helm: it is not on the PATH, and {reason}") from None


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
    """One program under several names, so that the cache directory serves as KUBEBUILDER_ASSETS too."""
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


def _built_helm() -> Path:
    version = re.search(r"helm\.sh/helm/v4 (\S+)", (MODULE / "helm" / "go.mod").read_text())[1]
    ldflags = f"-s -w -X helm.sh/helm/v4/internal/version.version={version}"
    return build(
        MODULE / "helm",
        "helm.sh/helm/v4/cmd/helm",
        "helm",
        ldflags=ldflags,
        takes="4 minutes with 2 cores",
    )


def _link(link: Path, program: Path) -> None:
    try:
        link.symlink_to(program.name)
    except FileExistsError:
        return  # another process was first
