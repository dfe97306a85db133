"""The programs of a node: from the machine's packages, or built from the Go module in this directory."""

import functools
import os
import platform
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.controlplane.gobuild import MissingToolError, build

MODULE = Path(__file__).parent / "go"
CNI = Path("/usr/lib/cni")
SEARCHED = f"{os.environ['PATH']}:/usr/sbin:/sbin"
# Debian package of each program. tests/node/install.sh has the same list.
PACKAGES = {
    "buildah": "buildah",
    "conntrack": "conntrack",
    "containerd": "containerd",
    "ip": "iproute2",
    "iptables": "iptables",
    "mmdebstrap": "mmdebstrap",
    "nft": "nftables",
    "nsenter": "util-linux",
    "runc": "runc",
    "sysctl": "procps",
    "unshare": "util-linux",
}


def check_machine() -> None:
    """Raise MissingToolError with the reason if this machine cannot run a node."""
    if sys.platform != "linux":
        raise MissingToolError(f"no node: it needs Linux, and this is {platform.system()}")
    if os.geteuid() != 0:
        raise MissingToolError("no node: only root may make network namespaces and mounts")
    if not re.search(r"\boverlay$", Path("/proc/filesystems").read_text(), re.MULTILINE):
        raise MissingToolError("no node: this kernel has no overlayfs (modprobe overlay)")
    if missing := missing_packages():
        raise MissingToolError(
            f"no node: these packages are missing: {', '.join(missing)} (tests/node/install.sh)"
        )


def missing_packages() -> list[str]:
    """Return the packages of Debian whose programs this machine lacks."""
    missing = {
        package for name, package in PACKAGES.items() if not shutil.which(name, path=SEARCHED)
    }
    if not (CNI / "ptp").exists():
        missing.add("containernetworking-plugins")
    return sorted(missing)


@functools.cache
def built() -> Mapping[str, Path]:
    """Return kubelet and kube-proxy (one program, `node`), coredns and pause, built once."""
    version = re.search(r"k8s\.io/kubernetes (v\S+)", (MODULE / "go.mod").read_text())[1]
    facts = f"-s -w -X k8s.io/component-base/version.gitVersion={version}"
    return {
        "node": build(MODULE, "./node", "node", ldflags=facts, takes="3 to 6 minutes with 2 cores"),
        "coredns": build(MODULE, "./coredns", "coredns", takes="a minute or two"),
        "pause": build(MODULE, "./pause", "pause"),
    }
