"""Limits short TLS records, which cost as much as long ones."""

import ssl
from typing import Any

SHORT_RECORD = 256  # bytes; a normal client sends at most the last record of a request this short
MAX_SHORT_RECORDS = 32  # per pass of the event loop: 0.1 ms


class CountedRecords(ssl.SSLObject):
    """A TLS connection that stops reading after many short records, until `count_again`.

    Used as `sslobject_class` of a context. Unread data stays encrypted until reading is resumed.
    """

    _short = 0
    _failure: ssl.SSLError | None = None

    def do_handshake(self) -> None:
        """Complete the handshake; if it fails, send the TLS alert first.

        Otherwise the event loop would close the connection without the alert that tells the client
        why.
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
        """Allow further reads; return whether the limit had been reached."""
        is_over, self._short = self._short == MAX_SHORT_RECORDS, 0
        return is_over
