"""Policies in force, their look-ups and their judge: from documents to results. Pure.

`PolicySelection` leaves policies of a set out: `--select` and `--ignore`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from config.documents import Document, DocumentError
from config.faults import did_you_mean
from gatewright.checks.check_report import place, problem, result
from gatewright.outputs import InputProblem, SourceLocation, SubjectResult
from webhook.engine import BoundPolicy, Engine, Planners, Policy
from webhook.engine.conflicts import PolicyConflict
from webhook.engine.exceptions import BoundException
from webhook.engine.kinds import Kind
from webhook.engine.match import Labels
from webhook.harness.manifests import JudgedManifest, ManifestJudge, add_manifests
from webhook.harness.objects import is_whole
from webhook.known import Known
from webhook.policy_sets.admission_policies import join_policies
from webhook.policy_sets.bound_objects import bind
from webhook.policy_sets.catalogue import catalogue
from webhook.policy_sets.policy_set import PolicySet, in_force, read_valid, without_cases

if TYPE_CHECKING:
    from config.schemas import CustomTypes


@dataclass(frozen=True, slots=True)
class PoliciesInForce:
    """A policy set in force at the time `now`, and the documents that it was read from."""

    documents: Sequence[Document]
    engine: Engine
    policies: Mapping[str, Policy]
    """By the title of the policy object."""
    now: datetime
    problems: tuple[InputProblem, ...] = ()
    """What is not in force: objects that are invalid, and policies that conflict with others."""
    exceptions: tuple[tuple[Document, BoundException], ...] = ()
    """The exceptions of the policy set, with their documents."""

    @classmethod
    def of(
        cls,
        documents: Sequence[Document],
        policy_set: PolicySet,
        home: str,
        planners: Planners,
        now: datetime,
        more: Iterable[BoundPolicy] = (),
        problems: Iterable[InputProblem] = (),
    ) -> "PoliciesInForce":
        """Return a policy set in force, with the rules that are always in force.

        Exceptions from cluster policies that name a namespace take effect only in `home`. Planned
        children are judged too. `more` are the admission policies of Kubernetes in a cluster.
        """
        own = Engine(in_force(policy_set, catalogue(), home), planners)
        conflicts = (_conflict_problem(each, documents) for each in own.conflicts)
        engine = join_policies(own, more)
        policies = {each.title: each.policy for each in engine.policies}
        exceptions = tuple(
            (document, exception)
            for document in documents
            if document.value.get("kind") == "PolicyException"
            and isinstance(exception := bind(document.value, catalogue()), BoundException)
        )
        return cls(documents, engine, policies, now, (*problems, *conflicts), exceptions)

    @classmethod
    def read(
        cls,
        documents: Sequence[Document],
        home: str,
        planners: Planners,
        now: datetime,
        *,
        kinds: Sequence[Kind] = (),
        custom: "CustomTypes | None" = None,
        more: Iterable[BoundPolicy] = (),
        sources: Sequence[object] = (),
        unreadable: Sequence[str] = (),
    ) -> "PoliciesInForce":
        """Return the valid policies of these documents, in force.

        `unreadable` has a line for each document beside them that cannot be read.

        `kinds` are kinds of judged objects that the table of kinds does not have, and `custom` the
        types of custom kinds, by which rules in CEL are checked too. The policies
        replace those of the same name in `more`. Raises DocumentError if `sources` have no valid
        policy.
        """
        documents = without_cases(documents)
        policy_set, invalid = read_valid(
            documents, catalogue(), kinds, is_offline=True, custom=custom
        )
        lines = [*unreadable, *(line for each in invalid for line in each.lines)]
        if sources and not policy_set.policies:
            reason = f"{', '.join(map(str, sources))}: no policies"
            raise DocumentError("\n".join(lines) or reason)
        own = {each.name for each in policy_set.policies if each.policy.judges_owned}
        others = [each for each in more if each.name not in own]
        left_out = {id(each.document) for each in invalid}
        valid = [each for each in documents if id(each) not in left_out]
        return cls.of(valid, policy_set, home, planners, now, others, map(problem, lines))

    def judge(self, known: Known, namespace: str, *, applies: bool = False) -> ManifestJudge:
        """Return the judge of manifests; `namespace` is the default namespace of objects.

        `applies` is as for ManifestJudge.
        """
        return ManifestJudge(self.engine, known, namespace, self.now, applies=applies)

    def judge_documents(
        self, documents: Sequence[Document], namespace: str
    ) -> Iterator[JudgedManifest]:
        """Yield the verdict on each document; the policies look up objects in the documents, too.

        Raises DocumentError if one is not an API object.
        """
        known = known_of(filter(is_whole, documents), namespace, {})
        yield from map(self.judge(known, namespace), documents)

    def result(self, judged: JudgedManifest) -> SubjectResult:
        """Return a verdict as a result for reports, with file and line of each violation."""
        return result(judged, self.policies)


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
    """Return `known` with complete objects and the labels of namespaces added, for look-ups."""
    known = known or Known()
    for name, label in labels.items():
        known.set_labels(name, label)
    add_manifests(known, documents, namespace)
    return known


@dataclass(frozen=True, slots=True)
class PolicySelection:
    """Names of policies; all are selected if none is."""

    select: Sequence[str] = ()
    ignore: Sequence[str] = ()

    def of(self, documents: Iterable[Document]) -> list[Document]:
        """Return the documents without the policies that are not selected, and their bindings.

        Raises DocumentError if a name is that of no policy.
        """
        documents = [*documents]
        names = {name for each in documents if (name := _name(each.value))}
        for option, given in (("--select", self.select), ("--ignore", self.ignore)):
            for name in given:
                if name not in names:
                    hint = did_you_mean(name, names)
                    raise DocumentError(f"{option} {name}: no policy of this name{hint}")
        left_out = {*self.ignore, *(names - {*self.select} if self.select else ())}
        return [each for each in documents if _name(each.value) not in left_out]


def _name(value: Any) -> str | None:
    """Return the name of a policy, or of the policy that a binding is for; None for the rest."""
    match value:
        case {"kind": "PolicyException"}:
            return None
        case {"kind": str(kind), "spec": {"policyName": str(name)}} if kind.endswith("Binding"):
            return name
        case {"kind": str(kind), "metadata": {"name": str(name)}} if kind.endswith("Policy"):
            return name
    return None
