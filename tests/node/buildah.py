"""buildah with its storage in the cache, in namespaces whose mounts vanish however it ends."""

import fcntl
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.controlplane.gobuild import cache_directory
from tests.node.slots import NodeError

# The run root records mounts and locks, so it must not outlive the mounts.
PRIVATE = """
mount -t tmpfs tmpfs {run}
exec buildah --root {root} --runroot {run} --storage-driver overlay "$@"
"""
UNSHARED = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
# That many cached build steps take about 2 GB.
RESUMABLE = 20
# pip's settings with paths of this machine do not work in a build.
LOCAL = ("find-links", "cache-dir", "log", "build", "src")


class BuildahError(NodeError):
    """buildah failed; the message ends with its output."""


def run(*arguments: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run buildah to its end."""
    root, place = storage() / "root", storage() / "run"
    place.mkdir(parents=True, exist_ok=True)
    script = PRIVATE.format(root=root, run=place)
    command = [*UNSHARED, "sh", "-ec", script, "buildah", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if check and done.returncode:
        end = "\n".join((done.stdout + done.stderr).splitlines()[-20:])
        raise BuildahError(f"buildah {arguments[0]}: exit {done.returncode}\n{end}")
    return done


def has(name: str) -> bool:
    """Whether an image of a name was built or pulled."""
    return run("inspect", "--type", "image", name, check=False).returncode == 0


def build(dockerfile: Path, context: Path, *names: str) -> None:
    """Build an image; the machine's pip settings and CA certificates are mounted during the build."""
    tags = [part for name in names for part in ("--tag", name)]
    lent = [part for each in _lent() for part in ("--volume", each)]
    place = ("--isolation", "chroot", "--network", "host", "--layers")
    run("bud", *place, *tags, *lent, "--file", dockerfile, context)


def forget_others(name: str) -> None:
    """Remove other versions of an image, and cached build steps once there are many."""
    listed = json.loads(run("images", "--json").stdout)
    repository = name.rpartition(":")[0]
    names = [each for about in listed for each in about["names"] or ()]
    old = [each for each in names if each.startswith(f"{repository}:") and each != name]
    if old:
        run("rmi", *old, check=False)
    if sum(not about["names"] for about in listed) > RESUMABLE:
        run("rmi", "--prune", check=False)


def storage() -> Path:
    """Where images and layers are kept."""
    return cache_directory() / "images"


@contextmanager
def locked() -> Iterator[None]:
    """Hold the machine-wide build lock; remove the container of an interrupted build."""
    storage().mkdir(parents=True, exist_ok=True)
    with (storage() / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("waiting for another build of images", file=sys.stderr, flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        if run("containers", "--quiet").stdout.strip():
            run("rm", "--all")
        yield


def _lent() -> list[str]:
    """Return the files of this machine that builds can read; they are never written into an image."""
    lent = [f"{CERTIFICATES}:{CERTIFICATES}:ro"] if CERTIFICATES.exists() else []
    configuration = storage() / "pip.conf"
    if settings := _pip_settings():
        lines = [f"{key} = {value}\n" for key, value in settings.items()]
        configuration.write_text("[global]\n" + "".join(lines))
        lent.append(f"{configuration}:/etc/pip.conf:ro")
    return lent


def _pip_settings() -> dict[str, str]:
    """Return this machine's settings of pip, from its files and from the environment."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    listed = subprocess.run(command, capture_output=True, text=True, env=os.environ).stdout
    found = re.findall(r"^(?:global|user|site|:env:)\.([\w-]+)='(.*)'$", listed, re.MULTILINE)
    return {key: value for key, value in found if key not in LOCAL}
