"""What an HTTP request asks: its hook, the time for the answer, and a body within limits of size, memory and work."""

import re
from functools import lru_cache
from typing import NamedTuple

from aiohttp import hdrs, web
from aiohttp.web_protocol import RequestPayloadError

from webhook.server.answers import JSON, Refusal

HOOKS = {"/validate": "validate", "/mutate": "mutate", "/convert": "convert"}
DEFAULT_SECONDS = 10.0  # timeoutSeconds of a webhook configuration that names none
DEADLINE_SHARE = 0.9  # the rest of the time is for the way back
TIMEOUT = re.compile(r"[?&]timeout=(\d{1,6}(?:\.\d{1,9})?)(ms|s|m)(?:&|$)")
UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0}

MAX_BODY = 8 * 1024 * 1024  # bytes: object and oldObject at the API server's own limit of 3 MiB each, and some more
MAX_BODIES = 32 * 1024 * 1024  # bytes of all large bodies in memory
LARGE_BODY = 64 * 1024  # bytes
SMALL_BODY = 8 * 1024  # bytes; has too few values to cost much
MAX_LIGHT_VALUES = 3000  # about 10 ms of judging; a review with more is judged beside the event loop
MAX_VALUES = 500_000  # about 60 MB when decoded
TOO_LARGE = f"a review may have at most {MAX_BODY:,} bytes"
TOO_MANY_VALUES = f"a review may have at most {MAX_VALUES:,} values"
RETRY = {"Retry-After": "1"}


class Route(NamedTuple):
    """What a path asks for."""

    hook: str
    seconds: float
    """How long answering may take."""


@lru_cache(maxsize=256)
def route_of(raw_path: str) -> Route | None:
    """Return the route of a path: /validate, /mutate or /convert, or one followed by -<anything>; None for others."""
    path = raw_path.partition("?")[0]
    prefix, dash, rest = path.partition("-")
    hook = HOOKS.get(prefix) if "/" not in rest and (rest or not dash) else None
    return None if hook is None else Route(hook, _seconds(raw_path))


def _seconds(raw_path: str) -> float:
    """Return the seconds that the API server waits for this request (`?timeout=3s`), less a share for the way back."""
    found = TIMEOUT.search(raw_path)
    seconds = float(found[1]) * UNITS[found[2]] if found else 0.0
    return (seconds or DEFAULT_SECONDS) * DEADLINE_SHARE


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
