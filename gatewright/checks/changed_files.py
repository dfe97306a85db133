"""The files that a change is about: those that differ from a Git revision, or those of a commit."""

import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from gatewright.checks.checked_tree import resolve


class GitError(ValueError):
    """Git, the revision or the repository is missing."""


@dataclass(frozen=True, slots=True)
class ChangedFiles:
    """Changed files, as resolved paths; deleted ones, too.

    With `only`, unchanged manifests are not read; without, they are context for the changed ones.
    """

    files: frozenset[Path]
    only: bool = False

    def touch(self, paths: Iterable[Path]) -> bool:
        """Whether a changed file is one of these paths, or below one of these directories."""
        resolved = {resolve(path) for path in paths}
        return any(file in resolved or not resolved.isdisjoint(file.parents) for file in self.files)

    def hidden_files(self) -> Iterator[str]:
        """Yield the files of the working directory that are hidden, or in a hidden directory."""
        here = Path.cwd()
        below = (file.relative_to(here) for file in self.files if file.is_relative_to(here))
        yield from (
            str(path) for path in sorted(below) if any(part[0] == "." for part in path.parts)
        )

    @classmethod
    def of(cls, names: Iterable[str]) -> "ChangedFiles":
        """Return the files that a hook names; nothing else is read."""
        return cls(frozenset(resolve(Path(name)) for name in names), only=True)

    @classmethod
    def since(cls, revision: str | None) -> "ChangedFiles | None":
        """Return the files changed since a revision, with uncommitted ones; None without one.

        Raises GitError if Git fails.
        """
        if revision is None:
            return None
        top = Path(_git("rev-parse", "--show-toplevel").rstrip("\n"))
        base = _git("merge-base", "--", revision, "HEAD").strip()
        # Both names of a renamed file: what reads the old one changes, too.
        changed = _git("-C", str(top), "diff", "--name-only", "--no-renames", "-z", base, "--")
        new = _git("-C", str(top), "ls-files", "-z", "--others", "--exclude-standard")
        return cls(frozenset(resolve(top / name) for name in (changed + new).split("\0") if name))


def _git(*arguments: str) -> str:
    # A repository of a stranger may name a program to run here.
    command = ["git", "-c", "core.fsmonitor=false", *arguments]
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603
    except FileNotFoundError:
        raise GitError("git is not installed; --changed needs it") from None
    if done.returncode:
        message = done.stderr.strip().removeprefix("fatal: ")
        raise GitError(message or "no common commit with HEAD; fetch more history")
    return done.stdout
