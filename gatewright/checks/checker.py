"""One run of `check`: judge objects of files or a cluster, and report."""

import copy
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from config.documents import Document, DocumentError, readable_documents_at
from config.faults import FaultsError
from config.schemas import CustomTypes
from config.settings import Settings
from gatewright.checks.check_report import place, policy_infos, problems_of, with_schema
from gatewright.checks.exceptions import without_effect
from gatewright.checks.fixes import ReportedDocument
from gatewright.checks.loaded_policies import PoliciesInForce, PolicySelection
from gatewright.checks.subjects import NO_IMAGES, Subjects, missing_pod_paths
from gatewright.outputs import InputProblem, Report, SubjectResult
from webhook.engine import BoundPolicy, Engine, Planners
from webhook.engine.exceptions import BoundException
from webhook.engine.image_look_ups import IMAGE_LOOK_UPS
from webhook.engine.planners import NO_PLANNERS
from webhook.policy_sets.bound_objects import bind
from webhook.policy_sets.catalogue import catalogue
from webhook.policy_sets.policy_set import PolicySet

if TYPE_CHECKING:
    from gatewright.checks.live_cluster import Live

ALL = PolicySelection()
NO_POLICIES = (
    "no policies given: name policy sets with --policies, or a cluster that has some with "
    "--kubeconfig"
)
NOT_VERIFIED = "images are not verified: that needs --registry-access"


