"""`gatewright impact`: list what another policy set, or another date, would change."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from config.documents import DocumentError
from config.settings import Settings
from gatewright.checks.check_report import (
    exceptions_of,
    policy_infos,
    problem,
    result,
    without_effect,
)
from gatewright.checks.image_access import judge_with_images
from gatewright.checks.impact import UNCHANGED, compare
from gatewright.checks.on_demand import cluster_of, planners_for
from gatewright.checks.policy_files import engine_from, policy_documents
from gatewright.checks.recorded_reviews import read_reviews
from gatewright.checks.sources import read_sources
from gatewright.checks.subjects import Subjects
from gatewright.console.chart_options import ChartOptions, chart_options
from gatewright.console.options import (
    CLUSTER,
    INSTALLED_IN,
    NAMESPACE_LABELS,
    POLICIES,
    REGISTRIES,
    REGISTRY_ACCESS,
    NamedPath,
    PolicyPath,
    settings_options,
)
from gatewright.outputs import OUTPUTS, InputProblem, Output, Report, SubjectResult, write
from webhook.engine import BoundPolicy, Engine
from webhook.engine.exceptions import HOME
from webhook.engine.match import Labels
from webhook.policy_sets.admission_policies import joined
from webhook.policy_sets.catalogue import catalogue
from webhook.policy_sets.policy_set import read

if TYPE_CHECKING:
    from gatewright.checks.live_cluster import Live

DATE = ["%Y-%m-%d", "%Y-%m-%dT%H:%M:%SZ"]


@click.command
@settings_options(
    "registry", "controller_account", "kubernetes_policies", *POLICIES, *REGISTRIES, *CLUSTER
)
@OUTPUTS
@click.option(
    "-n", "--namespace", default="default", help="namespace for objects without one [default]"
)
@NAMESPACE_LABELS
@chart_options
@click.option(
    "--reviews",
    type=NamedPath(path_type=Path),
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
    comparison = Comparison(
        settings,
        home or settings.namespace or HOME,
        (old, new),
        at,
        registry_access=registry_access,
    )
    sources = read_sources(manifests, charts) if manifests or reviews else None
    recorded = [] if reviews is None else list(read_reviews(reviews))
    asyncio.run(comparison.run(Subjects(sources, namespace, namespace_labels, recorded)))
    report = comparison.report()
    write(report, outputs)
    return report.exit_code()


class Comparison:
    """Two policy sets, and the differences between their verdicts so far."""

    def __init__(
        self,
        settings: Settings,
        home: str,
        paths: tuple[Path, Path],
        at: datetime | None,
        *,
        registry_access: bool,
    ) -> None:
        """Read the files of both sets. Raises DocumentError where one cannot be read."""
        self._settings, self._home = settings, home
        self._registry_access = registry_access
        now = datetime.now(UTC)
        self._times = (now, now if at is None else at.replace(tzinfo=UTC))
        self._sets = [(path, policy_documents([path])) for path in paths]
        self._engines = [Engine(()), Engine(())]
        self._results: list[SubjectResult] = []
        self._problems: list[InputProblem] = []
        self._notes: list[str] = []

    def report(self) -> Report:
        """Return the differences; unchanged objects are only counted."""
        if not (self._results or self._problems):
            self._problems.append(InputProblem("no objects to compare"))
        policies = self._engines[1].policies
        _, documents = self._sets[1]
        notes = without_effect(exceptions_of(documents), policies, self._home, self._times[1])
        return Report(
            "impact",
            tuple(self._results),
            tuple(self._problems),
            notes=(*self._notes, *notes),
            policies=policy_infos(policies),
            unlisted=frozenset({UNCHANGED}),
            generated=self._times[0].isoformat(timespec="seconds").replace("+00:00", "Z"),
        )

    async def run(self, subjects: Subjects) -> None:
        """Judge the subjects by both sets.

        Raises DocumentError or PolicySetError where one cannot be used.
        """
        async with cluster_of(self._settings, self._home, self._problems) as live:
            kinds = await subjects.kinds(live)
            planners = planners_for(subjects, self._settings, self._home)
            self._engines = [
                engine_from(read(documents, catalogue(), kinds), self._home, planners, [path])
                for path, documents in self._sets
            ]
            if live is not None and self._settings.kubernetes_policies:
                self._join(await live.kubernetes_policies())
            await self._compare(subjects, live)

    async def _compare(self, subjects: Subjects, live: "Live | None") -> None:
        self._notes += subjects.sources.notes if subjects.sources is not None else []
        before = tuple(self._problems)

        async def judge_all(images: Mapping[str, Any]) -> None:
            self._results, self._problems[:] = [], before
            await self._pass(subjects, live, images)

        await judge_with_images(
            self._settings,
            self._engines,
            judge_all,
            self._notes,
            registry_access=self._registry_access,
        )

    async def _pass(
        self, subjects: Subjects, live: "Live | None", images: Mapping[str, Any]
    ) -> None:
        infos = [policy_infos(engine.policies) for engine in self._engines]
        engines = [*zip(self._engines, self._times, strict=True)]
        async for verdicts in subjects.judged(engines, live, images):
            if isinstance(verdicts, DocumentError):
                self._problems.append(problem(verdicts))
            else:
                old, new = (result(judged, of) for judged, of in zip(verdicts, infos, strict=True))
                self._results.append(compare(old, new))

    def _join(self, policies: Sequence[BoundPolicy]) -> None:
        """Give both sets the cluster's policies of Kubernetes' kinds, except those they replace."""
        own = [
            {each.name for each in engine.policies if each.policy.judges_owned}
            for engine in self._engines
        ]
        self._engines = [
            joined(engine, (each for each in policies if each.name not in names))
            for engine, names in zip(self._engines, own, strict=True)
        ]
