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
from gatewright.checks.impact import (
    UNCHANGED,
    OtherVersion,
    check_arguments,
    compare,
    judge_by_version,
)
from gatewright.checks.loaded_policies import PoliciesInForce
from gatewright.checks.sources import read_sources
from gatewright.checks.subjects import Subjects, read_reviews
from gatewright.console.options import (
    CLUSTER,
    INSTALLED_IN,
    NAMESPACE,
    NAMESPACE_LABELS,
    POLICIES,
    REGISTRIES,
    REGISTRY_ACCESS,
    REVIEWS,
    ChartOptions,
    NamedPath,
    PolicyPath,
    chart_options,
    names_namespace,
    settings_options,
)
from gatewright.outputs import OUTPUTS, InputProblem, Output, SubjectResult, write
from webhook.engine import BoundPolicy
from webhook.engine.exceptions import HOME
from webhook.engine.match import Labels

if TYPE_CHECKING:
    from gatewright.checks.live_cluster import Live

GIVEN = "gatewright.given"  # the key of the arguments in click's meta
DATE = ["%Y-%m-%d", "%Y-%m-%dT%H:%M:%SZ"]


class ImpactCommand(click.Command):
    """A command that keeps its arguments as they were given, for another version."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the arguments, and parse them."""
        ctx.meta[GIVEN] = tuple(args)
        return super().parse_args(ctx, args)


@click.command(cls=ImpactCommand)
@settings_options(
    "registry", "controller_account", "kubernetes_policies", *POLICIES, *REGISTRIES, *CLUSTER
)
@OUTPUTS
@NAMESPACE
@NAMESPACE_LABELS
@chart_options
@REVIEWS
@click.option(
    "--at", type=click.DateTime(DATE), metavar="DATE", help="date (UTC) at which NEW judges [now]"
)
@click.option(
    "--against",
    metavar="WHEEL|IMAGE",
    help="OLD is judged by this version of Gatewright: a wheel, or an image for docker or podman",
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
    against: str | None,
    home: str | None,
    *,
    registry_access: bool,
) -> int:
    """Judge the same objects by the policy sets OLD and NEW, and list the differences.

    The objects are MANIFESTs, recorded --reviews (one AdmissionReview or audit event per line), or
    the objects in the cluster of --kubeconfig. OLD judges as of now. With --at, NEW judges as of
    that date: name the same set twice to see which exceptions expire by then, and what is denied
    without them. With --against, another version of Gatewright judges by OLD, in a process of its
    own: name the same set twice to see what an upgrade changes. The exit code is 1 if an object
    becomes denied.
    """
    if not (manifests or reviews or settings.kubeconfig):
        raise click.UsageError("name MANIFESTs, recorded --reviews, or a cluster by --kubeconfig")
    if against and "-" in manifests:
        raise click.UsageError("--against reads MANIFESTs twice: standard input cannot be one")
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
    if against is not None:
        context = click.get_current_context()
        comparison.paths = comparison.paths[1:]
        comparison.other = judge_by_version(against, check_arguments(context, context.meta[GIVEN]))
    asyncio.run(comparison.run())
    comparison.add_problems()
    if not (comparison.results or comparison.problems):
        comparison.problems.append(InputProblem("no objects to compare"))
    report = replace(comparison.report(), unlisted=frozenset({UNCHANGED}))
    write(report, outputs)
    return report.exit_code()


class Comparison(Checker):
    """A check by two policy sets, whose results are the differences between their verdicts."""

    command = "impact"
    paths: Sequence[tuple[Sequence[Path], datetime]] = ()
    """The sets that this version judges by, and the times at which they judge."""
    other: OtherVersion | None = None
    """The verdicts by the old set, if another version judged by it."""

    async def in_force(self, live: "Live | None") -> list[PoliciesInForce]:
        """Return both sets, with the cluster's policies of Kubernetes' kinds."""
        more: list[BoundPolicy] = []
        if live is not None and self.settings.kubernetes_policies:
            more = await live.kubernetes_policies()
        return await self.of_files(live, self.paths, more)

    def result(self, results: Sequence[SubjectResult]) -> SubjectResult:
        """Return the differences; unchanged objects are only counted."""
        if self.other is None:
            return compare(*results)
        (new,) = results
        old = self.other.take(new)
        if old is None and self.subjects.sources is not None:
            problem = InputProblem(f"{new.title}: not judged by the other version", new.place)
            self.problems.append(problem)
        # The report of a cluster leaves out objects that no policy matches.
        return compare(old or replace(new, verdict="allowed", violations=(), operations=()), new)

    def add_problems(self) -> None:
        """Add what only the other version could not judge, or judged."""
        if self.other is not None:
            reported = {str(each) for each in self.problems}
            self.problems += [each for each in self.other.problems if str(each) not in reported]
            self.problems += self.other.only_there()
