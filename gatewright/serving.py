"""The webhook, put together: policies from files, a certificate from files, what policies look up from a cluster."""

import asyncio
import ssl
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from config.settings import Settings
from gatewright.listeners import Observed
from gatewright.policies import engine_of
from gatewright.process import Background, Part
from kube.client import Client
from kube.credentials import load
from kube.store import Store
from kube.watch import Watch
from webhook.engine import NAMESPACE_LABELS, NOW, Request
from webhook.server.app import LookUp
from webhook.server.content import poll
from webhook.server.metrics import Metrics
from webhook.server.namespaces import NAMESPACE, NamespaceLabels
from webhook.server.policies import PolicyFiles
from webhook.server.serve import ServerConfig, serve
from webhook.server.tls import ServingCertificate

TLS_VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}


@dataclass(frozen=True, slots=True)
class Drain:
    """How an ending webhook lets its clients go: seconds it still listens, and then waits for connections to end."""

    linger: float
    grace: float


# Endpoints take a while to go, and the API server keeps its connections for 90 s.
IN_A_CLUSTER = Drain(linger=5, grace=100)
UNREGISTERED = Drain(linger=0, grace=1)  # nobody is sent here any more


@dataclass(frozen=True, slots=True)
class Webhook:
    """The webhook of a process: what serves until told to stop, what runs for ever beside it, and its policies."""

    serve: Part
    background: dict[str, Background]
    policies: PolicyFiles


async def webhook_of(
    settings: Settings,
    certificate: Path,
    key: Path,
    observed: Observed,
    stack: AsyncExitStack,
    *,
    drain: Drain = IN_A_CLUSTER,
) -> Webhook:
    """Return the webhook with its checks added to `observed`; what is opened is closed with `stack`.

    A policy set or credentials that cannot be used are errors here; once running, a bad new policy set changes nothing.
    """
    metrics = Metrics(observed.registry)
    policies = policy_files(settings, metrics)
    serving = ServingCertificate(certificate, key, metrics, minimum_version=TLS_VERSIONS[settings.tls_minimum])
    observed.ready.update({"policies": policies.ready, "certificate": serving.ready})
    background: dict[str, Background] = {}
    look_ups: dict[str, LookUp] = {NOW: _now}
    if settings.cluster:
        client = await stack.enter_async_context(Client(await load(settings.kubeconfig, settings.context)))
        namespaces = Store(NAMESPACE)
        background["namespaces"] = Watch(client, NAMESPACE, namespaces, metadata_only=True).run
        look_ups[NAMESPACE_LABELS] = NamespaceLabels(client, namespaces)
    host, port = settings.listen
    config = ServerConfig(host=host, port=port, linger_seconds=drain.linger, grace_seconds=drain.grace)

    async def serve_reviews(stop: asyncio.Event) -> None:
        await serve(stop, config, policies, serving, metrics, look_ups)

    return Webhook(serve_reviews, background, policies)


async def _now(_: Request) -> datetime:
    return datetime.now(UTC)


def policy_files(settings: Settings, metrics: Metrics) -> PolicyFiles:
    """Return the policies in force; DocumentError or PolicySetError where the files cannot be used at the start."""
    load_engine = partial(engine_of, settings.policies)
    load_engine()
    policies = PolicyFiles(settings.policies, load_engine, metrics)
    policies.refresh()
    return policies


def following(policies: PolicyFiles, changed: Callable[[], None] = lambda: None) -> Background:
    """Return what follows the policy files for ever, and tells when other policies are in force."""

    def refresh() -> None:
        before = policies.engine
        policies.refresh()
        if policies.engine is not before:
            changed()

    return partial(poll, refresh)
