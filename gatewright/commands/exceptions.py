"""`gatewright exceptions`: list the exceptions that are unused, too wide, ended or about to end."""

import asyncio
from collections.abc import Mapping

import click

from config.settings import Settings
from gatewright.checks.checker import Checker
from gatewright.checks.exceptions import exception_results
from gatewright.checks.sources import read_sources
from gatewright.checks.subjects import Subjects
from gatewright.console.options import (
    CLUSTER,
    INSTALLED_IN,
    NAMESPACE,
    NAMESPACE_LABELS,
    POLICIES,
    ChartOptions,
    NamedPath,
    chart_options,
    settings_options,
)
from gatewright.outputs import FAIL_ON, OUTPUTS, Output, Report, write
from webhook.engine.exceptions import HOME
from webhook.engine.match import Labels


@click.command
@settings_options(
    "policies", "registry", "controller_account", "kubernetes_policies", *POLICIES, *CLUSTER
)
@OUTPUTS
@FAIL_ON
@NAMESPACE
@chart_options
@NAMESPACE_LABELS
@INSTALLED_IN
@click.argument("manifests", nargs=-1, type=NamedPath(), metavar="[MANIFEST…]")
def command(
    settings: Settings,
    manifests: tuple[str, ...],
    charts: ChartOptions,
    outputs: tuple[Output, ...],
    fail_on: str,
    namespace: str,
    namespace_labels: Mapping[str, Labels],
    home: str | None,
) -> int:
    """List the exceptions, and those that are unused, too wide, ended, or end within 30 days.

    The exceptions are those of --policies, or of the cluster of --kubeconfig. An exception is
    unused if it covers no violation of MANIFESTs or, without any, of the objects in the cluster.
    The exit code is 1 if an exception is to be deleted or narrowed.
    """
    if not manifests and settings.kubeconfig is None:
        raise click.UsageError("name MANIFESTs, or a cluster by --kubeconfig")
    where = home or settings.namespace or HOME
    sources = read_sources(manifests, charts) if manifests else None
    subjects = Subjects(sources, namespace, namespace_labels)
    checker = Checker(settings, where, subjects, counts_exceptions=True)
    asyncio.run(checker.run())
    results = exception_results(
        checker.exceptions, checker.covers, checker.policies, where, checker.now
    )
    report = Report(
        "exceptions",
        tuple(results),
        tuple(checker.problems),
        notes=tuple(checker.notes),
        generated=checker.now.isoformat(timespec="seconds").replace("+00:00", "Z"),
    )
    write(report, outputs)
    return report.exit_code(fail_on)
