"""`gatewright webhook`: serve admission reviews over TLS."""

from contextlib import AsyncExitStack

import click

from config.settings import Settings
from gatewright import logs, process
from gatewright.listeners import ProcessHealth
from gatewright.options import CLUSTER, POLICIES, settings_options
from gatewright.serving import webhook_of


@click.command
@settings_options(
    "policies",
    "listen",
    "tls_cert",
    "tls_key",
    "tls_minimum",
    "metrics_listen",
    "health_listen",
    "log_level",
    "cluster",
    "namespace",
    "registry",
    "controller_account",
    "kinds",
    "namespaces",
    "record_reviews",
    "record_share",
    *POLICIES,
    *CLUSTER,
)
def command(settings: Settings) -> int:
    """Serve admission reviews over TLS: /validate and /mutate.

    Policies and certificate are reloaded when their files change. Until the certificate files
    exist, the webhook is not ready.
    """
    if settings.tls_cert is None or settings.tls_key is None:
        raise click.UsageError(
            "--tls-cert and --tls-key are required; `gatewright certs DIRECTORY` creates a pair"
        )
    logs.install(settings.log_level)
    return process.execute(_run(settings))


async def _run(settings: Settings) -> None:
    assert settings.tls_cert is not None
    assert settings.tls_key is not None
    observed = ProcessHealth()
    async with AsyncExitStack() as stack:
        webhook = await webhook_of(settings, settings.tls_cert, settings.tls_key, observed, stack)
        await process.run(
            {"webhook": webhook.serve},
            background={**webhook.background, "policies": webhook.policies.follow},
            observed=observed,
            metrics=settings.metrics_listen,
            health=settings.health_listen,
        )
