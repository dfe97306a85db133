"""One run of `check`: judge objects of files or a cluster, and report."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from config.documents import Document, DocumentError
from config.faults import FaultsError
from config.settings import Settings
from gatewright.checks.check_report import (
    check_infos,
    ending_soon,
    exceptions_of,
    once_per_place,
    place,
    policy_infos,
    problem,
    result,
    without_effect,
)
from gatewright.checks.image_access import judge_with_images
from gatewright.checks.on_demand import cluster_of, planners_for
from gatewright.checks.policy_files import engine_from, policy_documents
from gatewright.checks.subjects import Subjects
from gatewright.outputs import InputProblem, Report, SubjectResult
from webhook.engine import BoundPolicy, Engine, Planners
from webhook.engine.conflicts import ConflictingPoliciesError
from webhook.engine.exceptions import BoundException
from webhook.engine.kinds import Kind
from webhook.harness.manifests import JudgedManifest
from webhook.policy_sets.admission_policies import joined
from webhook.policy_sets.bound_objects import bind
from webhook.policy_sets.catalogue import catalogue
from webhook.policy_sets.policy_set import PolicySet, read

if TYPE_CHECKING:
    from gatewright.checks.live_cluster import Live

NO_POLICIES = (
    "no policies given: name policy sets with --policies, or a cluster that has some with "
    "--kubeconfig"
)


class Checker:
    """Judge documents one by one and collect the results.

    `home` is the namespace Gatewright is installed in.
    """

    def __init__(
        self,
        settings: Settings,
        home: str,
        *,
        registry_access: bool = False,
        counts_exceptions: bool = False,
    ) -> None:
        """Use these settings for policies and for planned objects.

        With `registry_access`, what policies need of images is read from their registries. With
        `counts_exceptions`, what they cover is counted.
        """
        self._registry_access, self._counts = registry_access, counts_exceptions
        self.results: list[SubjectResult] = []
        self.problems: list[InputProblem] = []
        self.notes: list[str] = []
        self.judged: list[JudgedManifest] = []
        self.images: Mapping[str, Any] = {}
        """What registries know about images."""
        self.covers = Counter[str]()
        """How many violations each exception covers, by title, where these are counted."""
        self.now = datetime.now(UTC)
        self._settings = settings
        self.home = home
        self._documents: list[Document] = []
        self._engine = Engine(())

    @property
    def policies(self) -> Sequence[BoundPolicy]:
        """The policies in force."""
        return self._engine.policies

    @property
    def exceptions(self) -> list[tuple[Document, BoundException]]:
        """The exceptions of the policy set, with their documents."""
        return exceptions_of(self._documents)

    def report(self) -> Report:
        """Return everything found so far."""
        exceptions = self.exceptions
        policies = self._engine.policies
        results, notes = once_per_place(self.results)
        notes += [*self.notes, *without_effect(exceptions, policies, self.home, self.now)]
        return Report(
            "check",
            tuple(results),
            tuple(self.problems),
            notes=tuple(notes),
            policies=policy_infos(policies) | check_infos(self.results),
            ending=ending_soon(exceptions, self.now),
            generated=self.now.isoformat(timespec="seconds").replace("+00:00", "Z"),
        )

    async def run(self, subjects: Subjects) -> None:
        """Judge the subjects, with a cluster's policies and look-ups if the settings name one.

        Raises DocumentError or PolicySetError without any policy.
        """
        async with cluster_of(self._settings, self.home, self.problems) as live:
            if self._settings.policies or live is None:
                kinds = await subjects.kinds(live)
                self._policies_of_files(kinds, planners_for(subjects, self._settings, self.home))
            else:
                await self._policies_of(live, planners_for(subjects, self._settings, self.home))
            await self._judge(subjects, live)

    def _policies_of_files(self, kinds: Sequence[Kind], planners: Planners) -> None:
        if not self._settings.policies:
            raise DocumentError(NO_POLICIES)
        paths = self._settings.policies
        self._documents = policy_documents(paths)
        self._engine = engine_from(
            read(self._documents, catalogue(), kinds), self.home, planners, paths
        )

    async def _policies_of(self, live: "Live", planners: Planners) -> None:
        """Put the cluster's policies in force, except unusable and conflicting ones."""
        policies, exceptions = dict[tuple[str | None, str], BoundPolicy](), list[BoundException]()
        for document in await live.policies():
            where, whole = place(document), not document.has_lines
            try:
                bound = bind(document.value, catalogue())
                if isinstance(bound, BoundException):
                    exceptions.append(bound)
                else:  # an object replaces the chart's policy of the same name
                    wanted = policies | {(bound.namespace, bound.name): bound}
                    if bound.policy.mutate is not None:
                        Engine(wanted.values())
                    policies = wanted
            except FaultsError as error:
                self.problems += [
                    InputProblem(f"{path}: {text}", where, whole) for path, text in error.faults
                ]
            except ConflictingPoliciesError as error:
                self.problems.append(
                    InputProblem(f"it is not in force: {str(error).splitlines()[0]}", where, whole)
                )
            else:
                self._documents.append(document)
        more = await live.kubernetes_policies() if self._settings.kubernetes_policies else []
        if not policies and not more:
            why = "; ".join(each.message for each in live.problems) or NO_POLICIES
            raise DocumentError(f"no policies in the cluster: {why}")
        found = PolicySet(tuple(policies.values()), tuple(exceptions))
        self._engine = joined(engine_from(found, self.home, planners), more)

    async def _judge(self, subjects: Subjects, live: "Live | None") -> None:
        before = tuple(self.problems)

        async def judge_all(images: Mapping[str, Any]) -> None:
            self.results, self.judged, self.problems[:] = [], [], before
            self.covers.clear()
            await self._pass(subjects, live, images)

        self.images = await judge_with_images(
            self._settings,
            [self._engine],
            judge_all,
            self.notes,
            registry_access=self._registry_access,
        )

    async def _pass(
        self, subjects: Subjects, live: "Live | None", images: Mapping[str, Any]
    ) -> None:
        """Judge every subject once; `images` are the look-ups of images."""
        infos = policy_infos(self._engine.policies)
        engine = self._engine.counting_exceptions() if self._counts else self._engine
        async for verdicts in subjects.judged([(engine, self.now)], live, images):
            if isinstance(verdicts, DocumentError):
                self.problems.append(problem(verdicts))
                continue
            (judged,) = verdicts
            self.covers.update(judged.covered)
            if subjects.sources is not None:
                self.judged.append(judged)
            elif judged.verdict == "unmatched":
                continue
            self.results.append(result(judged, infos))