class Checker:
    """Judge documents one by one and collect the results.

    `home` is the namespace Gatewright is installed in.
    """

    command = "check"

    def __init__(
        self,
        settings: Settings,
        home: str,
        subjects: Subjects,
        *,
        registry_access: bool = False,
        counts_exceptions: bool = False,
        selection: PolicySelection = ALL,
    ) -> None:
        """Use these settings for policies and for planned objects.

        With `registry_access`, image look-ups of policies are read from the registries. With
        `counts_exceptions`, the violations that each exception covers are counted.
        """
        self._more_exceptions: Sequence[Document] = ()
        self._registry_access, self._counts = registry_access, counts_exceptions
        self._selection = selection
        self.settings, self.home, self.subjects = settings, home, subjects
        self.results: list[SubjectResult] = []
        self.problems: list[InputProblem] = []
        sources = subjects.sources
        self.notes = [] if sources is None else sources.notes
        if sources is not None and settings.pod_kinds:
            self.notes += missing_pod_paths(sources.documents)
        self.reported: list[ReportedDocument] = []
        """The manifests with their results."""
        self.images = NO_IMAGES
        """The results of image look-ups in registries."""
        self._custom: CustomTypes | None = None
        self.covers = Counter[str]()
        """How many violations each exception covers, by title, if they are counted."""
        self.now = datetime.now(UTC)
        # Empty until the policies of files or of the cluster have been read.
        self.sets = [PoliciesInForce((), Engine(()), {}, self.now)]

    @property
    def policies(self) -> Sequence[BoundPolicy]:
        """The policies in force."""
        return self.sets[-1].engine.policies

    @property
    def exceptions(self) -> Sequence[tuple[Document, BoundException]]:
        """The exceptions of the policy set, with their documents."""
        return self.sets[-1].exceptions

    def beside(self, exceptions: Sequence[Document]) -> "Checker":
        """Return a checker of the same subjects and policies with more exceptions."""
        other = copy.copy(self)
        other.problems, other.notes, other.covers = [], [], Counter()
        other._more_exceptions = exceptions
        return other

    def report(self) -> Report:
        """Return the results so far."""
        lost = list[str]()
        if self.exceptions:
            now = self.sets[-1].now
            lost = without_effect(self.exceptions, self.policies, self.home, now)
        return Report(
            self.command,
            tuple(self.results),
            tuple(self.problems),
            notes=(*self.notes, *lost),
            policies=policy_infos(self.results, self.sets[-1].policies),
            generated=self.now.isoformat(timespec="seconds").replace("+00:00", "Z"),
        )

    async def run(self) -> None:
        """Judge the subjects, with a cluster's policies and look-ups if the settings name one.

        Raises DocumentError if there are no policies.
        """
        async with self._cluster() as live:
            self.sets = await self.in_force(live)
            self.problems += dict.fromkeys(
                problem for in_force in self.sets for problem in in_force.problems
            )
            if self._counts:
                self.sets = [
                    replace(policy_set, engine=policy_set.engine.counting_exceptions())
                    for policy_set in self.sets
                ]
            await self._judge(live)

    async def in_force(self, live: "Live | None") -> list[PoliciesInForce]:
        """Return the policy sets to judge by."""
        if live is not None and not self.settings.policies:
            return [await self._of_cluster(live)]
        if not self.settings.policies:
            raise DocumentError(NO_POLICIES)
        return await self.of_files(live, [(self.settings.policies, self.now)])

    def result(self, results: Sequence[SubjectResult]) -> SubjectResult:
        """Combine the results of a subject, one by each policy set, into one."""
        return results[-1]

    async def of_files(
        self,
        live: "Live | None",
        sets: Sequence[tuple[Sequence[Path], datetime]],
        more: Sequence[BoundPolicy] = (),
    ) -> list[PoliciesInForce]:
        """Return the policy sets in files, each at its time, together with `more` policies."""
        kinds = await self.subjects.kinds(live)
        planners = self._planners()
        policy_sets = list[PoliciesInForce]()
        for paths, now in sets:
            read, unreadable = readable_documents_at(paths)
            documents = self._selection.of(read)
            custom = self._custom_types()
            if live is not None:
                custom = custom.beside(await live.custom_types(documents))
            policy_sets.append(
                PoliciesInForce.read(
                    [*documents, *self._more_exceptions],
                    self.home,
                    planners,
                    now,
                    kinds=kinds,
                    custom=custom,
                    more=more,
                    sources=paths,
                    unreadable=unreadable,
                )
            )
        return policy_sets

    async def _of_cluster(self, live: "Live") -> PoliciesInForce:
        """Return the cluster's policies, except unusable ones."""
        policies, exceptions = dict[tuple[str | None, str], BoundPolicy](), list[BoundException]()
        documents = list[Document]()
        for document in (*await live.policies(), *self._more_exceptions):
            try:
                bound = bind(document.value, catalogue())
                if isinstance(bound, BoundException):
                    exceptions.append(bound)
                else:  # an object replaces the chart's policy of the same name
                    policies[bound.namespace, bound.name] = bound
            except FaultsError as error:
                where, whole = place(document), not document.has_lines
                self.problems += [
                    InputProblem(f"{path}: {text}", where, whole) for path, text in error.faults
                ]
            else:
                documents.append(document)
        more = await live.kubernetes_policies() if self.settings.kubernetes_policies else []
        if not policies and not more:
            why = "; ".join(each.message for each in live.problems) or NO_POLICIES
            raise DocumentError(f"no policies in the cluster: {why}")
        policy_set = PolicySet(tuple(policies.values()), tuple(exceptions))
        return PoliciesInForce.of(
            documents, policy_set, self.home, self._planners(), self.now, more
        )

    # The modules for a cluster, registries and planners are imported only by runs that need them.

    def _cluster(self) -> "AbstractAsyncContextManager[Live | None]":
        """Return a context manager of the cluster that the settings name, or of None."""
        if self.settings.kubeconfig is None:
            return nullcontext()
        from gatewright.checks.live_cluster import live_cluster

        return live_cluster(self.settings, self.home, self.problems)

    def _planners(self) -> Planners:
        """Return the planners of all kinds; none if no subject can have children."""
        if not self.subjects.may_have_children:
            return NO_PLANNERS
        from gatewright.processes.planners import planners_of

        return planners_of(self.settings, self.home)

    async def _judge(self, live: "Live | None") -> None:
        """Judge every subject; with registries, again until no image look-up is missing."""
        before = tuple(self.problems)
        policies = (policy for each in self.sets for policy in each.engine.policies)
        needs = frozenset[str]().union(*(policy.needs for policy in policies)) & IMAGE_LOOK_UPS
        if not (needs and self._registry_access):
            self.notes += [NOT_VERIFIED] * bool(needs)
            await self._pass(live, NO_IMAGES)
            return
        from gatewright.processes.registries import image_look_ups

        async with image_look_ups(self.settings) as look_ups:
            images, has_more = look_ups.of_review(needs), True
            assert images is not None
            while has_more:
                self.problems[:] = before
                await self._pass(live, images.looked_up)
                has_more = await images.has_more(is_denied=False)
            self.images = images.looked_up

    def _with_schema(self, result: SubjectResult, document: Document) -> SubjectResult:
        """Return a result of `check` with what the API server would reject."""
        if self.command != "check" or self.subjects.sources is None or self.subjects.reviews:
            return result
        return with_schema(result, document, self._custom_types())

    def _custom_types(self) -> CustomTypes:
        """Return the types of custom kinds whose definitions are among the subjects."""
        if self._custom is None:
            sources = self.subjects.sources
            documents = () if sources is None else sources.documents
            self._custom = CustomTypes.of(each.value for each in documents)
        return self._custom

    async def _pass(self, live: "Live | None", images: Mapping[str, Any]) -> None:
        """Judge every subject once; `images` are the results of image look-ups."""
        self.results, self.reported = [], []
        self.covers.clear()
        async for verdicts in self.subjects.judge(self.sets, live, images):
            if isinstance(verdicts, DocumentError):
                self.problems += problems_of(verdicts)
                continue
            last = verdicts[-1]
            self.covers.update(last.covered)
            pairs = zip(self.sets, verdicts, strict=True)
            result = self.result([policies.result(judged) for policies, judged in pairs])
            if self.subjects.sources is not None:
                result = self._with_schema(result, last.document)
                self.reported.append((last.document, result))
            elif result.verdict == "unmatched":
                continue
            self.results.append(result)
