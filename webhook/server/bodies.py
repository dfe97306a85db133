"""Reads the bodies of reviews, within limits of size, memory and work."""

from aiohttp import hdrs, web
from aiohttp.web_protocol import RequestPayloadError

from webhook.server.answers import JSON, Refusal

MAX_BODY = 8 * 1024 * 1024  # bytes: object and oldObject at the API server's own limit of 3 MiB each, and some more
MAX_BODIES = 32 * 1024 * 1024  # bytes of all large bodies in memory
LARGE_BODY = 64 * 1024  # bytes
SMALL_BODY = 8 * 1024  # bytes; has too few values to cost much
MAX_LIGHT_VALUES = 3000  # about 10 ms of judging; a review with more is judged beside the event loop
MAX_VALUES = 500_000  # about 60 MB when decoded
TOO_LARGE = f"a review may have at most {MAX_BODY:,} bytes"
TOO_MANY_VALUES = f"a review may have at most {MAX_VALUES:,} values"
RETRY = {"Retry-After": "1"}


class Bodies:
    """The bodies that are in memory now."""

    def __init__(self) -> None:
        self._large = 0  # bytes of those above LARGE_BODY

    async def read(self, request: web.BaseRequest, size: int) -> bytes:
        """Return a body of `size` bytes once all of it is here; `release` it in the end.

        A Refusal where there is no room for it, or where the client leaves before.
        """
        content = request.content
        if content.is_eof() and size <= LARGE_BODY:
            return content.read_nowait()
        chunks, received = [], 0
        try:
            async for chunk in content.iter_any():
                chunks.append(chunk)
                received += len(chunk)
                if size > LARGE_BODY:
                    self._large += len(chunk)
                    if self._large > MAX_BODIES:
                        raise Refusal(503, "too many large reviews at once", RETRY, closes=True)
        except (ConnectionError, RequestPayloadError, Refusal) as error:
            self._large -= received if size > LARGE_BODY else 0
            if isinstance(error, Refusal):
                raise
            raise Refusal(400, "the body did not arrive as announced", closes=True) from error
        return b"".join(chunks)

    def release(self, body: bytes) -> None:
        """Forget a body that has been read and answered."""
        if len(body) > LARGE_BODY:
            self._large -= len(body)


def check_headers(request: web.BaseRequest) -> int:
    """Return how many bytes the body has; a Refusal for what cannot be a review."""
    headers = request.headers
    if request.method != "POST":
        raise Refusal(405, "reviews are sent by POST", {"Allow": "POST"})
    if headers.get(hdrs.CONTENT_TYPE) != JSON and not headers.get(hdrs.CONTENT_TYPE, "").startswith(f"{JSON};"):
        raise Refusal(415, "the content type must be application/json")
    if hdrs.CONTENT_ENCODING in headers:
        raise Refusal(415, "the body must be sent without a Content-Encoding")
    if hdrs.EXPECT in headers:
        raise Refusal(417, "the body must be sent without waiting for 100 Continue", closes=True)
    size = request.content_length
    if size is None:
        if request.transport is not None:
            request.transport.pause_reading()
        raise Refusal(411, "the body must be sent with its Content-Length", closes=True)
    if size > MAX_BODY:
        raise Refusal(413, TOO_LARGE, closes=True)
    return size


def is_light(body: bytes) -> bool:
    """Whether a review is judged at once: its cost is bounded by its values, which commas separate.

    A Refusal where it would take too much memory when it is decoded.
    """
    if len(body) <= SMALL_BODY or (commas := body.count(b",")) <= MAX_LIGHT_VALUES:
        return True
    if len(body) > MAX_VALUES and commas + body.count(b"{") + body.count(b"[") > MAX_VALUES:
        raise Refusal(413, TOO_MANY_VALUES)
    return False
