"""An exchange: one HTTP request and its answer, with deadline, metrics and clean-up."""

import asyncio
import time
from types import TracebackType

from aiohttp import web
from aiohttp.web_protocol import RequestPayloadError

from webhook.review import NotAReviewError
from webhook.server.activity import BODY, NO_ROOM, REQUEST, ROOM
from webhook.server.answers import REVIEWED, Refusal
from webhook.server.metrics import WebhookMetrics
from webhook.server.protocol import HttpAnswer, HttpConnection
from webhook.server.requests import RETRY, Route, size_of
from webhook.server.shares import Shares

LARGE_BODY = 32 * 1024  # bytes; the limit of connections bounds the memory of smaller ones


class Exchange:
    """One request until it is answered, with its deadline, metrics and clean-up.

    In its context, a refusal, a time-out or an invalid review becomes the answer.
    """

    def __init__(self, request: web.BaseRequest, route: Route, metrics: WebhookMetrics) -> None:
        """Start at the head of a request, as the API server's time-out does."""
        connection = request.protocol
        assert isinstance(connection, HttpConnection)
        self.route = route
        self.address = connection.address
        self.began = time.perf_counter()
        """When the request arrived; after `receive`, when its body was complete."""
        self.deadline = self.began + route.seconds
        self.answer: HttpAnswer | None = None
        self._request, self._connection = request, connection
        self._metrics = metrics
        self._room: tuple[Shares, int] | None = None

    def __enter__(self) -> "Exchange":
        # it may have arrived while the previous one was judged
        self._connection.activity.on(REQUEST)
        self._metrics.in_flight[self.route.hook] += 1
        return self

    async def receive(self, bodies: Shares) -> bytes:
        """Return the complete body; a large one waits until its address has room in `bodies`.

        The room is released when the exchange ends.
        """
        size = size_of(self._request)
        if size > LARGE_BODY:
            self._connection.activity.on(NO_ROOM)
            async with asyncio.timeout(self.route.seconds):
                await bodies.take(self.address, size)
            self._room = bodies, size
            self._connection.activity.on(ROOM)
        self._connection.accept()
        try:
            body = await self._request.content.read()
        except (ConnectionError, RequestPayloadError) as error:
            error.__traceback__ = None  # breaks the cycle of error, frames and stream
            raise Refusal(400, "the body did not arrive as announced") from None
        self._connection.activity.on(BODY)
        self.began = time.perf_counter()
        return body

    def succeed(self, reviewed: bytes) -> None:
        """Answer with a review.

        Raises TimeoutError after the deadline: the API server may have given up, and must never get
        a late answer.
        """
        if time.perf_counter() > self.deadline:
            raise TimeoutError
        self.answer = HttpAnswer(reviewed, REVIEWED)

    def __exit__(
        self,
        _type: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> bool:
        refusal = None if error is None else self._refusal(error)
        status = 200 if error is None else 500
        if refusal is not None:
            self.answer = HttpAnswer.refusing(refusal)
            status = refusal.status
        if self._room is not None:
            bodies, size = self._room
            bodies.count(self.address, -size)
        hook = self.route.hook
        self._metrics.in_flight[hook] -= 1
        self._metrics.latency(hook).observe(time.perf_counter() - self.began)
        self._metrics.requests(hook, str(status)).inc()
        return refusal is not None

    def _refusal(self, error: BaseException) -> Refusal | None:
        """Return the refusal for an error; None for an internal error."""
        if isinstance(error, Refusal):
            return error
        if isinstance(error, NotAReviewError):
            return Refusal(400, str(error))
        if isinstance(error, TimeoutError):
            when = f"within {self.route.seconds:g} s, which is when the API server gives up"
            return Refusal(503, f"not judged {when}", RETRY)
        return None
