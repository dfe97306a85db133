"""The reconciler of both webhook configurations; `RegistrationReader` computes their content.

It is computed once for each engine, in a thread: leader election and reconciles go on meanwhile.

The chart installs them empty, so that no webhook is called before one answers; then the leader
fills them in. From then on the rules follow the policies, and the caBundle follows the certificate
authority. A configuration that was deleted stays deleted, unless this process creates them:
deleting them is how an operator disables Gatewright in an emergency.

They are not written by server-side apply: that would keep what another writer added, such as a
matchCondition that is never true.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Sequence

import orjson

from config.api.match import LabelSelector
from config.faults import parse
from controller.registration.configurations import (
    DOMAIN,
    MUTATING,
    VALIDATING,
    Registration,
    RegistrationReader,
    Service,
    Timeouts,
    WebhookClientConfig,
)
from controller.registration.demands import PolicyId
from controller.registration.metrics import RegistrationMetrics
from controller.registration.upkeep import DesiredPart, Upkeep
from controller.runtime.cache import Cache, Caches
from controller.runtime.controller import Controller
from controller.runtime.metrics import ControllerMetrics
from controller.runtime.types import ReconcileRequest, Result
from kube.client import Client
from kube.resource import JsonObject, Resource
from webhook.engine import Engine
from webhook.engine.match import Labels, compile_selector

WIDENED = (
    "%s policies select namespaces by more different labels than webhooks can express: requests "
    "from more namespaces reach the webhook. These policies have the condition Narrow=False"
)

LOG = logging.getLogger("gatewright.registration")


class Registrar(Upkeep):
    """The reconciler of both configurations.

    When policies change, add `request` to its controller.
    """

    name = "registration"
    purpose = "not registered"
    written = "registered"

    def __init__(
        self,
        client: Client,
        caches: Caches,
        configuration: str,
        at: Service | str,
        engine: Callable[[], Engine | None],
        *,
        ca_bundle: Callable[[], bytes | None] | None,
        excluded_namespaces: Sequence[str],
        creates: bool = False,
        timeouts: Timeouts = Timeouts(),  # noqa: B008
        on_widened: Callable[[frozenset[PolicyId]], None] = lambda policies: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the name of both configurations, the webhook's address, and the policies in force.

        With `creates`, a configuration that does not exist is created. `on_widened` is called with
        the policies for which requests are sent from more namespaces than they select, whenever
        these change.
        """
        both = [(resource, configuration) for resource in (VALIDATING, MUTATING)]
        super().__init__(client, caches, both, at, ca_bundle, clock)
        self._configuration = configuration
        self._engine = engine
        self._creates = creates
        self._timeouts = timeouts
        self._reader = RegistrationReader(excluded_namespaces)
        self._registered: tuple[Engine, Registration] | None = None
        # The content of each configuration, and the state that no reconcile has to change.
        self._rendered: dict[Resource, tuple[Registration, WebhookClientConfig, list[JsonObject]]]
        self._rendered = {}
        self._settled: tuple[object, ...] | None = None
        self._on_widened = on_widened
        self._metrics: RegistrationMetrics | None = None

    async def reconcile(self, request: ReconcileRequest) -> Result:
        """Compute the registration for new policies, and write both parts."""
        engine, before = self._engine(), self._registered
        if engine is not None and (before is None or before[0] is not engine):
            computed = await asyncio.to_thread(self._reader.read, engine)
            self._registered = engine, computed
            if before is None or before[1] is not computed:
                self._report(computed, frozenset() if before is None else before[1].widened)
        state = self._state()
        if state == self._settled:
            return Result()
        result = await super().reconcile(request)
        self._settled = state if result.requeue_after is None else None
        return result

    def _state(self) -> tuple[object, ...]:
        """Return what a reconcile reads: most changes of policies leave it as it is."""
        entries = [cache.entry(name) for (_, name), cache in self.caches.items()]
        versions = [None if entry is None else entry.resource_version for entry in entries]
        bundle = None if self.ca_bundle is None else self.ca_bundle()
        return None if self._registered is None else id(self._registered[1]), bundle, *versions

    def _report(self, computed: Registration, widened_before: frozenset[PolicyId]) -> None:
        if self._metrics is not None:
            self._metrics.widened.set(len(computed.widened))
            for resource in (VALIDATING, MUTATING):
                self._metrics.webhooks.labels(resource.kind).set(computed.count(resource))
        if computed.widened != widened_before:
            self._on_widened(computed.widened)
            if computed.widened:
                LOG.warning(WIDENED, len(computed.widened))

    def controller(self, metrics: ControllerMetrics, also: Iterable[Cache] = ()) -> Controller:
        """Return the controller that runs it, and count webhooks in these metrics."""
        self._metrics = RegistrationMetrics(metrics.registry)
        return super().controller(metrics, also)

    def plan_part(self, resource: Resource, stored: JsonObject | None) -> DesiredPart | None:
        """Return the webhooks.

        They have no rules until another controller has filled in a caBundle.
        """
        trusted = self.trusted_bundle(stored)
        if (
            self._registered is None
            or (stored is None and not self._creates)
            or (trusted is None and self.ca_bundle is not None)
        ):
            return None
        address = WebhookClientConfig(self.at, trusted, self._timeouts)
        is_active = trusted is not None
        webhooks = self._webhooks(resource, self._registered[1], address)
        return DesiredPart(webhooks, address, is_active and not self._has_rules(stored))

    @property
    def namespace_selectors(self) -> Sequence[Callable[[Labels], bool]]:
        """The distinct namespace selectors of the validating webhooks, as predicates on labels."""
        if self._registered is None:
            return ()
        selectors = {
            orjson.dumps(call.namespace_selector): call.namespace_selector
            for sort, calls in self._registered[1].calls.items()
            if not sort.mutating
            for call in calls.targets
        }
        return [compile_selector(parse(LabelSelector, each)) for each in selectors.values()]

    def _webhooks(
        self, resource: Resource, registration: Registration, address: WebhookClientConfig
    ) -> list[JsonObject]:
        """Return the webhooks of a configuration, again only for another registration."""
        rendered = self._rendered.get(resource)
        if rendered is None or rendered[0] is not registration or rendered[1] != address:
            is_active = address.ca_bundle is not None
            webhooks = registration.webhooks(resource, address, active=is_active)
            rendered = self._rendered[resource] = registration, address, webhooks
        return rendered[2]

    def ready(self) -> str | None:
        """Return why the API server calls no webhook yet, or None.

        A configuration that was deleted is not a problem: it is how an operator disables
        Gatewright.
        """
        configurations = [cache.get(name) for (_, name), cache in self.caches.items()]
        if not any(configurations) or any(map(self._has_rules, configurations)):
            return None
        return self.problem or "no webhook is registered yet"

    def _has_rules(self, stored: JsonObject | None) -> bool:
        return any(webhook.get("rules") for webhook in self.part(stored))

    def part(self, stored: JsonObject | None) -> list[JsonObject]:
        """Return Gatewright's webhooks of a stored configuration."""
        return list(filter(_is_own, (stored or {}).get("webhooks") or []))

    def patch(self, stored: JsonObject, part: list[JsonObject]) -> JsonObject:
        """Replace Gatewright's webhooks, after those of others."""
        others = [webhook for webhook in stored.get("webhooks") or [] if not _is_own(webhook)]
        return {"webhooks": others + part}


def _is_own(webhook: JsonObject) -> bool:
    return str(webhook["name"]).endswith(f".{DOMAIN}")
