"""The webhook, put together: policies from files, a certificate from files, what policies look up from a cluster."""

import asyncio
import ssl
from contextlib import AsyncExitStack
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
from webhook.engine import NAMESPACE_LABELS
from webhook.server.app import LookUp
from webhook.server.content import poll
from webhook.server.metrics import Metrics
from webhook.server.namespaces import NAMESPACE, NamespaceLabels
from webhook.server.policies import PolicyFiles
from webhook.server.serve import ServerConfig, serve
from webhook.server.tls import ServingCertificate

TLS_VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}


async def webhook_parts(
    settings: Settings, certificate: Path, key: Path, observed: Observed, stack: AsyncExitStack
) -> tuple[dict[str, Part], dict[str, Background]]:
    """Return what runs until the process is told to stop, and what runs for ever beside it.

    What is opened is closed with `stack`; checks are added to `observed`. A policy set or credentials that cannot be
    used are errors here; once running, a bad new policy set changes nothing.
    """
    engine_of(settings.policies)
    metrics = Metrics(observed.registry)
    policies = PolicyFiles(settings.policies, partial(engine_of, settings.policies), metrics)
    policies.refresh()
    serving = ServingCertificate(certificate, key, metrics, minimum_version=TLS_VERSIONS[settings.tls_minimum])
    observed.ready.update({"policies": policies.ready, "certificate": serving.ready})
    background: dict[str, Background] = {"policies": partial(poll, policies.refresh)}
    look_ups: dict[str, LookUp] = {}
    if settings.cluster:
        client = await stack.enter_async_context(Client(await load(settings.kubeconfig, settings.context)))
        namespaces = Store(NAMESPACE)
        background["namespaces"] = Watch(client, NAMESPACE, namespaces, metadata_only=True).run
        look_ups[NAMESPACE_LABELS] = NamespaceLabels(client, namespaces)
    host, port = settings.listen
    config = ServerConfig(host=host, port=port)

    async def webhook(stop: asyncio.Event) -> None:
        await serve(stop, config, policies, serving, metrics, look_ups)

    return {"webhook": webhook}, background
