"""The previous release, from this clone's history: its files, and its image."""

import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.controlplane.gobuild import MissingToolError, cache_directory, locked
from tests.node.images import ROOT, Image, image

# Until a version is published: a commit that an upgrade must start from.
COMMIT = "abd977eac455040bcbde0eb85766066dc5f4cc48"
REPOSITORY = "gatewright-previous"
TAG = "0.1.0"


def sources() -> Path:
    """Return the directory of its files.

    Raises MissingToolError where the history of this clone does not have the commit.
    """
    directory = cache_directory() / "previous" / COMMIT
    if directory.exists():
        return directory
    git = ["git", "-C", str(ROOT)]
    if subprocess.run([*git, "cat-file", "-e", COMMIT], capture_output=True).returncode:
        raise MissingToolError(
            f"the previous release, commit {COMMIT[:12]}, is not in the history of this clone; "
            "`git fetch --unshallow` gets it"
        )
    directory.parent.mkdir(parents=True, exist_ok=True)
    with (
        locked(directory.parent / "lock"),
        TemporaryDirectory(dir=directory.parent) as place,
    ):
        if not directory.exists():
            archive = Path(place) / "archive.tar"
            subprocess.run([*git, "archive", f"--output={archive}", COMMIT], check=True)
            files = Path(place) / "files"
            files.mkdir()
            subprocess.run(["tar", "-xf", archive, "-C", files], check=True)
            files.rename(directory)
    return directory


def gatewright() -> Image:
    """Return its image, under another name than the checkout's."""
    return image(f"docker.io/library/{REPOSITORY}:{TAG}", sources())
