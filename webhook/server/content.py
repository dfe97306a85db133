"""Notices changed files by their content.

Content is read again each time: when the kubelet swaps a mounted volume it renames a link above the
files, and no event and no modification time of the files themselves tells of it.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Never

POLL_SECONDS = 5.0


class Content:
    """What some files held when they were last looked at.

    A directory stands for the files below it.
    """

    def __init__(self, paths: Iterable[Path]) -> None:
        self._paths = tuple(paths)
        self._seen: dict[Path, int | None] | None = None

    def changed(self) -> bool:
        """Say whether anything is different from the last time this was asked.

        The first time it is.
        """
        seen, self._seen = self._seen, {path: _state(path) for path in _files(self._paths)}
        return seen != self._seen


async def poll(refresh: Callable[[], None], seconds: float = POLL_SECONDS) -> Never:
    """Call `refresh` now and then, for ever."""
    while True:
        await asyncio.sleep(seconds)
        refresh()


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        try:  # what a kubelet mounts keeps its states below names that begin with two dots
            yield from _files(
                sorted(below for below in path.iterdir() if not below.name.startswith(".."))
            )
        except OSError:
            yield path


def _state(path: Path) -> int | None:
    try:
        return hash(path.read_bytes())
    except OSError as error:
        return error.errno
