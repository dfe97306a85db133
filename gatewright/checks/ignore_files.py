"""The paths that `.gatewrightignore` excludes, by the rules of .gitignore."""

from pathlib import Path
from typing import TYPE_CHECKING

from gatewright.checks.checked_tree import resolve

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

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
