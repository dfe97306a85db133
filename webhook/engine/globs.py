"""Globs with `*` and `?`, matched in time linear in the name."""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from pydantic_core import core_schema

MAX_GLOB = 512  # characters of a pattern with `*` or `?`; a longer one is rejected
MAX_MATCHED = 4096  # characters of a name; a longer one matches only itself and `*`


class Glob:
    """One pattern: pieces between stars.

    Each piece matches at its first occurrence, and the search never goes back. So the time is
    linear in the name; one regular expression for all pieces could take pattern times name. It
    keeps text only, so that many patterns take little memory.
    """

    __slots__ = ("_between", "_first", "_last")

    def __init__(self, pattern: str) -> None:
        """Split the pattern. Raises ValueError if it is too long."""
        if len(pattern) > MAX_GLOB:
            limit = f"at most {MAX_GLOB} are allowed in a pattern"
            raise ValueError(f'"{pattern[:40]}..." has {len(pattern)} characters; {limit}')
        first, *rest = pattern.split("*")
        self._first = first
        self._between = tuple(filter(None, rest[:-1]))
        self._last = rest[-1] if rest else None

    def match(self, name: str) -> bool:
        """Return whether `name` as a whole is matched."""
        at, end = len(self._first), len(name)
        if not _is_at(self._first, name, 0):
            return False
        if self._last is None:
            return at == end
        end -= len(self._last)
        if end < at or not _is_at(self._last, name, end):
            return False
        for piece in self._between:
            at = _find(piece, name, at, end)
            if at < 0:
                return False
        return True


def _is_at(piece: str, name: str, at: int) -> bool:
    """Return whether a piece is in a name, at an index."""
    if "?" not in piece:
        return name.startswith(piece, at)
    return _compile_piece(piece).match(name, at) is not None


def _find(piece: str, name: str, start: int, end: int) -> int:
    """Return the end of the first occurrence of a piece, or -1."""
    if "?" in piece:
        match = _compile_piece(piece).search(name, start, end)
        return -1 if match is None else match.end()
    at = name.find(piece, start, end)
    return -1 if at < 0 else at + len(piece)


@lru_cache(maxsize=4096)
def _compile_piece(piece: str) -> re.Pattern[str]:
    """Return a piece as a regular expression; few pieces have a `?`."""
    parts = ["." if each == "?" else re.escape(each) for each in piece]
    return re.compile("".join(parts), re.DOTALL)


class Globs(tuple[str, ...]):
    """A list of patterns, which matches a name if any pattern does; case-sensitive.

    An empty list matches nothing. Parameters with lists of patterns have this type.
    """

    def __init__(self, _: Iterable[str] = ()) -> None:
        """Take the patterns. Raises ValueError if one is too long."""
        self._globs = [Glob(each) for each in self if "*" in each or "?" in each]
        self._names = frozenset(each for each in self if "*" not in each and "?" not in each)
        self._is_any = "*" in self
        self.exact: frozenset[str] | None = None if self._globs else self._names
        """The names that match; None if a pattern has a wildcard."""

    def match(self, name: str) -> bool:
        """Return whether `name` as a whole is matched."""
        if self._is_any or name in self._names:
            return True
        return len(name) <= MAX_MATCHED and any(each.match(name) for each in self._globs)

    @classmethod
    def __get_pydantic_core_schema__(cls, _: Any, handler: Any) -> core_schema.CoreSchema:
        return core_schema.no_info_after_validator_function(
            cls,
            handler(list[str]),
            serialization=core_schema.plain_serializer_function_ser_schema(list),
        )
