"""The rim around the engine: an HTTP request in, an AdmissionReview out."""

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from aiohttp import web
from aiohttp.web_protocol import RequestPayloadError

from kube.errors import ApiError
from webhook import review
from webhook.engine import Engine, Outcome, Request, Verdict
from webhook.server import convert
from webhook.server.connections import Connection
from webhook.server.metrics import OPERATIONS, Metrics

LARGEST_BODY = 8 * 1024 * 1024  # twice the API server's own limit of 3 MiB, for object and oldObject, and some more
TOO_LARGE = f"a review may have {LARGEST_BODY} bytes at most"
LARGE_BODY = 128 * 1024  # more than nearly all objects have; judging one may take longer than others can wait
LOOK_UP_SECONDS = 0.5
DEADLINE_SHARE = 0.9  # of the time-out that the API server named
HOOKS = {"/validate": "validate", "/mutate": "mutate", "/convert": "convert"}
JSON = {"Content-Type": "application/json", "Server": "gatewright"}
TEXT = {"Content-Type": "text/plain; charset=utf-8", "Server": "gatewright"}
TIMEOUT = re.compile(r"[?&]timeout=(\d{1,6}(?:\.\d{1,9})?)(ms|s|m)(?:&|$)")
UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0}

LookUp = Callable[[Request], Awaitable[Any]]

log = logging.getLogger("gatewright.webhook")


class HasEngine(Protocol):
    """Whatever knows the engine in force; None until the policies are loaded."""

    engine: Engine | None


class Refusal(Exception):  # noqa: N818  an answer, not an error of ours
    """A request that gets no review: the HTTP status and what is wrong."""

    def __init__(self, status: int, text: str, **headers: str) -> None:
        super().__init__(text)
        self.status = status
        self.headers = headers

    def response(self) -> web.Response:
        """Return the refusal as it is sent; whatever is left of the request is not read."""
        return web.Response(status=self.status, text=f"{self}\n", headers=TEXT | self.headers)


