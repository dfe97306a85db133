"""`gatewright unregister`: remove Gatewright's webhook configurations."""

import asyncio

import click

from config.settings import Settings
from controller.reconcilers.resources import SECRET
from controller.runtime.leader import LEASE
from gatewright.console.options import CLUSTER, settings_options
from gatewright.processes import logs
from gatewright.processes.registration import CONFIGURATION
from gatewright.processes.unregistration import NamedObject, unregister
from kube.client import Client
from kube.credentials import load


@click.command
@settings_options(
    "webhook_configuration",
    "namespace",
    "tls_secret",
    "ca_secret",
    "lease_name",
    "log_level",
    *CLUSTER,
    shares_file=True,
)
def command(settings: Settings) -> int:
    """Take Gatewright out of the API server's path: no admission webhook, no conversion webhook.

    Deletes both webhook configurations, restores the conversion of the CustomResourceDefinitions,
    and deletes the Secrets and the Lease that the controller created. Missing objects are skipped.
    The exit code is 1 if an object could not be deleted or restored. The chart runs this command
    when a release is uninstalled.
    """
    logs.install(settings.log_level)
    return 0 if asyncio.run(_unregister(settings)) else 1


async def _unregister(settings: Settings) -> bool:
    endpoint = await load(settings.kubeconfig, settings.context)
    namespace = settings.namespace or endpoint.namespace
    leftovers: list[NamedObject] = [
        (SECRET, name, namespace) for name in (settings.ca_secret, settings.tls_secret)
    ]
    leftovers.append((LEASE, settings.lease_name, namespace))
    async with Client(endpoint) as client:
        return await unregister(client, settings.webhook_configuration or CONFIGURATION, leftovers)
