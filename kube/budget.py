"""A limit of bytes that several stores share."""

import logging
from collections.abc import Callable

LOG = logging.getLogger("gatewright.kube.budget")


class ByteBudget:
    """The bytes of the objects that are stored although they were not requested."""

    def __init__(self, limit: Callable[[], int]) -> None:
        """Allow as many bytes in all as `limit` returns at the time."""
        self.limit = limit
        self.used = 0
        self._is_reported = False

    def take(self, size: int, title: str) -> bool:
        """Take `size` bytes for an object; return whether that many were left.

        The first object without room is logged by its `title`.
        """
        if self.used + size <= (limit := self.limit()):
            self.used += size
            return True
        if not self._is_reported:
            self._is_reported = True
            LOG.warning(
                "Objects that name a parent exceed the cache; those that a plan needs are read one "
                "by one",
                extra={"fields": {"object": title, "limitBytes": limit}},
            )
        return False

    def give_back(self, size: int) -> None:
        """Give back `size` bytes."""
        self.used -= size