class Rim:
    """Answers HTTP requests by asking the engine in force."""

    def __init__(self, policies: HasEngine, metrics: Metrics, look_ups: Mapping[str, LookUp]) -> None:
        """Take what to ask, what to count, and how to look up what policies need."""
        self._policies = policies
        self._metrics = metrics
        self._look_ups = look_ups
        self._large = asyncio.Lock()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request; reviews come by POST to /validate, /mutate, /convert, or one followed by -<anything>."""
        connection = request.protocol
        assert isinstance(connection, Connection)
        hook = hook_of(request.raw_path)
        if hook is None:
            return Refusal(404, "not found; reviews go to /validate, /mutate or /convert").response()
        in_flight = self._metrics.in_flight.labels(hook)
        in_flight.inc()
        started = time.perf_counter()
        status = 500
        try:
            _check_headers(request)
            body = await _read_body(request)
            connection.request_received()
            started = time.perf_counter()
            answer = self._convert(body) if hook == "convert" else await self._review(hook, body, request.raw_path)
            response = web.Response(body=answer, headers=JSON)
        except Refusal as refusal:
            response = refusal.response()
            status = response.status
        else:
            status = 200
        finally:
            in_flight.dec()
            self._metrics.latency.labels(hook).observe(time.perf_counter() - started)
            self._metrics.requests.labels(hook, str(status)).inc()
        return response

    def _convert(self, body: bytes) -> bytes:
        try:
            answer, problem = convert.answer(body)
        except review.NotAReviewError as error:
            raise Refusal(400, str(error)) from error
        if problem:
            log.warning("not converted: %s", problem)
        return answer

    async def _review(self, hook: str, body: bytes, raw_path: str) -> bytes:
        """Answer a review. Large ones are judged one at a time, beside the event loop: it answers others meanwhile."""
        if len(body) < LARGE_BODY:
            return await self._judged(hook, body, raw_path)
        waits_since = time.perf_counter()
        async with self._large:
            if time.perf_counter() - waits_since > timeout_of(raw_path):
                raise Refusal(503, "other large reviews took too long", **{"Retry-After": "1"})
            return await self._judged(hook, body, raw_path, apart=True)

    async def _judged(self, hook: str, body: bytes, raw_path: str, *, apart: bool = False) -> bytes:
        engine = self._policies.engine
        if engine is None:
            raise Refusal(503, "the policies are not loaded yet", **{"Retry-After": "1"})
        started = time.perf_counter()
        try:
            request = review.read(body)
        except review.NotAReviewError as error:
            raise Refusal(400, str(error)) from error
        except review.MalformedRequestError as error:
            self._metrics.reviews.labels(hook, "other", "malformed").inc()
            log.info("malformed request denied: %s", error, extra={"fields": {"uid": error.uid, "webhook": hook}})
            return review.deny_malformed(error)
        if needs := engine.needs(request, mutating=hook == "mutate"):
            request = await self._looked_up(request, needs, timeout_of(raw_path))
        judge = engine.mutate if hook == "mutate" else engine.validate
        verdict = await asyncio.to_thread(judge, request) if apart else judge(request)
        self._record(hook, request, verdict, time.perf_counter() - started)
        return review.answer(request, verdict)

    async def _looked_up(self, request: Request, needs: frozenset[str], seconds: float) -> Request:
        """Look up what the policies need; what cannot be had is left out, and the engine makes an error of it."""
        found: dict[str, Any] = {}
        deadline = asyncio.get_running_loop().time() + min(LOOK_UP_SECONDS, seconds)
        for name in needs & self._look_ups.keys():
            try:
                async with asyncio.timeout_at(deadline):
                    found[name] = await self._look_ups[name](request)
            except (ApiError, TimeoutError) as error:
                reason = str(error) or "no answer in time"
                log.warning("%s: look-up failed: %s", name, reason, extra={"fields": _fields(request)})
        return request.with_looked_up(found)

    def _record(self, hook: str, request: Request, verdict: Verdict, seconds: float) -> None:
        """Count what was decided; log it unless it is a plain allow."""
        attributes = request.attributes
        operation = attributes.operation if attributes.operation in OPERATIONS else "other"
        decision = _decision(verdict)
        self._metrics.reviews.labels(hook, operation, decision).inc()
        if decision in ("allowed", "patched"):
            return
        findings = {outcome.policy: finding for outcome in verdict.outcomes if (finding := _finding(outcome))}
        for policy, finding in findings.items():
            self._metrics.findings.labels(policy, finding).inc()
        fields = _fields(request) | {"webhook": hook, "policies": findings, "ms": round(seconds * 1000, 2)}
        log.info("%s", decision, extra={"fields": fields})


def hook_of(raw_path: str) -> str | None:
    """Return which hook a path stands for: /validate and /validate-<anything> are one, /mutate likewise."""
    path = raw_path.partition("?")[0]
    prefix, dash, rest = path.partition("-")
    return HOOKS.get(prefix) if "/" not in rest and (rest or not dash) else None


def timeout_of(raw_path: str) -> float:
    """Return the seconds that the API server leaves for this request (`?timeout=3s`), less a share for the way back."""
    found = TIMEOUT.search(raw_path)
    seconds = float(found[1]) * UNITS[found[2]] if found else 0.0
    return (seconds or LOOK_UP_SECONDS) * DEADLINE_SHARE


def _check_headers(request: web.BaseRequest) -> None:
    if request.method != "POST":
        raise Refusal(405, "reviews come by POST", Allow="POST")
    if request.content_type != "application/json" or "Content-Type" not in request.headers:
        raise Refusal(415, "the content type must be application/json")
    if "Content-Encoding" in request.headers:
        raise Refusal(415, "the body must come without a Content-Encoding")
    if (request.content_length or 0) > LARGEST_BODY:
        raise Refusal(413, TOO_LARGE, Connection="close")


async def _read_body(request: web.BaseRequest) -> bytes:
    if request.headers.get("Expect", "").lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0
    chunks, size = [], 0
    try:
        async for chunk in request.content.iter_any():
            chunks.append(chunk)
            size += len(chunk)
            if size > LARGEST_BODY:
                raise Refusal(413, TOO_LARGE, Connection="close")
    except (ConnectionError, RequestPayloadError) as error:
        raise Refusal(400, "the body did not arrive as announced", Connection="close") from error
    return b"".join(chunks)


def _decision(verdict: Verdict) -> str:
    if not verdict.allowed:
        judged = any(outcome.denies and outcome.error is None for outcome in verdict.outcomes)
        return "denied" if judged else "error"
    if any(map(_finding, verdict.outcomes)):
        return "warned"
    return "patched" if verdict.operations else "allowed"


def _finding(outcome: Outcome) -> str | None:
    if outcome.malformed is not None:
        return "malformed"
    if outcome.error is not None:
        return "error"
    if not outcome.violations:
        return "tolerated" if outcome.tolerated else None
    return "denied" if outcome.denies else "warned" if "Warn" in outcome.actions else "audited"


def _fields(request: Request) -> dict[str, Any]:
    attributes = request.attributes
    return {
        "uid": attributes.uid,
        "operation": attributes.operation,
        "kind": attributes.kind,
        "subresource": attributes.subresource,
        "namespace": attributes.namespace,
        "name": attributes.name,
        "user": attributes.username,
        "dry_run": attributes.dry_run,
    }
