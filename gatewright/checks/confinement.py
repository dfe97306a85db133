"""Confine programs that read what a stranger wrote: no variables, no network, bounded resources."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache

MAX_MEMORY = 2 << 30  # bytes of address space; helm and kubectl need about 1 GiB of it when idle
MAX_OUTPUT = 64 << 20  # bytes of each file that a program writes, its output included
MAX_CPU = 120  # seconds
MAX_OPEN_FILES = 1024
NOWHERE = "127.0.0.1:9"
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")
# Go sends nothing to a proxy that is for the loopback: the network namespace, and the references of
# a kustomization that are refused before it is built, close that.
CLOSED = {
    **dict.fromkeys(PROXIES, f"http://{NOWHERE}"),
    "GIT_ALLOW_PROTOCOL": "none",
    "HELM_NO_PLUGINS": "1",
}
# The shell sets the limits (KiB, blocks of 512 bytes, seconds, files) and becomes the program.
LIMITS = (
    f"ulimit -v {MAX_MEMORY >> 10}; ulimit -f {MAX_OUTPUT >> 9}; ulimit -t {MAX_CPU}; "
    f'ulimit -n {MAX_OPEN_FILES}; exec "$@"'
)


def confine(command: Sequence[str]) -> list[str]:
    """Return a command that runs `command` with limits and, where the kernel permits, no network.

    Linux has all of this. Elsewhere, there is no namespace and no limit of memory.
    """
    return ["/bin/sh", "-c", LIMITS, "sh", *_without_network(), *command]


def closed_environment(home: str) -> Mapping[str, str]:
    """Return all the variables that a program gets; `home` is an empty directory."""
    return {"PATH": os.environ.get("PATH", os.defpath), "HOME": home, "TMPDIR": home, **CLOSED}


@cache
def _without_network() -> tuple[str, ...]:
    """Return the command that runs another one in a network namespace of its own.

    Empty if there is no such program, or the kernel does not permit it.
    """
    program = shutil.which("unshare", path=f"/usr/bin:/bin:{os.environ.get('PATH', '')}")
    if program is None:
        return ()
    # Only root needs no user namespace.
    command = (program, "--net") if os.geteuid() == 0 else (program, "--map-root-user", "--net")
    tried = subprocess.run([*command, "/bin/true"], check=False, capture_output=True)  # noqa: S603
    return command if tried.returncode == 0 else ()
