"""Base images: pulled, or built on this machine if no registry is reachable."""

import re
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.node import buildah
from tests.node.buildah import BuildahError


def provide(name: str, say: Callable[[str], None]) -> None:
    """Ensure that the named image is in buildah's storage."""
    full = name if "/" in name else f"docker.io/library/{name}"
    if buildah.has(full):
        return
    say(f"pulling {full}")
    pulled = buildah.run("pull", full, check=False)
    if pulled.returncode == 0:
        return
    reason = (pulled.stderr.strip().splitlines() or ["no answer"])[-1].rpartition(": ")[2]
    say(f"making a stand-in for {full}: no registry answers ({reason})")
    if found := re.fullmatch(r"docker\.io/library/debian:(\w+)-slim", full):
        _debian(full, found[1])
    elif found := re.fullmatch(r"docker\.io/library/python:([\d.]+)-slim-(\w+)", full):
        provide(f"debian:{found[2]}-slim", say)
        _python(full, found[1], found[2])
    else:
        raise BuildahError(f"{full} cannot be pulled, and has no stand-in: {reason}")


def _debian(name: str, suite: str) -> None:
    """Build the smallest installation of Debian."""
    with tempfile.TemporaryDirectory(dir=buildah.storage()) as directory:
        root = Path(directory) / "root.tar"
        command = ["mmdebstrap", "--variant=minbase", "--include=ca-certificates,netbase,tzdata"]
        # Documentation is left out, to keep the image small.
        without = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*")
        options = [f"--dpkgopt=path-exclude={each}" for each in without]
        made = subprocess.run([*command, *options, suite, root], capture_output=True, text=True)
        if made.returncode:
            raise BuildahError(f"mmdebstrap: {made.stderr.strip()[-2000:]}")
        dockerfile = Path(directory) / "Dockerfile"
        dockerfile.write_text('FROM scratch\nADD root.tar /\nCMD ["bash"]\n')
        buildah.build(dockerfile, Path(directory), name)


def _python(name: str, version: str, suite: str) -> None:
    """Make Debian's own Python look like the image's: /usr/local/bin/python and pip."""
    with tempfile.TemporaryDirectory(dir=buildah.storage()) as directory:
        dockerfile = Path(directory) / "Dockerfile"
        dockerfile.write_text(
            f"FROM docker.io/library/debian:{suite}-slim\n"
            "RUN apt-get update \\\n"
            f" && apt-get install --yes --no-install-recommends python{version} python3-venv"
            " python3-pip \\\n"
            " && rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin /var/cache/apt/archives/*.deb \\\n"
            f" && ln -s /usr/bin/python{version} /usr/local/bin/python \\\n"
            " && ln -s /usr/bin/pip3 /usr/local/bin/pip\n"
            'CMD ["python"]\n'
        )
        buildah.build(dockerfile, Path(directory), name)
