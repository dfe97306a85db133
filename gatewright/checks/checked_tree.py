"""The directories that reading an argument of the command line may not leave by a link."""

import os
from dataclasses import dataclass
from pathlib import Path

from config.documents import DocumentError
from config.printable import printable

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
