"""The cases that failed in the last run of `gatewright test`, for --last-failed."""

from collections.abc import Iterable
from pathlib import Path

from config.documents import DocumentError
from gatewright.checks.checked_tree import CheckedTree
from gatewright.outputs import write_file
from webhook.harness.cases import Trial

FILE = Path(".gatewright/last-failed")


def key(trial: Trial) -> str:
    """Return the key of a trial: its names, because line numbers change."""
    return f"{trial.document.source}: {trial.name}"


def read() -> frozenset[str] | None:
    """Return the keys of the trials that failed.

    None if there is no record, so that all are run.
    """
    try:
        CheckedTree.of(FILE).require_link(FILE)
        return frozenset(FILE.read_text("utf-8").splitlines()) or None
    except (OSError, DocumentError):
        return None


def write(failed: Iterable[Trial]) -> None:
    """Record which trials failed, below the current directory.

    Ignore a directory that cannot be written.
    """
    keys = "".join(f"{key(trial)}\n" for trial in failed)
    try:
        if keys or FILE.exists():
            FILE.parent.mkdir(exist_ok=True)
            write_file(FILE.parent / ".gitignore", "*\n")
            write_file(FILE, keys)
    except (OSError, DocumentError):
        pass
