"""Walks directories of any depth and breadth, without following links to directories."""

import glob
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from fnmatch import filter as matching
from pathlib import Path
from typing import NamedTuple

MAX_DEPTH = 100  # nested directories; no repository that people work on has nearly as many


class DirectoryEntries(NamedTuple):
    """A directory with the sorted names of its entries. Remove a folder, and it is not walked."""

    path: Path
    folders: list[str]
    files: list[str]
    linked: list[str]  # links to directories


def walk_directory(root: Path, report_unread: Callable[[str], None]) -> Iterator[DirectoryEntries]:
    """Yield a directory and those below it, each before its folders.

    `report_unread` gets a line for each directory that cannot be read or is nested too deeply.
    """
    pending = [(root, 0)]
    while pending:
        path, depth = pending.pop()
        if depth > MAX_DEPTH:
            report_unread(
                f"{path}: not read: more than {MAX_DEPTH} nested directories; name it if it "
                "should be"
            )
            continue
        entries = DirectoryEntries(path, [], [], [])
        try:
            with os.scandir(path) as listing:
                for entry in listing:
                    is_directory = os.path.isdir(entry.path)  # noqa: PTH112 (no error for a loop)
                    kind = entries.linked if entry.is_symlink() else entries.folders
                    (kind if is_directory else entries.files).append(entry.name)
        except OSError as error:
            report_unread(f"{path}: {error.strerror}")
            continue
        for names in entries[1:]:
            names.sort()
        yield entries
        pending += ((path / name, depth + 1) for name in reversed(entries.folders))


def expand_glob(pattern: str, report_unread: Callable[[str], None]) -> list[Path]:
    """Return the paths that a glob matches, sorted; hidden ones only if the glob names them.

    `**` does not enter links to directories: they may form loops.
    """
    whole = Path(pattern)
    paths = {Path(whole.anchor)}
    for part in whole.parts[bool(whole.anchor) :]:
        if part == "**":
            paths = {below for path in paths for below in _everything_below(path, report_unread)}
        elif glob.has_magic(part):
            paths = {path / name for path in paths for name in _matching_names(path, part)}
        else:
            paths = {path / part for path in paths if os.path.lexists(path / part)}
    return sorted(paths)


def _everything_below(path: Path, report_unread: Callable[[str], None]) -> Iterator[Path]:
    """Yield a directory, and all below it but hidden ones and links to directories."""
    if not path.is_dir():
        return
    yield path
    for here, folders, files, _ in walk_directory(path, report_unread):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (here / name for name in (*folders, *files) if name[0] != ".")


def _matching_names(path: Path, part: str) -> list[str]:
    names = list[str]()
    with suppress(OSError):  # no directory, or one that cannot be read: nothing matches in it
        names = matching((each.name for each in path.iterdir()), part)
    return names if part.startswith(".") else [name for name in names if name[0] != "."]
