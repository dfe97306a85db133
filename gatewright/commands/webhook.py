"""`gatewright webhook`: serve admission reviews over TLS."""

from contextlib import AsyncExitStack

import click

from config.settings import Settings
from gatewright.console.options import CLUSTER, POLICIES, REGISTRIES, settings_options
from gatewright.processes import logs, process
from gatewright.processes.listeners import ProcessHealth
from gatewright.processes.webhook_process import webhook_of
from webhook.server.certificate_pairs import PairFiles


@click.command
@settings_options(
    "policies",
    "policies_config_map",
    "preset_cases",
    "listen",
    "tls_cert",
    "tls_key",
    "tls_secret",
    "client_ca",
    "client_names",
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
    *REGISTRIES,
    *CLUSTER,
    shares_file=True,
)
def command(settings: Settings) -> int:
    """Serve admission reviews over TLS: /validate and /mutate.

    Policies and certificate come from a ConfigMap and a Secret, which are watched, or from files,
    which are read again when they change. Until there is a certificate, the webhook is not ready.
    """
    if settings.policies_config_map and not settings.cluster:
        raise click.UsageError("--policies-config-map needs a cluster; leave out --no-cluster")
    pair = _pair_files(settings)
    if settings.client_names and settings.client_ca is None:
        raise click.UsageError(
            "--client-names needs --client-ca, by which client certificates are checked"
        )
    logs.install(settings.log_level)
    return process.execute(_run(settings, pair))


def _pair_files(settings: Settings) -> PairFiles | None:
    """Return the files of the pair; None if it comes from the Secret of --tls-secret."""
    files = settings.tls_cert, settings.tls_key
    if "tls_secret" in settings.model_fields_set and settings.cluster:
        if files != (None, None):
            raise click.UsageError(
                "--tls-secret and --tls-cert exclude each other; give one of them"
            )
        return None
    if settings.tls_cert is None or settings.tls_key is None:
        raise click.UsageError(
            "--tls-cert and --tls-key are required; `gatewright certs DIRECTORY` creates a pair. "
            "With a cluster, --tls-secret names the Secret that has one"
        )
    return PairFiles(settings.tls_cert, settings.tls_key)


async def _run(settings: Settings, pair: PairFiles | None) -> None:
    observed = ProcessHealth()
    async with AsyncExitStack() as stack:
        webhook = await webhook_of(settings, pair, observed, stack)
        await process.run(
            {"webhook": webhook.serve},
            background={**webhook.background, "policies": webhook.policies.follow},
            observed=observed,
            metrics=settings.metrics_listen,
            health=settings.health_listen,
        )
