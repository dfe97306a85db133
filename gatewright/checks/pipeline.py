"""Policies in force, what they look up, and their judge: documents become results. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from config.documents import Document, DocumentError
from gatewright.checks.check_report import policy_infos, result
from gatewright.outputs import PolicyInfo, SubjectResult
from webhook.engine import BoundPolicy, Engine, Planners
from webhook.engine.kinds import Kind
from webhook.engine.match import Labels
from webhook.harness.manifests import JudgedManifest, ManifestJudge, add_manifests
from webhook.known import Known
from webhook.policy_sets.admission_policies import joined
from webhook.policy_sets.catalogue import catalogue
from webhook.policy_sets.policy_set import PolicySet, in_force, read


@dataclass(frozen=True, slots=True)
class PoliciesInForce:
    """A policy set as it judges at the time `now`, and the documents that it was read from."""

    documents: Sequence[Document]
    engine: Engine
    infos: Mapping[str, PolicyInfo]
    now: datetime

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
        """Return a policy set in force, with the rules that always are.

        Exceptions from cluster policies that name a namespace count in `home`. Planned children are
        judged too. `more` are a cluster's policies of Kubernetes' kinds.
        """
        engine = joined(Engine(in_force(found, catalogue(), home), planners), more)
        return cls(documents, engine, policy_infos(engine.policies), now)

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
        """Return the policies that documents put in force.

        `kinds` are those of what is judged that the table of kinds does not have. They replace
        policies among `more` of the same name. Raises PolicySetError where an object is invalid,
        DocumentError where `sources` have no policy.
        """
        found = read(documents, catalogue(), kinds)
        if sources and not found.policies:
            raise DocumentError(f"{', '.join(map(str, sources))}: no policies")
        own = {each.name for each in found.policies if each.policy.judges_owned}
        others = [each for each in more if each.name not in own]
        return cls.of(documents, found, home, planners, now, others)

    def judge(self, known: Known, namespace: str) -> ManifestJudge:
        """Return the judge of manifests; `namespace` is that of objects without one."""
        return ManifestJudge(self.engine, known, namespace, self.now)

    def judged(self, documents: Sequence[Document], namespace: str) -> Iterator[JudgedManifest]:
        """Yield the verdict on each document; together they also are what policies look up.

        Raises DocumentError if one is not an API object.
        """
        yield from map(self.judge(known_of(documents, namespace, {}), namespace), documents)

    def result(self, judged: JudgedManifest) -> SubjectResult:
        """Return a verdict as it is reported, with the place of each violation."""
        return result(judged, self.infos)


def known_of(
    documents: Iterable[Document],
    namespace: str,
    labels: Mapping[str, Labels],
    known: Known | None = None,
) -> Known:
    """Return what policies look up: the documents and the labels of namespaces, over `known`."""
    known = known or Known()
    for name, each in labels.items():
        known.set_labels(name, each)
    add_manifests(known, documents, namespace)
    return known
