"""Globs with `*` and `?`: compiled when first used, matched in time linear in the name."""

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from pydantic_core import core_schema

MAX_GLOB = 512  # characters of a pattern with `*` or `?`; a longer one is rejected
MAX_MATCHED = 4096  # characters of a name; a longer one matches only itself and `*`


class _Pieces(NamedTuple):
    """The compiled pieces of a pattern; `last` is None if it has no star."""

    first: re.Pattern[str]
    between: tuple[re.Pattern[str], ...] = ()
    last: re.Pattern[str] | None = None
    last_size: int = 0


class Glob:
    """One pattern: pieces between stars, compiled when it is first used.

    Each piece matches at its first occurrence, and the search never goes back. So the time is
    linear in the name; one regular expression for all pieces could take pattern times name.
    """

    def __init__(self, pattern: str) -> None:
        """Take the pattern. Raises ValueError if it is too long."""
        if len(pattern) > MAX_GLOB:
            limit = f"at most {MAX_GLOB} are allowed in a pattern"
            raise ValueError(f'"{pattern[:40]}..." has {len(pattern)} characters; {limit}')
        self._pattern = pattern
        self._pieces: _Pieces | None = None

    def match(self, name: str) -> bool:
        """Return whether `name` as a whole is matched."""
        pieces = self._pieces
        if pieces is None:
            pieces = self._pieces = _pieces_of(self._pattern)
        if pieces.last is None:
            return pieces.first.fullmatch(name) is not None
        found, end = pieces.first.match(name), len(name) - pieces.last_size
        if found is None or end < found.end() or pieces.last.match(name, end) is None:
            return False
        for piece in pieces.between:
            found = piece.search(name, found.end(), end)
            if found is None:
                return False
        return True


def _pieces_of(pattern: str) -> _Pieces:
    first, *rest = pattern.split("*")
    if not rest:
        return _Pieces(_compiled(first))
    between = tuple(_compiled(each) for each in rest[:-1] if each)
    return _Pieces(_compiled(first), between, _compiled(rest[-1]), len(rest[-1]))


def _compiled(piece: str) -> re.Pattern[str]:
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

    @property
    def exact(self) -> frozenset[str] | None:
        """The names that match; None if a pattern has a wildcard."""
        return None if self._globs else self._names

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
