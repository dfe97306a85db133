"""`gatewright run`: webhook and controller in one process, for a laptop."""

import asyncio
import ipaddress
import logging
import shlex
import tempfile
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import click

from certs import issue_ca, issue_serving
from config.settings import Settings
from gatewright.commands.certs import write_pairs
from gatewright.console.options import CLUSTER, POLICIES, REGISTRIES, settings_options
from gatewright.processes import logs, process
from gatewright.processes.controller_process import manager_of_kinds
from gatewright.processes.current_user import whoami
from gatewright.processes.listeners import ProcessHealth
from gatewright.processes.policy_tasks import PolicyTasks
from gatewright.processes.registration import CONFIGURATION, excluded_namespaces, register
from gatewright.processes.registries import image_look_ups
from gatewright.processes.unregistration import unregister
from gatewright.processes.webhook_process import UNREGISTERED, webhook_of
from gatewright.runtime import run_leading
from kube.client import Client
from kube.credentials import load
from webhook.policy_sets.catalogue import catalogue
from webhook.server.certificate_pairs import PairFiles
from webhook.server.policy_files import policy_set_of

log = logging.getLogger("gatewright.process")


@click.command
@settings_options(
    "policies",
    "listen",
    "webhook_url",
    "webhook_configuration",
    "excluded_namespaces",
    "tls_minimum",
    "kinds",
    "namespace",
    "namespaces",
    "workers",
    "registry",
    "audit",
    "audit_interval",
    "audit_qps",
    "audit_reports",
    "measure_enforcement",
    "record_reviews",
    "record_share",
    "metrics_listen",
    "health_listen",
    "object_metrics",
    "log_level",
    *POLICIES,
    *REGISTRIES,
    *CLUSTER,
    shares_file=True,
)
@click.option(
    "--keep-registration/--unregister",
    default=True,
    show_default=True,
    help="on exit, keep the webhook registered, so that what policies judge is denied until the"
    " next start, or remove the registration, so that no policy is in force",
)
def command(settings: Settings, *, keep_registration: bool) -> int:
    """Run webhook and controller in one process, against the cluster of your kubeconfig.

    The webhook is registered with a new certificate under --webhook-url (default: the address it
    listens on, on loopback, for an API server on this machine). On exit, also by SIGTERM, the
    registration stays, as after a crash: until the next start, what policies judge is denied. The
    last line of the log has the `gatewright unregister` that removes it. With --unregister it is
    removed on exit, and the conversion of CRDs restored: until the next start, no policy is in
    force.
    """
    logs.install(settings.log_level)
    return process.execute(_run(settings, keep_registration=keep_registration))


async def _run(settings: Settings, *, keep_registration: bool) -> None:
    host, port = settings.listen
    url = settings.webhook_url or f"https://{host or '127.0.0.1'}:{port}"
    settings = settings.model_copy(update={"webhook_url": url})
    observed = ProcessHealth()
    # Report errors in the files before any request.
    policy_set_of(settings.policies, catalogue())
    endpoint = await load(settings.kubeconfig, settings.context)
    async with AsyncExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        ca = _certificates(directory, url)
        pair = PairFiles(directory / "tls.crt", directory / "tls.key")
        controller_user = await whoami(endpoint)
        webhook = await webhook_of(
            settings, pair, observed, stack, config=UNREGISTERED, controller_user=controller_user
        )
        manager = manager_of_kinds(settings, endpoint, observed, elects=False)
        name = settings.webhook_configuration or CONFIGURATION
        excluded = excluded_namespaces(settings, endpoint)
        home = settings.namespace or endpoint.namespace
        # Separate look-ups for the audit, since its requests are limited.
        images = await stack.enter_async_context(image_look_ups(settings, qps=settings.audit_qps))
        tasks = PolicyTasks(settings, manager, webhook.policies, home, excluded, images)
        register(
            settings, manager, observed, tasks, home, excluded, ca_bundle=lambda: ca, creates=True
        )

        async def both(stop: asyncio.Event) -> None:
            """Serve until the controller has ended and unregistered.

            Until then the API server calls the webhook.
            """
            stop_serving = asyncio.Event()
            async with asyncio.TaskGroup() as group:
                group.create_task(webhook.serve(stop_serving), name="webhook")
                await run_leading(manager, stop)
                if not keep_registration:
                    async with Client(endpoint) as client:
                        await unregister(client, name)
                stop_serving.set()

        await process.run(
            {"gatewright": both},
            background={**webhook.background, "policies": tasks.run},
            observed=observed,
            metrics=settings.metrics_listen,
            health=settings.health_listen,
        )
        if keep_registration:
            log.warning(
                "the webhook stays registered: until the next start, what policies judge is denied;"
                " to unregister it: %s",
                _unregister_command(settings),
            )


def _unregister_command(settings: Settings) -> str:
    """Return the command that removes this registration."""
    options = {
        "--kubeconfig": settings.kubeconfig,
        "--context": settings.context,
        "--webhook-configuration": settings.webhook_configuration,
    }
    given = (f"{name}={value}" for name, value in options.items() if value)
    return shlex.join(("gatewright", "unregister", *given))


def _certificates(directory: Path, url: str) -> bytes:
    """Write a serving pair for the host of `url`, and return the CA certificate that issued it."""
    host = urlsplit(url).hostname or ""
    now = datetime.now(UTC)
    ca = issue_ca("gatewright run", now)
    write_pairs(directory, ca, issue_serving(ca, *_names(host), now))
    return ca.certificate


def _names(host: str) -> tuple[list[str], list[str]]:
    try:
        return [], [str(ipaddress.ip_address(host))]
    except ValueError:
        return [host], []
