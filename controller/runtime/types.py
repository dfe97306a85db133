"""The request and the result of a reconcile, and the errors that it may raise."""

from datetime import timedelta
from typing import Literal, NamedTuple

ReconcileOutcome = Literal[
    "success", "requeue", "requeue_after", "error", "timeout", "panic", "terminal_error"
]


class ReconcileRequest(NamedTuple):
    """The object to reconcile: its name only, so that the newest state is always read."""

    namespace: str | None
    name: str

    @property
    def key(self) -> str:
        """The key of a store: `namespace/name`, or `name`."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @classmethod
    def of(cls, key: str) -> "ReconcileRequest":
        """Return the request for a store's key."""
        namespace, _, name = key.rpartition("/")
        return cls(namespace or None, name)


class Result(NamedTuple):
    """A reconcile that succeeded.

    `requeue_after` asks for another one without waiting for a change, `requeue` for one with
    back-off, as after a failure.
    """

    requeue_after: timedelta | None = None
    requeue: bool = False


class TerminalError(Exception):
    """An error that a retry cannot fix: the controller waits for the next change of the object."""


class RetryableError(Exception):
    """A temporary error: the controller retries after `retry_after` s, or with back-off."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after
