"""The pages of a process over plain HTTP: `/metrics`, `/healthz` and `/readyz`."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from gatewright.processes.page_server import Address, Later, Page, PageResponse, Pages, serve_pages

Check = Callable[[], str | None]  # returns the fault, or None


@dataclass(frozen=True, slots=True)
class ProcessHealth:
    """The metrics of a process, its readiness checks by name, and details of them.

    Parts of the process add to all of them while it starts.
    """

    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    ready: dict[str, Check] = field(default_factory=dict)
    details: dict[str, Callable[[], str]] = field(default_factory=dict)
    """The text of a check without a fault."""


@asynccontextmanager
async def listening(
    observed: ProcessHealth, metrics: Address, health: Address
) -> AsyncIterator[tuple[Address, Address]]:
    """Serve metrics and health until the context exits, on one listener if addresses match.

    Yields the addresses in use, which differ from the requested ones if the requested port is 0.
    """
    health_pages: Pages = {
        "/healthz": _serve_check({}, {}),
        "/readyz": _serve_check(observed.ready, observed.details),
    }
    metrics_pages: Pages = {"/metrics": _serve_metrics(observed.registry)}
    if metrics == health and metrics[1]:
        async with serve_pages([(metrics, {**health_pages, **metrics_pages})]) as (both,):
            yield both, both
    else:
        async with serve_pages([(metrics, metrics_pages), (health, health_pages)]) as (
            of_metrics,
            of_health,
        ):
            yield of_metrics, of_health


def _serve_check(checks: Mapping[str, Check], details: Mapping[str, Callable[[], str]]) -> Page:
    def line(name: str, wrong: str | None) -> str:
        if wrong:
            return f"[-] {name}: {wrong}"
        return f"[+] {name}: {details[name]()}" if name in details else f"[+] {name}"

    def page(_: str) -> PageResponse:
        findings = {name: check() for name, check in checks.items()}
        lines = [line(name, wrong) for name, wrong in findings.items()]
        well = not any(findings.values())
        status = HTTPStatus.OK if well else HTTPStatus.SERVICE_UNAVAILABLE
        return PageResponse.line(status, "\n".join([*lines, "ok" if well else "failed"]))

    return page


class Collected(Collector):
    """The metrics of a registry at one moment."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._metrics = tuple(registry.collect())

    def collect(self) -> Iterable[Metric]:
        """Return the metrics."""
        return self._metrics


def _serve_metrics(registry: CollectorRegistry) -> Page:
    """Collect on the event loop, and write the text in a thread, which may take seconds."""

    def page(accept: str) -> Later:
        encode, content_type = choose_encoder(accept)
        collected = Collected(registry)
        return lambda: PageResponse(encode(collected), content_type=content_type)

    return page
