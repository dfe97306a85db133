"""`gatewright impact`: list what another policy set, or another date, would change."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from config.settings import Settings
from gatewright.checks.checker import Checker
from gatewright.checks.impact import UNCHANGED, compare
from gatewright.checks.loaded_policies import PoliciesInForce
from gatewright.checks.recorded_reviews import read_reviews
from gatewright.checks.sources import read_sources
from gatewright.checks.subjects import Subjects
from gatewright.console.chart_options import ChartOptions, chart_options
from gatewright.console.options import (
    CLUSTER,
    FILE,
    INSTALLED_IN,
    NAMESPACE,
    NAMESPACE_LABELS,
    POLICIES,
    REGISTRIES,
    REGISTRY_ACCESS,
    NamedPath,
    PolicyPath,
    names_namespace,
    settings_options,
)
from gatewright.outputs import OUTPUTS, InputProblem, Output, SubjectResult, write
from webhook.engine import BoundPolicy
from webhook.engine.exceptions import HOME
from webhook.engine.match import Labels

if TYPE_CHECKING:
    from gatewright.checks.live_cluster import Live

DATE = ["%Y-%m-%d", "%Y-%m-%dT%H:%M:%SZ"]


@click.command
@settings_options(
    "registry", "controller_account", "kubernetes_policies", *POLICIES, *REGISTRIES, *CLUSTER
)
@OUTPUTS
@NAMESPACE
@NAMESPACE_LABELS
@chart_options
@click.option(
    "--reviews",
    type=FILE,
    metavar="FILE",
    help="recorded reviews, or an audit log",
)
@click.option(
    "--at", type=click.DateTime(DATE), metavar="DATE", help="date (UTC) at which NEW judges [now]"
)
@REGISTRY_ACCESS
@INSTALLED_IN
@click.argument("old", type=PolicyPath())
@click.argument("new", type=PolicyPath())
@click.argument("manifests", nargs=-1, type=NamedPath(), metavar="[MANIFEST…]")
def command(
    settings: Settings,
    old: Path,
    new: Path,
    manifests: tuple[str, ...],
    charts: ChartOptions,
    outputs: tuple[Output, ...],
    namespace: str,
    namespace_labels: Mapping[str, Labels],
    reviews: Path | None,
    at: datetime | None,
    home: str | None,
    *,
    registry_access: bool,
) -> int:
    """Judge the same objects by the policy sets OLD and NEW, and list the differences.

    The objects are MANIFESTs, recorded --reviews (one AdmissionReview or audit event per line), or
    the objects in the cluster of --kubeconfig. OLD judges as of now. With --at, NEW judges as of
    that date: name the same set twice to see which exceptions expire by then, and what is denied
    without them. The exit code is 1 if an object becomes denied.
    """
    if not (manifests or reviews or settings.kubeconfig):
        raise click.UsageError("name MANIFESTs, recorded --reviews, or a cluster by --kubeconfig")
    sources = read_sources(manifests, charts) if manifests or reviews else None
    recorded = [] if reviews is None else list(read_reviews(reviews))
    comparison = Comparison(
        settings,
        home or settings.namespace or HOME,
        Subjects(sources, namespace, namespace_labels, recorded, applies=names_namespace()),
        registry_access=registry_access,
    )
    then = comparison.now if at is None else at.replace(tzinfo=UTC)
    comparison.paths = [([old], comparison.now), ([new], then)]
    asyncio.run(comparison.run())
    if not (comparison.results or comparison.problems):
        comparison.problems.append(InputProblem("no objects to compare"))
    report = replace(comparison.report(), unlisted=frozenset({UNCHANGED}))
    write(report, outputs)
    return report.exit_code()


class Comparison(Checker):
    """A check by two policy sets, whose results are the differences between their verdicts."""

    command = "impact"
    paths: Sequence[tuple[Sequence[Path], datetime]] = ()
    """Both sets, and the times at which they judge."""

    async def in_force(self, live: "Live | None") -> list[PoliciesInForce]:
        """Return both sets, with the cluster's policies of Kubernetes' kinds."""
        more: list[BoundPolicy] = []
        if live is not None and self.settings.kubernetes_policies:
            more = await live.kubernetes_policies()
        return await self.of_files(live, self.paths, more)

    def result(self, results: Sequence[SubjectResult]) -> SubjectResult:
        """Return the differences; unchanged objects are only counted."""
        return compare(*results)
