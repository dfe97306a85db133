"""TLS records of a few bytes cost as much as large ones, so few are read at once."""

import ssl
from typing import Any

SHORT_RECORD = 256  # bytes; a client that writes whole buffers sends none but the last of a request
MAX_SHORT_RECORDS = 32  # that are read in one pass of the event loop: 0.1 ms


class CountedRecords(ssl.SSLObject):
    """A TLS connection without more data after many short records, until `count_again`.

    As `sslobject_class` of a context. What has come stays encrypted until reading is resumed.
    """

    _short = 0
    _failure: ssl.SSLError | None = None

    def do_handshake(self) -> None:
        """Complete the handshake, or let the alert about a client's certificate be sent first.

        The event loop would close the connection without it, and the client not know why.
        """
        if self._failure is not None:
            raise self._failure
        try:
            super().do_handshake()
        except ssl.SSLCertVerificationError as error:
            self._failure = error.with_traceback(None)
            raise ssl.SSLWantReadError from None

    def read(self, size: int = 1024, buffer: Any = None) -> Any:
        """Read one record, or raise SSLWantReadError."""
        if self._short == MAX_SHORT_RECORDS:
            raise ssl.SSLWantReadError("more short TLS records than are read at once")
        data = super().read(size, buffer)
        if len(data) <= SHORT_RECORD:
            self._short += 1
        return data

    def count_again(self) -> bool:
        """Read on next time; return whether more records may wait than are read at once."""
        is_over, self._short = self._short == MAX_SHORT_RECORDS, 0
        return is_over
