"""Notices changed files by their content.

Content is read again each time: when the kubelet swaps a mounted volume it renames a link above the
files, and no event and no modification time of the files themselves tells of it.
"""

import asyncio
import hashlib
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
        self._seen: dict[Path, bytes] | None = None

    def changed(self) -> bool:
        """Say whether anything is different from the last time this was asked.

        The first time it is.
        """
        seen, self._seen = self._seen, {path: _state(path) for path in _files(self._paths)}
        return seen != self._seen

    def digest(self) -> bytes:
        """Return a digest of what was found then, wherever it stands."""
        return hashlib.sha256(b"".join((self._seen or {}).values())).digest()


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


def _state(path: Path) -> bytes:
    try:
        return hashlib.sha256(path.read_bytes()).digest()
    except OSError as error:
        return str(error.errno).encode()
