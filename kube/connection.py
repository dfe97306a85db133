"""One HTTP/1.1 connection: a request is sent, its answer collected, and then it is free for the next."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from kube.coalescing import Coalescing
from kube.stream import Stream

JSON = "application/json"
COMMON = b"\r\nContent-Type: application/json\r\n"  # as the API server writes it: seen without a search for the name

BOUNDS = (b"content-length", b"transfer-encoding")  # without either an answer lasts until the connection ends
MOST_HEAD = 64 * 1024  # bytes of a status line and headers
CLOSED = "it closed the connection before the answer was complete"

Gate = Callable[[], None]


class NoAnswerError(ConnectionError):
    """No connection, or one that ended before the answer was whole; the text says why in a few words."""


@dataclass(slots=True)
class Answer:
    """What a server answered; without the body where a stream takes it."""

    status: int
    head: bytes
    """The status line and the headers, as they came."""
    body: bytes

    @property
    def is_good(self) -> bool:
        """Whether it tells of success."""
        return 200 <= self.status < 300

    @property
    def content_type(self) -> str:
        """The media type of the body, without its parameters; empty for none."""
        if COMMON in self.head:
            return JSON
        return header(self.head, b"content-type").partition(";")[0].strip().lower()

    @property
    def retry_after(self) -> str | None:
        """What the server asks for before another try."""
        return header(self.head, b"retry-after") or None


def header(head: bytes, name: bytes) -> str:
    """Return the value of a header, whose name is given in lower case; empty for none."""
    start = head.lower().find(b"\r\n" + name + b":")
    if start < 0:
        return ""
    return head[start + len(name) + 3 :].partition(b"\r\n")[0].strip().decode("latin-1")


class Connection(asyncio.Protocol):
    """What the event loop has to say of one connection, and what the parser finds in it."""

    def __init__(self, on_closed: Callable[["Connection"], None], coalescing: Coalescing) -> None:
        self._loop = asyncio.get_running_loop()
        self._on_closed = on_closed
        self._coalescing = coalescing
        self._parser = HttpResponseParser(self)
        self._transport: asyncio.Transport
        self.closed: asyncio.Future[None] = self._loop.create_future()
        """Done once the socket is closed."""
        self.heard = False
        """Whether a byte of the answer to the last request came."""
        self._keeps_alive = True
        self.idle_since = 0.0
        self._awaited: asyncio.Future[Answer | OSError] | None = None
        self._deadline = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._wanted_by: Stream | None = None
        self._stream: Stream | None = None  # the same, once it gets the body
        self._status = 0
        self._head = b""  # what came of the answer, until its head is complete; then only that
        self._body: list[bytes] = []

    def send(
        self, request: bytes, deadline: float, gate: Gate | None = None, stream: Stream | None = None
    ) -> asyncio.Future[Answer | OSError]:
        """Send a request and return what will be the whole answer; of a good one for a stream only the head.

        It comes by the deadline, or an error in its place. Whoever does not wait for it to the end aborts this
        connection: what still comes would be taken for the answer to the next request.

        The gate is asked in the very moment in which the first byte goes: between the decision to write and the write
        a process may be stopped for any time, and wake as one that no longer leads. If it raises, nothing was sent.
        """
        if gate is not None:
            gate()
        if self._transport.is_closing():
            raise NoAnswerError(CLOSED)
        self.heard = self._keeps_alive = False
        self._wanted_by = stream
        self._head = b""
        self._awaited = awaited = self._loop.create_future()
        self._deadline = deadline
        if self._timer is None or deadline < self._timer.when():
            self._watch_time()
        self._transport.write(request)
        return awaited

    @property
    def is_free(self) -> bool:
        """Whether a request may be sent: none was, or the last one's answer is whole."""
        return self._keeps_alive and not self._transport.is_closing()

    def abort(self) -> None:
        """Close it at once, without the farewell of TLS, which a frozen server would never return."""
        self._transport.abort()

    def _watch_time(self) -> None:
        """Look at the clock at the deadline.

        One timer serves many requests, for one that is set and cancelled for each costs 5 % of a request.
        """
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(self._deadline, self._expire)

    def _expire(self) -> None:
        """Give up, unless the timer was that of an earlier request."""
        self._timer = None
        if self._awaited is None:
            return
        if self._loop.time() < self._deadline:
            self._watch_time()
        else:
            self._fail(TimeoutError())

    def _resolve(self, found: Answer | OSError) -> None:
        """Give it to whoever waits."""
        awaited, self._awaited = self._awaited, None
        if awaited is not None and not awaited.done():
            awaited.set_result(found)

    def _fail(self, error: OSError) -> None:
        """Close it, and let whoever waits know why there will be no whole answer."""
        if self._stream is not None:
            self._stream.end(error)
        self._resolve(error)
        self.abort()

    def _finish(self) -> None:
        """Give the whole answer to whoever waits; a stream has got it already."""
        if self._stream is not None:
            self._feed(self._stream)
            self._stream.end()
            return
        self._resolve(Answer(self._status, self._head, b"".join(self._body)))
        self._status = 0
        self._body.clear()  # a long list is not kept by an idle connection

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
        if not self._status:
            self._head += data
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            is_http = False
        if self._stream is not None and self._body:
            self._feed(self._stream)
        if not is_http or (not self._status and len(self._head) > MOST_HEAD):
            self._fail(NoAnswerError("what it says is not HTTP"))
        self._coalescing.received(self._transport)

    def connection_lost(self, error: Exception | None) -> None:
        """Take note of the end, which is that of the answer where nothing else says how long it is."""
        self._coalescing.closed(self._transport)
        if self._status and error is None and not any(header(self._head, name) for name in BOUNDS):
            self._finish()
        self._fail(error if isinstance(error, OSError) and error.errno else NoAnswerError(CLOSED))
        if self._timer is not None:
            self._timer.cancel()
        self.closed.set_result(None)
        self._on_closed(self)

    # Called by the parser

    def on_message_begin(self) -> None:
        """Expect nothing that was not asked for."""
        if self._awaited is None or self._awaited.done():
            self.abort()

    # It is not told of each header: seven calls for an answer cost 10 % of a request, and one is looked at.

    def on_headers_complete(self) -> None:
        """Keep the head, and let a stream have what follows, if it is what the stream is about."""
        self._status = self._parser.get_status_code()
        head, _, rest = self._head.partition(b"\r\n\r\n")
        self._head = head + b"\r\n" if self._status >= 200 else rest
        if self._wanted_by is None or self._awaited is None or self._awaited.done():
            return
        answer = Answer(self._status, self._head, b"")
        if answer.is_good and answer.content_type == JSON:
            self._stream = self._wanted_by
            self._stream.begin(self._transport)
            self._resolve(answer)

    def on_body(self, data: bytes) -> None:
        """Keep a piece of the body."""
        self._body.append(data)

    def on_message_complete(self) -> None:
        """Take the answer as whole, unless it only says that another will come."""
        if self._status < 200:
            self._status = 0
            self._body.clear()
            return
        self._keeps_alive = self._stream is None and self._parser.should_keep_alive()
        self._finish()
