"""Values in the order of their keys; a change costs no step for each of the others."""

from bisect import bisect_left
from typing import Generic, TypeVar

T = TypeVar("T")
KindAndKey = tuple[int, str]


class Ordered(Generic[T]):
    """Values by keys, in order."""

    def __init__(self) -> None:
        """Begin without any."""
        self._keys: list[KindAndKey] = []
        self._values: list[T] = []
        self._tuple: tuple[T, ...] | None = ()

    @property
    def values(self) -> tuple[T, ...]:
        """The values, in the order of their keys: the same tuple until one changes."""
        if self._tuple is None:
            self._tuple = tuple(self._values)
        return self._tuple

    def without(self, key: KindAndKey) -> tuple[T, ...]:
        """Return the values of other keys, in order."""
        at, is_here = self._find(key)
        return (*self._values[:at], *self._values[at + is_here :])

    def put(self, key: KindAndKey, value: T | None) -> None:
        """Set or replace the value of a key; None removes it."""
        at, is_here = self._find(key)
        self._tuple = None
        if value is None:
            del self._keys[at : at + is_here], self._values[at : at + is_here]
        else:
            self._keys[at : at + is_here], self._values[at : at + is_here] = [key], [value]

    def _find(self, key: KindAndKey) -> tuple[int, bool]:
        """Return where a key is, or would be, and whether it is there."""
        at = bisect_left(self._keys, key)
        return at, at < len(self._keys) and self._keys[at] == key
