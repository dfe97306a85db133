"""Stores that speak Google's and Azure's protocols on loopback, and rclone in the version of the image.

Debian's rclone is older, and does not take the URL of an Azure store.
"""

import fcntl
import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.controlplane.gobuild import MissingToolError, build, cache_directory

MODULE = Path(__file__).parent
AZURITE = MODULE / "azurite"
INSTALL = ("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")


def rclone() -> Path:
    """Return rclone with both backends, built once."""
    return build(MODULE, ".", "rclone", takes="a minute with 2 cores")


def fake_gcs_server() -> Path:
    """Return a store that speaks Google's protocol, built once."""
    package = "github.com/fsouza/fake-gcs-server"
    return build(MODULE, package, "fake-gcs-server", takes="a minute with 2 cores")


def azurite() -> Path:
    """Return the program of a store that speaks Azure's protocol, installed once by npm."""
    if not (shutil.which("npm") and shutil.which("node")):
        raise MissingToolError("there is no Node.js with npm")
    lock = (AZURITE / "package-lock.json").read_bytes()
    directory = cache_directory() / "azurite" / hashlib.sha256(lock).hexdigest()[:20]
    directory.parent.mkdir(parents=True, exist_ok=True)
    with (directory.parent / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not directory.exists():
            _install(directory)
    return directory / "node_modules/azurite/dist/src/blob/main.js"


def _install(directory: Path) -> None:
    """Install in a directory beside it, so that an interrupted installation is not used."""
    with tempfile.TemporaryDirectory(dir=directory.parent) as temporary:
        for file in AZURITE.iterdir():
            shutil.copy(file, temporary)
        subprocess.run(INSTALL, cwd=temporary, check=True, timeout=600)
        Path(temporary).rename(directory)
        Path(temporary).mkdir()  # what the context removes
