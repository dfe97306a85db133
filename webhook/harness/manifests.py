"""Judges manifests as the webhook would if they were applied."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import jsonpatch
import orjson

from config.converters import ConversionError, to_stored_version
from config.defaulting import fill_crd_defaults
from config.documents import Document, DocumentError
from kube.resource import CRD, group_version_kind, title
from webhook.engine import (
    LACKED,
    NAMESPACE_LABELS,
    NOW,
    BoundPolicy,
    Engine,
    Outcome,
    lacked_look_ups,
)
from webhook.engine.conflicts import IN_FORCE
from webhook.engine.image_look_ups import IMAGE_LOOK_UPS
from webhook.engine.kinds import ANY_VERSION, OWN_KINDS, Kind, plural
from webhook.engine.look_ups import LOOK_UPS
from webhook.engine.policy import RuleError
from webhook.engine.request import NAME_LABEL
from webhook.engine.violation import one_line
from webhook.findings import Finding, findings
from webhook.harness.crashes import describe_crash
from webhook.harness.objects import as_served, namespace_of, require_object
from webhook.harness.reviews import Admission, ReviewAnswer, ask, reviewed_namespace
from webhook.known import Known
from webhook.messages import failure
from webhook.policy_sets.kind_names import known_kinds
from webhook.review import MalformedRequestError, NotAReviewError, read

NOTHING: dict[str, Any] = {}
OWN = frozenset((kind.group, kind.kind) for kind in OWN_KINDS)
OF_A_KNOWN_NAMESPACE = {
    NAMESPACE_LABELS,
    *(name for name, look_up in LOOK_UPS.items() if look_up.completes),
}
VERDICTS = {"Error": "error", "Deny": "denied", "Warn": "warned", "Audit": "audited"}


@dataclass(frozen=True, slots=True)
class JudgedManifest:
    """The verdict on one manifest.

    `verdict` is one of allowed, mutated, audited, warned, denied, unmatched (no policy applies) and
    error (a policy could not decide).
    """

    document: Document
    namespace: str
    verdict: str
    findings: tuple[Finding, ...]
    operations: tuple[dict[str, Any], ...]
    object: dict[str, Any]  # in the stored version, with the fields that policies set
    covered: tuple[str, ...] = ()  # titles of exceptions, one for each violation they cover

    @property
    def name(self) -> str:
        """Its name; `prefix-*` if the API server generates it."""
        metadata = self.document.value["metadata"]
        return metadata.get("name") or f"{metadata.get('generateName', '')}*"

    @property
    def title(self) -> str:
        """Kind, namespace and name."""
        return title(self.document.value["kind"], self.namespace, self.name)


class ManifestJudge:
    """Judges manifests one by one with an engine, given what is `known` of their cluster."""

    def __init__(
        self, engine: Engine, known: Known, namespace: str, now: datetime, *, applies: bool = False
    ) -> None:
        """Use this engine and cluster, and this default namespace for manifests.

        With `applies`, an object without a namespace gets this one, as from the API server;
        otherwise it may be applied to another.
        """
        self._engine = engine
        self._known = known
        kinds = (target.kind for each in engine.policies for target in each.targets)
        self._kinds = {(kind.group, kind.kind): kind for kind in kinds} | known.kinds
        self._namespace = namespace
        self._applies = applies
        self._always = {NOW: now, IN_FORCE: engine.policies}
        self._anywhere: dict[frozenset[str], Engine | None] = {}

    def __call__(self, document: Document) -> JudgedManifest:
        """Return the verdict on one document. Raises DocumentError if it is not an API object."""
        admission, where = self.admission(document)
        try:
            return self.verdict(document, where, admission, self._ask(admission, where))
        except MalformedRequestError as error:
            raise DocumentError(f"{document.where()}: {error}") from None

    def admission(self, document: Document) -> tuple[Admission, str]:
        """Return the request that creates the object of a document, and the object's namespace.

        Raises DocumentError if it is not an API object.
        """
        sent = require_object(document)
        kind = self._kinds.get((sent[0], sent[2]))
        is_namespaced = kind is None or kind.namespaced
        where = namespace_of(document.value, self._namespace) if is_namespaced else ""
        object = as_served(document.value)
        if (sent[0], sent[2]) in OWN:
            try:
                object = fill_crd_defaults(to_stored_version(object))
            except ConversionError as error:
                raise DocumentError(f"{document.where()}: {error}") from None
        if self._applies and where:
            object = {**object, "metadata": {**object["metadata"], "namespace": where}}
        namespace = reviewed_namespace(object, where)
        resource = "" if kind is None else kind.plural
        return Admission(object, namespace=namespace, sent=sent, resource=resource), where

    def verdict(
        self, document: Document, where: str, admission: Admission, answer: ReviewAnswer
    ) -> JudgedManifest:
        """Return the verdict that an answer gives on the object of a document."""
        is_patched = answer.allowed and any(each.patched for each in answer.outcomes)
        patch = jsonpatch.make_patch(admission.object, answer.object) if is_patched else ()
        object, wording = answer.object or {}, _undecided_in(where)
        return judge_manifest(document, where, answer.outcomes, tuple(patch), object, wording)

    def review(self, document: Document) -> JudgedManifest:
        """Return the verdict on a recorded AdmissionReview, as the webhook would judge it.

        Raises DocumentError if it cannot be judged. The document of the verdict is the object.
        """
        try:
            request = read(orjson.dumps(document.value))
        except (NotAReviewError, MalformedRequestError) as error:
            raise DocumentError(f"{document.where()}: {error}") from None
        where = request.attributes.namespace
        request = request.with_looked_up({**self._always, **self._known.about(where)})
        mutated = self._engine.mutate(request)
        if mutated.operations and mutated.object is not None:
            request = request.with_object(mutated.object)
        looked_up = {**request.looked_up, LACKED: lacked_look_ups(mutated.outcomes)}
        validated = self._engine.validate(request.with_looked_up(looked_up))
        outcomes = mutated.outcomes + validated.outcomes
        about, value = request.attributes, request.value
        # The options object of exec has neither kind nor metadata.
        metadata = value.get("metadata")
        if not (metadata and isinstance(metadata, dict)):
            metadata = {"name": about.name}
        named = {"kind": about.kind, "metadata": metadata}
        document = replace(document, value={**value, **named})
        is_denied = any(each.denies for each in outcomes)
        operations = () if is_denied else tuple(mutated.operations)
        return judge_manifest(document, where, outcomes, operations, value, _undecided_in(where))

    def _ask(self, admission: Admission, where: str) -> ReviewAnswer:
        """Return the answer.

        If the namespace's labels are unknown, a policy that needs them is evaluated as if they
        matched: without a violation, the result does not depend on them.
        """
        looked_up = {**self._always, **self._known.about(where)}
        answer = ask(self._engine, admission, looked_up)
        if self._known.knows(where) or NAMESPACE_LABELS not in lacked_look_ups(answer.outcomes):
            return answer
        everywhere = self._selecting(frozenset(each.title for each in self._engine.policies))
        if everywhere is None:
            return answer
        labelled = {**looked_up, NAMESPACE_LABELS: {NAME_LABEL: where}}
        outcomes = ask(everywhere, admission, labelled).outcomes
        broken = {each.policy for each in outcomes if each.reported or each.error or each.patched}
        engine = self._selecting(frozenset(each.policy for each in outcomes) - broken)
        return answer if engine is None else ask(engine, admission, looked_up)

    def _selecting(self, titles: frozenset[str]) -> Engine | None:
        """Return the engine as if namespace selectors of these matched; None if they conflict."""
        if titles not in self._anywhere:
            policies = (
                _anywhere(policy) if policy.title in titles else policy
                for policy in self._engine.policies
            )
            engine = self._engine.with_policies(policies)
            self._anywhere[titles] = None if engine.conflicts else engine
        return self._anywhere[titles]


def _anywhere(bound: BoundPolicy) -> BoundPolicy:
    clauses = tuple(replace(clause, namespace_selector=None) for clause in bound.match.clauses)
    return replace(bound, match=replace(bound.match, clauses=clauses))


def add_manifests(known: Known, documents: Iterable[Document], namespace: str) -> None:
    """Add complete objects; `namespace` is the default namespace."""
    for document in documents:
        known.add(as_served(document.value), namespace_of(document.value, namespace))


def kinds_in(documents: Iterable[Document], known: Mapping[tuple[str, str], Kind]) -> list[Kind]:
    """Return the kinds of complete objects, and those `known`, that the table of kinds lacks.

    Their plural is taken from `known` or a CustomResourceDefinition among the documents; otherwise
    it is the regular plural.
    """
    defined, regular = Known(), dict[tuple[str, str], Kind]()
    for document in documents:
        group, version, kind = group_version_kind(document.value)
        regular[group, kind] = Kind(group, kind, plural(kind), (ANY_VERSION, version))
        if (group, kind) == (CRD.group, CRD.kind):
            defined.add(document.value, "")
    kinds, table = regular | defined.kinds | dict(known), known_kinds()
    return [kind for key, kind in kinds.items() if key not in table]


def _explain_failure(outcome: Outcome) -> str:
    """Return a failure to judge in words, with how to verify images."""
    if outcome.lacks in IMAGE_LOOK_UPS:
        return "images are not verified: only their registries know. Use --registry-access."
    if outcome.error is None or outcome.lacks or isinstance(outcome.error, RuleError):
        return failure(outcome)
    return f"failed with an internal error: {one_line(describe_crash(outcome.error))}."


def judge_manifest(
    document: Document,
    namespace: str,
    outcomes: tuple[Outcome, ...],
    operations: tuple[dict[str, Any], ...] = (),
    object: dict[str, Any] = NOTHING,
    wording: Callable[[Outcome], str] = _explain_failure,
) -> JudgedManifest:
    """Return the verdict on a document from the outcome of each policy.

    `wording` returns the message of a failure.
    """
    reported = findings(outcomes, wording)
    covered = tuple(title for outcome in outcomes for title in outcome.covered)
    verdict = _verdict(outcomes, reported)
    return JudgedManifest(document, namespace, verdict, reported, operations, object, covered)


def _verdict(outcomes: tuple[Outcome, ...], findings: tuple[Finding, ...]) -> str:
    if not outcomes:
        return "unmatched"
    actions = {each.action for each in findings}
    for action in ("Deny", "Error", "Warn", "Audit"):
        if action in actions:
            return VERDICTS[action]
    return "mutated" if any(outcome.patched for outcome in outcomes) else "allowed"


def _undecided_in(namespace: str) -> Callable[[Outcome], str]:
    """Return a function that words a failure, with the option that provides what is missing."""

    def wording(outcome: Outcome) -> str:
        if outcome.lacks not in OF_A_KNOWN_NAMESPACE:
            return _explain_failure(outcome)
        missing = outcome.lacks.replace("_", " ").removeprefix("namespace ")
        return (
            f"cannot be decided: the {missing} of namespace {namespace} are unknown. Add "
            f"Namespace {namespace} to the manifests, or use --namespace-labels or --kubeconfig."
        )

    return wording
