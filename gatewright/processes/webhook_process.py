"""Assemble the webhook: policies, a certificate, and look-ups from a cluster."""

import asyncio
import ssl
import sys
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache

from config.schemas import CustomTypes
from config.settings import Settings
from controller.reconcilers.resources import CONFIG_MAP, SECRET
from gatewright.processes.listeners import ProcessHealth
from gatewright.processes.planners import optional_children, scaled_kinds
from gatewright.processes.policies_in_force import policies_of
from gatewright.processes.process import Background, Part
from gatewright.processes.registries import image_look_ups
from kube.client import Client
from kube.credentials import load
from kube.resource import JsonObject
from kube.store import Store
from kube.watch import Watch
from kube.watched import WatchedObject
from webhook.engine import NOW, SCHEMAS, SERVED, ControllerUser
from webhook.engine.conflicts import IN_FORCE
from webhook.policies.kinds.policy_impact import WIDENED_BY
from webhook.server.admission import AdmissionHandler
from webhook.server.callers import Callers
from webhook.server.certificate_pairs import PairFiles, PairSecret
from webhook.server.cluster_data import LookUps
from webhook.server.cluster_policies import RESOURCES
from webhook.server.connections import ServerConfig
from webhook.server.engine_in_force import Policies
from webhook.server.metrics import WebhookMetrics
from webhook.server.needs import LookUpFunction
from webhook.server.recording import Recorder
from webhook.server.serve import listening
from webhook.server.tls import ServingCertificate

WITHOUT_CLUSTER: dict[str, LookUpFunction] = {
    NOW: lambda _: datetime.now(UTC),
    SERVED: lambda _: (),  # without a cluster, no optional resource counts as served
    SCHEMAS: lambda _: CustomTypes,  # nor is any type of a custom kind known
}
# seconds that the event loop waits for a judging thread, at each read
SWITCH_INTERVAL = 0.0005
TLS_VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}


# Endpoints are removed within seconds. On shutdown, a connection that the API server has not used
# for 25 s is closed.
IN_A_CLUSTER = ServerConfig()
# For a webhook that the API server no longer calls.
UNREGISTERED = ServerConfig(linger_seconds=0, grace_seconds=1)


@dataclass(frozen=True, slots=True)
class Webhook:
    """The webhook of a process: its server, and its background tasks."""

    serve: Part
    background: dict[str, Background]
    policies: Policies


async def webhook_of(
    settings: Settings,
    pair: PairFiles | None,
    observed: ProcessHealth,
    stack: AsyncExitStack,
    *,
    config: ServerConfig = IN_A_CLUSTER,
    controller_user: ControllerUser | None = None,
) -> Webhook:
    """Return the webhook with its checks added to `observed`.

    Opened resources are closed with `stack`. Without `pair`, the certificate comes from the Secret
    in the settings, which needs a cluster.

    Planned children are judged as requests of `controller_user`, by default the controller's
    account. An unusable policy set or unusable credentials are errors here; later, an unusable new
    policy set leaves the old one in force.
    """
    metrics = WebhookMetrics(observed.registry)
    stores = list[Store]()
    source: PairFiles | PairSecret | None = pair
    config_maps = list[WatchedObject]()
    background: dict[str, Background] = {}
    home = settings.namespace
    look_ups: dict[str, LookUpFunction] = dict(WITHOUT_CLUSTER)
    if settings.cluster:
        endpoint = await load(settings.kubeconfig, settings.context)
        home = home or endpoint.namespace
        client = await stack.enter_async_context(Client(endpoint))
        more = LookUps(client, scaled_kinds(), optional_children())
        background["look-ups"] = more.run
        look_ups |= more.by_name
        for resource in RESOURCES:
            stores.append(Store(resource))
            background[resource.plural] = Watch(client, resource, stores[-1]).run
        if source is None:
            secret = WatchedObject.of(client, SECRET, home, settings.tls_secret)
            source, background["serving certificate"] = PairSecret(secret), secret.run
        for name in settings.policies_config_map:
            config_maps.append(WatchedObject.of(client, CONFIG_MAP, home, name))
            background[f"ConfigMap {name}"] = config_maps[-1].run
    if source is None:
        raise ValueError("a serving certificate from a Secret needs a cluster")
    serving = ServingCertificate(
        source,
        metrics,
        client_ca=settings.client_ca,
        minimum_version=TLS_VERSIONS[settings.tls_minimum],
    )
    callers = Callers(settings.client_names) if settings.client_ca else None
    policies = policies_of(settings, metrics, stores, home, controller_user, config_maps)
    look_ups[IN_FORCE] = lambda _: policies.engine.policies if policies.engine else ()
    if settings.cluster:
        look_ups[WIDENED_BY] = _forecast(policies, home)
    observed.ready.update({"policies": policies.ready, "certificate": serving.ready})
    observed.details["policies"] = policies.in_force
    host, port = settings.listen
    images = await stack.enter_async_context(image_look_ups(settings, observed.registry))
    record = None
    if settings.record_reviews:
        record = Recorder(settings.record_reviews, settings.record_share).record

    async def serve_reviews(stop: asyncio.Event) -> None:
        handler = AdmissionHandler(policies, metrics, look_ups, record, callers, images)
        sys.setswitchinterval(SWITCH_INTERVAL)
        async with listening(
            replace(config, host=host, port=port), handler, serving, metrics
        ) as connections:
            await stop.wait()
            await connections.drain()

    return Webhook(serve_reviews, background, policies)


def _forecast(policies: Policies, home: str | None) -> LookUpFunction:
    """Return the look-up WIDENED_BY."""

    @cache
    def forecast() -> Callable[[JsonObject], Sequence[str]]:
        # Imported here: a webhook to which no policy objects are applied needs no registration.
        from controller.registration.forecast import RegistrationForecast

        return RegistrationForecast(lambda: policies.engine, [home] if home else []).widened_by

    return lambda _: forecast()
