"""The directory that an argument names: what no link may leave, and what ignore files exclude."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from config.documents import DocumentError
from config.printable import printable

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

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

    def permits_reference(self, path: Path) -> bool:
        """Whether a kustomization may read a file or directory."""
        return _is_below(path, self.references)


def _is_below(path: Path, top: Path) -> bool:
    whole = resolve(path)
    return whole.is_relative_to(top) and REPOSITORY not in whole.relative_to(top).parts


IGNORE_FILE = ".gatewrightignore"


class IgnoredPaths:
    """Tests whether an ignore file, of a directory or the working directory, lists a path."""

    def __init__(self, path: Path) -> None:
        """Read the ignore files of a directory and of the working directory."""
        roots = dict.fromkeys((resolve(path), Path.cwd()))
        self._specs = [
            (root, _spec(root / IGNORE_FILE)) for root in roots if (root / IGNORE_FILE).is_file()
        ]
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


def _spec(file: Path) -> "GitIgnoreSpec":
    # Imported here: few directories have such a file.
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines(file.read_text("utf-8", "replace").splitlines())
