"""The plain HTTP listeners of a process: `/metrics`, `/healthz` and `/readyz`."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Check = Callable[[], str | None]  # what is wrong, or None
Address = tuple[str | None, int]  # no host: every interface


class ListenError(OSError):
    """An address that cannot be listened on."""


@dataclass(frozen=True, slots=True)
class Observed:
    """What a process shows of itself: its metrics, and checks by name; both may still grow."""

    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    ready: dict[str, Check] = field(default_factory=dict)
    alive: dict[str, Check] = field(default_factory=dict)


@asynccontextmanager
async def listening(observed: Observed, metrics: Address, health: Address) -> AsyncIterator[tuple[Address, Address]]:
    """Serve metrics and health while the context lasts, on one listener if the addresses are the same.

    Yields the addresses in use, which differ from the wanted ones where the wanted port is 0.
    """
    health_routes = [
        web.get("/healthz", _checked(observed.alive)),
        web.get("/readyz", _checked(observed.ready)),
    ]
    metrics_routes = [web.get("/metrics", _exposed(observed.registry))]
    async with AsyncExitStack() as stack:
        if metrics == health and metrics[1]:
            both = await stack.enter_async_context(_served(health_routes + metrics_routes, metrics))
            yield both, both
        else:
            yield (
                await stack.enter_async_context(_served(metrics_routes, metrics)),
                await stack.enter_async_context(_served(health_routes, health)),
            )


@asynccontextmanager
async def _served(routes: list[web.RouteDef], address: Address) -> AsyncIterator[Address]:
    application = web.Application()
    application.add_routes(routes)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=1)
    await runner.setup()
    try:
        host, port = address
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            reason = str(error.strerror or error).rpartition(": ")[2]
            raise ListenError(f"cannot listen on {host or '*'}:{port}: {reason}") from error
        yield (host, runner.addresses[0][1])
    finally:
        await runner.cleanup()


def _checked(checks: Mapping[str, Check]) -> Handler:
    async def answer(_: web.Request) -> web.Response:
        findings = {name: check() for name, check in checks.items()}
        lines = [f"[-] {name}: {wrong}" if wrong else f"[+] {name}" for name, wrong in findings.items()]
        well = not any(findings.values())
        return web.Response(status=200 if well else 503, text="\n".join([*lines, "ok" if well else "failed"]) + "\n")

    return answer


def _exposed(registry: CollectorRegistry) -> Handler:
    async def answer(request: web.Request) -> web.Response:
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        return web.Response(body=encode(registry), headers={"Content-Type": content_type})

    return answer
