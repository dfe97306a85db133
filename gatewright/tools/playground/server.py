"""Serve the page, its examples and reviews of drafts over HTTP."""

import asyncio
import base64
import hashlib
import ipaddress
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from importlib.resources import files
from urllib.parse import urlsplit

import orjson
from aiohttp import web
from aiohttp.typedefs import Middleware

from config.documents import DocumentError
from config.faults import FaultsError, parse
from config.presets import presets
from gatewright.tools.playground.case import case_of
from gatewright.tools.playground.draft import Draft, JudgedDraft
from webhook.policy_sets.policy_set import PolicySetError
from webhook.server.requests import DEADLINE_SHARE, DEFAULT_SECONDS
from webhook.server.turns import Turns

HERE = files("gatewright.tools.playground")
MAX_DRAFT = 1 << 20  # bytes, which take a few seconds at most; etcd stores objects of 1.5 MiB
SECONDS = DEFAULT_SECONDS * DEADLINE_SHARE
SECURITY = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
HttpHandler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Work = Callable[[Draft, datetime], Mapping[str, str]]


def application(host: str, policies: str) -> web.Application:
    """Return the pages for a listener on `host`; `policies` is the initial policy set."""
    turns = Turns()
    app = web.Application(client_max_size=MAX_DRAFT, middlewares=[_guard(host)])
    app.add_routes(
        [
            web.get("/", _page()),
            web.get("/examples", _examples(policies)),
            web.post("/review", _handle_post(turns, _review)),
            web.post("/case", _handle_post(turns, _as_case)),
        ]
    )
    return app


def is_own(host: str, header: str) -> bool:
    """Return whether a Host header names this server.

    Only addresses and localhost are accepted: the DNS of another site can point its name here (DNS
    rebinding).
    """
    name = re.sub(r":\d+$", "", header).strip("[]")
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return name.lower() in ("localhost", host.lower())
    return True


def _guard(host: str) -> Middleware:
    @web.middleware
    async def guard(request: web.Request, handler: HttpHandler) -> web.StreamResponse:
        if not is_own(host, request.headers.get("Host", "")):
            return _problem(421, "this server is known as localhost, not by the name in Host")
        origin = request.headers.get("Origin")
        if origin is not None and not is_own(host, urlsplit(origin).netloc):
            return _problem(403, "a page of another site may not ask this server")
        try:
            response = await handler(request)
        except web.HTTPException as error:
            response = _problem(error.status, error.reason.lower())
        response.headers.update(SECURITY)
        return response

    return guard


def _page() -> HttpHandler:
    text = (HERE / "page.html").read_text("utf-8")
    policy = "default-src 'none'; connect-src 'self'; img-src data:; base-uri 'none'; "
    policy += "form-action 'none'; frame-ancestors 'none'"
    for tag in ("script", "style"):
        content = text.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0]
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        policy += f"; {tag}-src 'sha256-{digest}'"
    headers = {"Content-Security-Policy": policy}

    async def page(_: web.Request) -> web.StreamResponse:
        return web.Response(text=text, content_type="text/html", headers=headers)

    return page


def _examples(policies: str) -> HttpHandler:
    loaded = orjson.loads((HERE / "examples.json").read_bytes())
    sets = {name: path.read_text("utf-8") for name, path in presets().items()}
    body = orjson.dumps({"policies": policies, "presets": sets, "examples": loaded})

    async def examples(_: web.Request) -> web.StreamResponse:
        return web.Response(body=body, content_type="application/json")

    return examples


def _handle_post(turns: Turns, work: Work) -> HttpHandler:
    async def handler(request: web.Request) -> web.StreamResponse:
        if request.content_type != "application/json":
            return _problem(415, "the content type must be application/json")
        deadline = time.perf_counter() + SECONDS
        try:
            async with asyncio.timeout(SECONDS):
                draft = parse(Draft, orjson.loads(await request.read()))
                result = await turns.run(
                    ("page", ""), deadline, partial(_result, work), draft, is_short=False
                )
        except TimeoutError:
            return _problem(503, f"judging takes longer than {SECONDS:g} s, the limit of a webhook")
        except web.HTTPRequestEntityTooLarge:
            return _problem(413, f"a draft has at most {MAX_DRAFT} bytes")
        except (FaultsError, ValueError) as error:
            return _problem(400, f"not a draft: {error}")
        return web.json_response(result)

    return handler


def _result(work: Work, draft: Draft) -> Mapping[str, str]:
    """Return the result, or the problem of a text that cannot be used."""
    try:
        return work(draft, datetime.now(UTC))
    except (DocumentError, PolicySetError) as error:
        return {"problem": str(error)}


def _review(draft: Draft, now: datetime) -> Mapping[str, str]:
    return JudgedDraft.of(draft, now).render(now)


def _as_case(draft: Draft, now: datetime) -> Mapping[str, str]:
    return {"case": case_of(JudgedDraft.of(draft, now), now)}


def _problem(status: int, problem: str) -> web.Response:
    return web.json_response({"problem": problem}, status=status)
