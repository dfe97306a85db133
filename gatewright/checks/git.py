"""Files that differ from a Git revision."""

import subprocess
from pathlib import Path


class GitError(ValueError):
    """Git, the revision or the repository is missing."""


def changed_files(revision: str) -> frozenset[Path]:
    """Return the resolved paths of files changed since `revision`, with uncommitted ones.

    Deleted files are left out. Raises GitError if Git fails.
    """
    top = Path(_git("rev-parse", "--show-toplevel").rstrip("\n"))
    base = _git("merge-base", "--", revision, "HEAD").strip()
    changed = _git("-C", str(top), "diff", "--name-only", "-z", "--diff-filter=d", base, "--")
    new = _git("-C", str(top), "ls-files", "-z", "--others", "--exclude-standard")
    return frozenset((top / name).resolve() for name in (changed + new).split("\0") if name)


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], check=False, capture_output=True, text=True)  # noqa: S603, S607
    except FileNotFoundError:
        raise GitError("git is not installed; --changed needs it") from None
    if done.returncode:
        message = done.stderr.strip().removeprefix("fatal: ")
        raise GitError(message or "no common commit with HEAD; fetch more history")
    return done.stdout
