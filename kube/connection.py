"""One HTTP/1.1 connection: a request is sent, its answer collected, and then it is free for the next."""

import asyncio
from collections.abc import Callable
from typing import NamedTuple, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from kube.stream import Stream

JSON = "application/json"

CLOSED = "it closed the connection before the answer was complete"

Gate = Callable[[], None]


class NoAnswerError(ConnectionError):
    """No connection, or one that ended before the answer was whole; the text says why in a few words."""


class Answer(NamedTuple):
    """What a server answered; without the body where a stream takes it."""

    status: int
    content_type: str
    retry_after: str
    body: bytes

    @property
    def is_good(self) -> bool:
        """Whether it tells of success."""
        return 200 <= self.status < 300


class Connection(asyncio.Protocol):
    """What the event loop has to say of one connection, and what the parser finds in it."""

    def __init__(self, on_closed: Callable[["Connection"], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._on_closed = on_closed
        self._parser = HttpResponseParser(self)
        self._transport: asyncio.Transport
        self.closed: asyncio.Future[None] = self._loop.create_future()
        """Done once the socket is closed."""
        self.heard = False
        """Whether a byte of the answer to the last request came."""
        self._keeps_alive = True
        self.idle_since = 0.0
        self._awaited: asyncio.Future[Answer | OSError] | None = None
        self._wanted_by: Stream | None = None
        self._stream: Stream | None = None  # the same, once it gets the body
        self._status = 0
        self._content_type = self._retry_after = ""
        self._is_bounded = False  # the body: by a length, or by chunks; otherwise by the end of the connection
        self._body: list[bytes] = []

    async def exchange(
        self, request: bytes, deadline: float, gate: Gate | None = None, stream: Stream | None = None
    ) -> Answer:
        """Send a request and return the whole answer; of a good one for a stream only the head.

        The gate is asked in the very moment in which the first byte goes: between the decision to write and the write
        a process may be stopped for any time, and wake as one that no longer leads. If it raises, nothing was sent.
        """
        if gate is not None:
            gate()
        if self._transport.is_closing():
            raise NoAnswerError(CLOSED)
        self.heard = self._keeps_alive = False
        self._wanted_by = stream
        self._awaited = self._loop.create_future()
        timer = self._loop.call_at(deadline, self._expire)
        self._transport.write(request)
        try:
            found = await self._awaited
        except BaseException:
            self.abort()  # what still comes would be taken for the answer to the next request
            raise
        finally:
            timer.cancel()
            self._awaited = None
        if isinstance(found, OSError):
            raise found
        return found

    @property
    def is_free(self) -> bool:
        """Whether a request may be sent: none was, or the last one's answer is whole."""
        return self._keeps_alive and not self._transport.is_closing()

    def abort(self) -> None:
        """Close it at once, without the farewell of TLS, which a frozen server would never return."""
        self._transport.abort()

    def _expire(self) -> None:
        self._fail(TimeoutError())

    def _fail(self, error: OSError) -> None:
        """Close it, and let whoever waits know why there will be no whole answer."""
        if self._stream is not None:
            self._stream.end(error)
        elif self._awaited is not None and not self._awaited.done():
            self._awaited.set_result(error)
        self.abort()

    def _finish(self) -> None:
        """Give the whole answer to whoever waits; a stream has got it already."""
        if self._stream is not None:
            self._feed(self._stream)
            self._stream.end()
        elif self._awaited is not None and not self._awaited.done():
            answer = Answer(self._status, self._content_type, self._retry_after, b"".join(self._body))
            self._awaited.set_result(answer)
            self._forget()  # a long list is not kept by an idle connection

    def _feed(self, stream: Stream) -> None:
        data = b"".join(self._body)
        self._body.clear()
        stream.receive(data)

    # Called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Parse what came."""
        self.heard = is_http = True
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            is_http = False
        if self._stream is not None and self._body:
            self._feed(self._stream)
        if not is_http:
            self._fail(NoAnswerError("what it says is not HTTP"))

    def connection_lost(self, error: Exception | None) -> None:
        """Take note of the end, which is that of the answer where nothing else says how long it is."""
        if self._status and not self._is_bounded and error is None:
            self._finish()
        self._fail(error if isinstance(error, OSError) and error.errno else NoAnswerError(CLOSED))
        self.closed.set_result(None)
        self._on_closed(self)

    # Called by the parser

    def on_message_begin(self) -> None:
        """Expect nothing that was not asked for."""
        if self._awaited is None or self._awaited.done():
            self.abort()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep what matters."""
        match name.lower():
            case b"content-type":
                self._content_type = value.partition(b";")[0].strip().lower().decode("latin-1")
            case b"retry-after":
                self._retry_after = value.decode("latin-1")
            case b"content-length" | b"transfer-encoding":
                self._is_bounded = True

    def on_headers_complete(self) -> None:
        """Let a stream have what follows, if it is what the stream is about."""
        self._status = self._parser.get_status_code()
        if self._wanted_by is None or self._awaited is None or self._awaited.done():
            return
        head = Answer(self._status, self._content_type, self._retry_after, b"")
        if head.is_good and head.content_type == JSON:
            self._stream = self._wanted_by
            self._stream.begin(self._transport)
            self._awaited.set_result(head)

    def on_body(self, data: bytes) -> None:
        """Keep a piece of the body."""
        self._body.append(data)

    def on_message_complete(self) -> None:
        """Take the answer as whole, unless it only says that another will come."""
        if self._status < 200:
            self._forget()
            return
        self._keeps_alive = self._stream is None and self._parser.should_keep_alive()
        self._finish()

    def _forget(self) -> None:
        """Know nothing of an answer."""
        self._status = 0
        self._content_type = self._retry_after = ""
        self._is_bounded = False
        self._body = []
