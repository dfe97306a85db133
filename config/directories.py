"""Walks directories of any depth and breadth, without following links to directories."""

import os
from collections.abc import Callable, Iterator
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
            with os.scandir(path) as found:
                for entry in found:
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
