"""The handler of HTTP requests: answers an AdmissionReview with the engine in force."""

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from aiohttp import web

from config.api.policy import API_VERSION
from webhook import review
from webhook.engine import Attributes, Engine, Request, Requirements, Verdict
from webhook.engine.request import NOTHING
from webhook.registries.cache import ImageLookUps
from webhook.registries.room import Asker
from webhook.server import convert
from webhook.server.answers import Refusal
from webhook.server.callers import Callers
from webhook.server.decisions import record
from webhook.server.exchange import Exchange
from webhook.server.metrics import WebhookMetrics
from webhook.server.needs import LookUpFunction, looked_up
from webhook.server.protocol import HttpAnswer
from webhook.server.requests import MAX_LIGHT_CONVERSION, RETRY, is_light, route_of
from webhook.server.shares import Shares
from webhook.server.stored_objects import size_of
from webhook.server.turns import Turns

MAX_BODIES = 32 * 1024 * 1024  # bytes of all large bodies in memory
LOOK_UP_SECONDS = 0.5
MAX_LIGHT_KNOWN = 64 * 1024  # bytes of looked-up objects; 2 ms of decoding
REGISTRY_MARGIN = 0.2  # share of a review's time that remains when a registry has not answered
POLICY_GROUP = API_VERSION.partition("/")[0]
NO_ROUTE = Refusal(404, "not found; reviews are sent to /validate, /mutate or /convert")

log = logging.getLogger("gatewright.webhook")


class HasEngine(Protocol):
    """Provides the engine in force; None until the policies are loaded."""

    engine: Engine | None


class AdmissionHandler:
    """Answers reviews with the engine in force."""

    def __init__(
        self,
        policies: HasEngine,
        metrics: WebhookMetrics,
        look_ups: Mapping[str, LookUpFunction],
        record_review: Callable[[bytes], None] | None = None,
        callers: Callers | None = None,
        images: ImageLookUps | None = None,
    ) -> None:
        """Take the policies in force, the metrics, and the look-ups by name.

        `record_review` gets the body of each validating review that policies judged. Without
        `callers`, every client may send reviews. `images` reads registries for policies about
        images.
        """
        self._policies = policies
        self._metrics = metrics
        self._look_ups = look_ups
        self._record_review = record_review
        self._callers = callers
        self._images = images
        self._bodies = Shares(MAX_BODIES)
        self._turns = Turns()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request: route, caller, body, turn, review, answer."""
        route = route_of(request.raw_path)
        if route is None:
            return HttpAnswer.refusing(NO_ROUTE)
        with Exchange(request, route, self._metrics) as exchange:
            if self._callers is not None:
                self._callers.check(request, route.hook)
            body = await exchange.receive(self._bodies)
            # wait before decoding the body, which takes memory
            await self._turns.wait(exchange.address, exchange.deadline)
            answer = self._convert if route.hook == "convert" else self._review
            exchange.succeed(await answer(exchange, body))
        assert exchange.answer is not None
        return exchange.answer

    async def _convert(self, exchange: Exchange, body: bytes) -> bytes:
        is_short = len(body) <= MAX_LIGHT_CONVERSION
        place = exchange.address, ""
        return await self._turns.run(place, exchange.deadline, _convert, body, is_short=is_short)

    async def _review(self, exchange: Exchange, body: bytes) -> bytes:
        """Answer a review; deny a malformed request."""
        engine = self._policies.engine
        if engine is None:
            raise Refusal(503, "the policies are not loaded yet", RETRY)
        hook = exchange.route.hook
        try:
            about = review.attributes(body)
            requirements = engine.requirements(about, mutating=hook == "mutate")
            if requirements is None:
                self._metrics.reviews(hook, about.operation, "allowed").inc()
                return review.allow(about)
            judge = engine.mutate if hook == "mutate" else engine.validate
            verdict, answer = await self._judge(judge, requirements, exchange, about, body)
        except review.MalformedRequestError as error:
            self._metrics.reviews(hook, "other", "malformed").inc()
            fields = {"fields": {"uid": error.uid, "webhook": hook}}
            log.info("malformed request denied: %s", error, extra=fields)
            return review.deny_malformed(error)
        record(self._metrics, hook, about, verdict, time.perf_counter() - exchange.began)
        if self._record_review is not None and hook == "validate":
            self._record_review(body)
        return answer

    async def _judge(
        self,
        judge: Callable[[Request], Verdict],
        requirements: Requirements,
        exchange: Exchange,
        about: Attributes,
        body: bytes,
    ) -> tuple[Verdict, bytes]:
        """Run the look-ups and judge; a large review in the worker thread."""
        route = exchange.route
        # compiling a policy object is slow
        is_short = is_light(body) and not requirements.takes_long and about.group != POLICY_GROUP
        data, images = NOTHING, None
        if needs := requirements.needs:
            seconds = min(LOOK_UP_SECONDS, route.seconds / 2)
            data = await looked_up(self._look_ups, about, needs, seconds)
            is_short = is_short and size_of(data) <= MAX_LIGHT_KNOWN
            if self._images is not None:
                images = self._images.of_review(needs, Asker(about.namespace, about.dry_run))
        if images is not None:
            data = {**data, **images.looked_up}
        while True:
            verdict, answer = await self._turns.run(
                (exchange.address, about.namespace),
                exchange.deadline,
                _judge,
                judge,
                about,
                data,
                is_short=is_short,
            )
            if images is None:
                return verdict, answer
            left = exchange.deadline - time.perf_counter() - route.seconds * REGISTRY_MARGIN
            if not await images.has_more(is_denied=not verdict.allowed, seconds=left):
                return verdict, answer
            is_short = False  # verifying signatures is slow


def _convert(body: bytes) -> bytes:
    answer, problem = convert.answer(body)
    if problem:
        log.warning("not converted: %s", problem)
    return answer


def _judge(
    judge: Callable[[Request], Verdict], about: Attributes, data: Mapping[str, Any]
) -> tuple[Verdict, bytes]:
    request = review.request(about, data)
    verdict = judge(request)
    answer = review.answer(request, verdict)
    # breaks the cycle of request and records, so that no garbage collection is needed
    request.forget()
    return verdict, answer
