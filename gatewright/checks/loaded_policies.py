"""Policies in force, their look-ups and their judge: from documents to results. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from config.documents import Document, DocumentError
from gatewright.checks.check_report import place, policy_infos, result
from gatewright.outputs import InputProblem, PolicyInfo, SourceLocation, SubjectResult
from webhook.engine import BoundPolicy, Engine, Planners
from webhook.engine.conflicts import PolicyConflict
from webhook.engine.kinds import Kind
from webhook.engine.match import Labels
from webhook.harness.manifests import JudgedManifest, ManifestJudge, add_manifests
from webhook.known import Known
from webhook.policy_sets.admission_policies import joined
from webhook.policy_sets.catalogue import catalogue
from webhook.policy_sets.policy_set import PolicySet, in_force, read, without_cases


@dataclass(frozen=True, slots=True)
class PoliciesInForce:
    """A policy set in force at the time `now`, and the documents that it was read from."""

    documents: Sequence[Document]
    engine: Engine
    infos: Mapping[str, PolicyInfo]
    now: datetime
    problems: tuple[InputProblem, ...] = ()
    """The policies that are not in force, since they conflict with others."""

    @classmethod
    def of(
        cls,
        documents: Sequence[Document],
        found: PolicySet,
        home: str,
        planners: Planners,
        now: datetime,
        more: Iterable[BoundPolicy] = (),
    ) -> "PoliciesInForce":
        """Return a policy set in force, with the rules that are always in force.

        Exceptions from cluster policies that name a namespace take effect only in `home`. Planned
        children are judged too. `more` are the admission policies of Kubernetes in a cluster.
        """
        own = Engine(in_force(found, catalogue(), home), planners)
        problems = tuple(_conflict_problem(each, documents) for each in own.conflicts)
        engine = joined(own, more)
        return cls(documents, engine, policy_infos(engine.policies), now, problems)

    @classmethod
    def read(
        cls,
        documents: Sequence[Document],
        home: str,
        planners: Planners,
        now: datetime,
        *,
        kinds: Sequence[Kind] = (),
        more: Iterable[BoundPolicy] = (),
        sources: Sequence[object] = (),
    ) -> "PoliciesInForce":
        """Return the policies of these documents, in force.

        `kinds` are kinds of judged objects that the table of kinds does not have. The policies
        replace those of the same name in `more`. Raises PolicySetError if an object is invalid,
        DocumentError if `sources` have no policy.
        """
        documents = without_cases(documents)
        found = read(documents, catalogue(), kinds, is_offline=True)
        if sources and not found.policies:
            raise DocumentError(f"{', '.join(map(str, sources))}: no policies")
        own = {each.name for each in found.policies if each.policy.judges_owned}
        others = [each for each in more if each.name not in own]
        return cls.of(documents, found, home, planners, now, others)

    def judge(self, known: Known, namespace: str, *, applies: bool = False) -> ManifestJudge:
        """Return the judge of manifests; `namespace` is the default namespace of objects.

        `applies` is as for ManifestJudge.
        """
        return ManifestJudge(self.engine, known, namespace, self.now, applies=applies)

    def judged(self, documents: Sequence[Document], namespace: str) -> Iterator[JudgedManifest]:
        """Yield the verdict on each document; the policies look up objects in the documents, too.

        Raises DocumentError if one is not an API object.
        """
        yield from map(self.judge(known_of(documents, namespace, {}), namespace), documents)

    def result(self, judged: JudgedManifest) -> SubjectResult:
        """Return a verdict as a result for reports, with file and line of each violation."""
        return result(judged, self.infos)


def _conflict_problem(conflict: PolicyConflict, documents: Iterable[Document]) -> InputProblem:
    """Return why a policy is not in force, with file and line of its object."""
    name = conflict.policy.name
    places = (place(each) for each in documents if each.value["metadata"].get("name") == name)
    where = next(places, SourceLocation())
    return InputProblem(
        f"it is not in force: {conflict.text.splitlines()[0]}", where, not where.line
    )


def known_of(
    documents: Iterable[Document],
    namespace: str,
    labels: Mapping[str, Labels],
    known: Known | None = None,
) -> Known:
    """Return `known` with the documents and the labels of namespaces added, for look-ups."""
    known = known or Known()
    for name, each in labels.items():
        known.set_labels(name, each)
    add_manifests(known, documents, namespace)
    return known
