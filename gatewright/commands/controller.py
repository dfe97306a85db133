"""`gatewright controller`: reconcile custom resources."""

from contextlib import AsyncExitStack
from functools import partial

import click

from config.settings import Settings
from gatewright.console.options import CLUSTER, POLICIES, REGISTRIES, settings_options
from gatewright.processes import logs, process
from gatewright.processes.controller_process import manager_of_kinds
from gatewright.processes.listeners import ProcessHealth
from gatewright.processes.process import Background
from gatewright.runtime import run_leading
from kube.credentials import load


@click.command
@settings_options(
    "kinds",
    "namespaces",
    "workers",
    "registry",
    "leader_elect",
    "namespace",
    "controller_account",
    "lease_name",
    "lease_duration",
    "renew_deadline",
    "retry_period",
    "policies",
    "policies_config_map",
    "preset_cases",
    "webhook_configuration",
    "webhook_service",
    "webhook_url",
    "excluded_namespaces",
    "validating_timeout_seconds",
    "mutating_timeout_seconds",
    "tls_secret",
    "ca_secret",
    "cert_manager",
    "metrics_listen",
    "health_listen",
    "object_metrics",
    "log_level",
    "audit",
    "audit_interval",
    "audit_qps",
    "audit_reports",
    "measure_enforcement",
    "kubernetes_policies",
    *POLICIES,
    *REGISTRIES,
    *CLUSTER,
    shares_file=True,
)
def command(settings: Settings) -> int:
    """Reconcile custom resources: create their children and keep them as desired.

    With --webhook-configuration or --webhook-url it also manages the webhook's certificates and its
    registration, with the rules that the policies at --policies need. With --audit it judges
    existing objects by the same policies and writes reports. Any number of replicas may run; one
    leads.
    """
    logs.install(settings.log_level)
    return process.execute(_run(settings))


async def _run(settings: Settings) -> None:
    observed = ProcessHealth()
    endpoint = await load(settings.kubeconfig, settings.context)
    manager = manager_of_kinds(settings, endpoint, observed, elects=settings.leader_elect)
    background: dict[str, Background] = {}
    async with AsyncExitStack() as stack:
        if settings.webhook_configuration or settings.webhook_url or settings.audit:
            from gatewright.processes.registration import leader_tasks
            from gatewright.processes.registries import image_look_ups

            images = await stack.enter_async_context(
                image_look_ups(settings, observed.registry, settings.audit_qps)
            )
            tasks = leader_tasks(settings, endpoint, manager, observed, images)
            background["policies"] = tasks.run
        await process.run(
            {"controller": partial(run_leading, manager)},
            background=background,
            observed=observed,
            metrics=settings.metrics_listen,
            health=settings.health_listen,
        )
