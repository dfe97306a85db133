"""What a reconcile is asked and what it answers."""

from datetime import timedelta
from typing import Literal, NamedTuple

Outcome = Literal["success", "requeue_after", "error", "terminal_error"]


class Request(NamedTuple):
    """The object to look at: a name, never the object itself, so that the newest state is always read."""

    namespace: str | None
    name: str

    @property
    def key(self) -> str:
        """The key of a store: `namespace/name`, or `name`."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @classmethod
    def of(cls, key: str) -> "Request":
        """Return the request for a store's key."""
        namespace, _, name = key.rpartition("/")
        return cls(namespace or None, name)


class Result(NamedTuple):
    """A reconcile that went well; `requeue_after` asks for another look without waiting for a change."""

    requeue_after: timedelta | None = None


class TerminalError(Exception):
    """An error that trying again cannot mend: the next change of the object is awaited."""


class RetryableError(Exception):
    """An error that goes away by itself: it is tried again after `retry_after` seconds, or else a back-off."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after
