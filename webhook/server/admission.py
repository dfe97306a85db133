"""AdmissionHandler: an HTTP request in, the answer to its review out."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from types import CoroutineType
from typing import Any, Protocol

from aiohttp import web

from config.api.policy import API_VERSION
from kube.errors import ApiError
from webhook import review
from webhook.engine import Attributes, Engine, Request, Verdict
from webhook.server import convert
from webhook.server.answers import REVIEWED, Answer, Refusal
from webhook.server.connection import CLIENT, IDLE, SERVER, Connection
from webhook.server.decisions import fields_of, record
from webhook.server.metrics import WebhookMetrics
from webhook.server.requests import (
    MAX_LIGHT_CONVERSION,
    RETRY,
    Route,
    body_of,
    is_light,
    route_of,
    size_of,
)
from webhook.server.shares import Shares
from webhook.server.turns import Turns

LARGE_BODY = 32 * 1024  # bytes; the limit of connections bounds the memory of smaller ones
MAX_BODIES = 32 * 1024 * 1024  # bytes of all large bodies in memory
LOOK_UP_SECONDS = 0.5
POLICY_GROUP = API_VERSION.partition("/")[0]

LookUpFunction = Callable[[Attributes], Any]
"""Returns what a policy needs, or a coroutine where the API server has to be asked."""

log = logging.getLogger("gatewright.webhook")


class HasEngine(Protocol):
    """Knows the engine in force; None until the policies are loaded."""

    engine: Engine | None


class AdmissionHandler:
    """Answers reviews with the engine in force."""

    def __init__(
        self,
        policies: HasEngine,
        metrics: WebhookMetrics,
        look_ups: Mapping[str, LookUpFunction],
        record_review: Callable[[bytes], None] | None = None,
    ) -> None:
        """Take the policies in force, the metrics, and by name the look-ups that policies may need.

        `record_review` gets the body of each validating review that policies judged.
        """
        self._policies = policies
        self._metrics = metrics
        self._look_ups = look_ups
        self._record_review = record_review
        self._bodies = Shares(MAX_BODIES)
        self._turns = Turns()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        connection = request.protocol
        assert isinstance(connection, Connection)
        if connection.acts == IDLE:  # the request came while the one before was judged
            connection.let_act(CLIENT)
        route = route_of(request.raw_path)
        if route is None:
            return Refusal(
                404, "not found; reviews are sent to /validate, /mutate or /convert"
            ).answer()
        self._metrics.in_flight[route.hook] += 1
        started = time.perf_counter()
        deadline = started + route.seconds  # the API server counts from here too
        status, taken = 500, 0
        try:
            if (size := size_of(request)) > LARGE_BODY:
                connection.let_act(SERVER)
                async with asyncio.timeout(route.seconds):
                    await self._bodies.take(connection.address, size)
                taken = size
                connection.let_act(CLIENT)
            connection.accept()
            body = await body_of(request)
            connection.let_act(SERVER)
            started = time.perf_counter()
            await self._turns.wait(
                connection.address, deadline
            )  # before the body is decoded, which takes memory
            if route.hook == "convert":
                is_short = len(body) <= MAX_LIGHT_CONVERSION
                reviewed = await self._turns.run(
                    connection.address, deadline, _converted, body, is_short=is_short
                )
            else:
                reviewed = await self._review(route, body, connection.address, started, deadline)
            if time.perf_counter() > deadline:
                # the API server may have given up, and must never take this answer for a timely one
                raise TimeoutError
            answer, status = Answer(reviewed, REVIEWED), 200
        except review.NotAReviewError as error:
            answer, status = Refusal(400, str(error)).answer(), 400
        except TimeoutError:
            late = f"not judged within {route.seconds:g} s, which is when the API server gives up"
            answer, status = Refusal(503, late, RETRY).answer(), 503
        except Refusal as refusal:
            answer, status = refusal.answer(), refusal.status
        finally:
            if taken:
                self._bodies.count(connection.address, -taken)
            self._metrics.in_flight[route.hook] -= 1
            self._metrics.latency(route.hook).observe(time.perf_counter() - started)
            self._metrics.requests(route.hook, str(status)).inc()
        return answer

    async def _review(
        self, route: Route, body: bytes, address: str, started: float, deadline: float
    ) -> bytes:
        """Answer a review.

        A large one is judged beside the event loop, which answers other requests meanwhile.
        """
        engine = self._policies.engine
        if engine is None:
            raise Refusal(503, "the policies are not loaded yet", RETRY)
        is_mutating = route.hook == "mutate"
        try:
            about = review.attributes(body)
            if not engine.judges(about, mutating=is_mutating):
                self._metrics.reviews(route.hook, about.operation, "allowed").inc()
                return review.allow(about)
            looked_up = review.NOTHING
            if needs := engine.needs(about, mutating=is_mutating):
                looked_up = await self._looked_up(
                    about, needs, min(LOOK_UP_SECONDS, route.seconds / 2)
                )
            judge = engine.mutate if is_mutating else engine.validate
            is_short = is_light(body) and about.namespace not in engine.slow_namespaces
            verdict, answer = await self._turns.run(
                address,
                deadline,
                _judged,
                judge,
                about,
                looked_up,
                is_short=is_short
                and about.group != POLICY_GROUP,  # compiling a policy is long, however small it is
            )
        except review.MalformedRequestError as error:
            self._metrics.reviews(route.hook, "other", "malformed").inc()
            log.info(
                "malformed request denied: %s",
                error,
                extra={"fields": {"uid": error.uid, "webhook": route.hook}},
            )
            return review.deny_malformed(error)
        record(self._metrics, route.hook, about, verdict, time.perf_counter() - started)
        if self._record_review is not None and not is_mutating:
            self._record_review(body)
        return answer

    async def _looked_up(
        self, about: Attributes, needs: frozenset[str], seconds: float
    ) -> Mapping[str, Any]:
        """Look up what the policies need.

        What is missing in the end, the engine makes an error of.
        """
        found: dict[str, Any] = {}
        deadline = None
        for name in needs & self._look_ups.keys():
            try:
                answer = self._look_ups[name](about)
                if type(answer) is CoroutineType:
                    deadline = deadline or asyncio.get_running_loop().time() + seconds
                    async with asyncio.timeout_at(deadline):
                        answer = await answer
                found[name] = answer
            except (ApiError, TimeoutError) as error:
                reason = str(error) or "no answer in time"
                log.warning(
                    "%s: look-up failed: %s", name, reason, extra={"fields": fields_of(about)}
                )
        return found


def _converted(body: bytes) -> bytes:
    answer, problem = convert.answer(body)
    if problem:
        log.warning("not converted: %s", problem)
    return answer


def _judged(
    judge: Callable[[Request], Verdict], about: Attributes, looked_up: Mapping[str, Any]
) -> tuple[Verdict, bytes]:
    request = review.request(about, looked_up)
    verdict = judge(request)
    answer = review.answer(request, verdict)
    # its records refer to it: it would stay in memory until the garbage collector finds it
    request.forget()
    return verdict, answer
