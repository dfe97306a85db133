"""The directory that an argument names: what no link may leave, and what ignore files exclude.

`ChangedFiles` are those that differ from a Git revision, or those of a commit.
"""

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from config.documents import DocumentError
from config.printable import printable

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec
import subprocess
from collections.abc import Iterable, Iterator

REPOSITORY = ".git"  # a checkout in CI keeps a token in it


def resolve(path: Path) -> Path:
    """Return the path without symbolic links; a loop of links, which cannot be read, is kept."""
    return Path(os.path.realpath(path))


@dataclass(frozen=True, slots=True)
class CheckedTree:
    """The directory that links may not leave, and the one that a kustomization may not."""

    links: Path
    references: Path

    @classmethod
    def of(cls, argument: Path) -> "CheckedTree":
        """Return the tree of an argument: its Git work tree.

        Without one, links may not leave the argument, and kustomizations not the working directory.
        """
        whole = Path(os.path.abspath(argument))  # noqa: PTH100 (its links are not followed)
        for directory in (whole, *whole.parents):
            if (directory / REPOSITORY).exists():
                top = resolve(directory)
                return cls(top, top)
        here = Path.cwd()
        target = resolve(argument)
        return cls(target, here if target.is_relative_to(here) else target)

    def require_link(self, path: Path) -> None:
        """Raise DocumentError if a path leaves the tree by a link."""
        if not _is_below(path, self.links):
            raise DocumentError(
                f"{printable(path)}: not read: a link out of {printable(self.links)}; copy the "
                "file, or name it"
            )

    def require_writable(self, path: Path) -> None:
        """Raise DocumentError if writing a path would change a file out of the tree by a link."""
        if not _is_below(path, self.links):
            raise DocumentError(
                f"{printable(path)}: not written: a link out of {printable(self.links)}; remove "
                "it, or name the file that it names"
            )

    def permits_reference(self, path: Path) -> bool:
        """Whether a kustomization may read a file or directory."""
        return _is_below(path, self.references)


def _is_below(path: Path, top: Path) -> bool:
    whole = resolve(path)
    return whole.is_relative_to(top) and REPOSITORY not in whole.relative_to(top).parts


IGNORE_FILE = ".gatewrightignore"
MAX_IGNORE_BYTES = 64 << 10  # each pattern is tried on each path


class IgnoreFiles:
    """Reads ignore files, each once; one that cannot be used excludes nothing."""

    def __init__(self, report_unusable: Callable[[str], None]) -> None:
        """Take a function that gets a line for each file that cannot be used."""
        self._report = report_unusable
        self._specs: dict[Path, GitIgnoreSpec | None] = {}

    def spec(self, directory: Path) -> "GitIgnoreSpec | None":
        """Return the patterns of a directory's ignore file; None without a usable one."""
        if directory not in self._specs:
            self._specs[directory] = self._read(directory / IGNORE_FILE)
        return self._specs[directory]

    def _read(self, file: Path) -> "GitIgnoreSpec | None":
        if not file.is_file():
            return None
        with file.open("rb") as opened:
            data = opened.read(MAX_IGNORE_BYTES + 1)
        lines = data.decode("utf-8", "replace").splitlines()
        if len(data) > MAX_IGNORE_BYTES:
            self._report(f"{printable(file)}: not used: larger than {MAX_IGNORE_BYTES >> 10} KiB")
            return None
        if (spec := _spec(lines)) is None:
            row = next(row for row, line in enumerate(lines, 1) if _spec([line]) is None)
            self._report(f"{printable(file)}:{row}: not used: no pattern of a .gitignore file")
        return spec


class IgnoredPaths:
    """Tests whether an ignore file, of a directory or the working directory, lists a path."""

    def __init__(self, path: Path, files: IgnoreFiles) -> None:
        """Read the ignore files of a directory and of the working directory."""
        roots = dict.fromkeys((resolve(path), Path.cwd()))
        self._specs = [(root, spec) for root in roots if (spec := files.spec(root)) is not None]
        self.is_in_use = bool(self._specs)

    def __call__(self, path: Path, end: str = "") -> bool:
        """Whether the path is excluded; `end` is a slash for a directory."""
        if not self._specs:
            return False
        whole = resolve(path)
        return any(
            spec.match_file(f"{whole.relative_to(root).as_posix()}{end}")
            for root, spec in self._specs
            if whole.is_relative_to(root)
        )


def _spec(lines: Sequence[str]) -> "GitIgnoreSpec | None":
    """Return patterns; None if one cannot be compiled."""
    # Imported here: few directories have such a file.
    import re2
    from pathspec import GitIgnoreSpec

    try:
        return GitIgnoreSpec.from_lines(lines)
    except (ValueError, re.error, re2.error):
        return None


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
    def since(cls, revision: str) -> "ChangedFiles":
        """Return the files changed since a revision, with uncommitted ones.

        Raises GitError if Git fails.
        """
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
