"""Judge manifests as the webhook would if they were applied."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import jsonpatch
import orjson

from config.converters import ConversionError, stored
from config.defaulting import defaulted
from config.documents import Document, DocumentError
from webhook.engine import NAMESPACE_LABELS, NOW, SERVED, BoundPolicy, Engine, NotLookedUpError, Outcome, Violation
from webhook.engine.conflicts import ConflictingPoliciesError
from webhook.engine.planners import Served
from webhook.engine.request import NAME_LABEL
from webhook.harness.bases import namespace_of as reviewed_namespace
from webhook.harness.known import Known, namespace_of
from webhook.harness.objects import as_served, require_object
from webhook.harness.reviews import Admission, group_version_kind
from webhook.harness.trial import Answer, ask, ask_stored
from webhook.messages import failure
from webhook.review import MalformedRequestError, NotAReviewError, read

ACTIONS = ("Deny", "Warn", "Audit")  # a violation has the first of these actions that its policy has
VERDICTS = {"Error": "error", "Deny": "denied", "Warn": "warned", "Audit": "audited"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One violation of a policy by a manifest, or a policy that could not judge it.

    `action` is Deny, Warn, Audit, or Error where a policy that must decide could not. `violation` is None where the
    policy failed.
    """

    policy: str
    path: str
    message: str
    action: str = "Deny"
    violation: Violation | None = None


@dataclass(frozen=True, slots=True)
class Judged:
    """The verdict on one manifest.

    `verdict` is one of allowed, mutated, audited, warned, denied, unmatched (no policy applies) and error (a policy
    could not decide).
    """

    document: Document
    namespace: str
    verdict: str
    findings: tuple[Finding, ...]
    operations: tuple[dict[str, Any], ...]
    object: dict[str, Any]  # in the stored version, with the fields that policies set

    @property
    def name(self) -> str:
        """Its name; `prefix-*` if the API server generates it."""
        metadata = self.document.value["metadata"]
        return metadata.get("name") or f"{metadata.get('generateName', '')}*"

    @property
    def title(self) -> str:
        """Kind, namespace and name."""
        return f"{self.document.value['kind']} {f'{self.namespace}/' if self.namespace else ''}{self.name}"


class Judge:
    """Judges manifests one by one with an engine, against what is `known` of their cluster."""

    def __init__(
        self, engine: Engine, known: Known, namespace: str, now: datetime, served: Served = (), *, stored: bool = False
    ) -> None:
        """Use this engine and cluster, and this default namespace for manifests.

        `served` are the optional APIs that the cluster has. With `stored`, objects are judged as they are, without
        mutation.
        """
        self._ask_engine = ask_stored if stored else ask
        self._engine = engine
        self._known = known
        kinds = (target.kind for each in engine.policies for target in each.policy.targets)
        self._plurals = {(kind.group, kind.kind): kind.plural for kind in kinds} | known.plurals
        self._namespace = namespace
        self._always = {NOW: now, SERVED: served}
        self._anywhere: dict[frozenset[str], Engine | None] = {}

    def __call__(self, document: Document) -> Judged:
        """Return the verdict on one document. Raises DocumentError if it is not an API object."""
        require_object(document)
        where = namespace_of(document.value, self._namespace)
        try:
            sent = group_version_kind(document.value)
            object = defaulted(stored(as_served(document.value)))
            namespace = reviewed_namespace(object["kind"], object, where)
            resource = self._plurals.get((sent[0], sent[2]), "")
            admission = Admission(object, namespace=namespace, sent=sent, resource=resource)
            answer = self._ask(admission, where)
        except (ConversionError, MalformedRequestError) as error:
            raise DocumentError(f"{document.where()}: {error}") from None
        patch = jsonpatch.make_patch(admission.object, answer.object) if answer.allowed else ()
        return _judged(document, where, answer.outcomes, tuple(patch), answer.object or {})

    def review(self, document: Document) -> Judged:
        """Return the verdict on a recorded AdmissionReview (admission.k8s.io/v1), as the webhook would judge it.

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
        outcomes = mutated.outcomes + self._engine.validate(request).outcomes
        about, value = request.attributes, request.value
        named = {"kind": about.kind, "metadata": value.get("metadata") or {"name": about.name}}  # what exec has not
        judged = replace(document, value={**value, **named})
        return _judged(judged, where, outcomes, tuple(mutated.operations), value)

    def _ask(self, admission: Admission, where: str) -> Answer:
        """Return the answer; where labels are unknown, a policy decides if its verdict does not depend on them."""
        looked_up = {**self._always, **self._known.about(where)}
        answer = self._ask_engine(self._engine, admission, looked_up)
        undecided = _lacking_labels(answer)
        if not undecided or self._known.knows(where):
            return answer
        everywhere = self._selecting(frozenset(each.title for each in self._engine.policies))
        if everywhere is None:
            return answer
        labels = {NAMESPACE_LABELS: {NAME_LABEL: where}}
        found = self._ask_engine(everywhere, admission, {**looked_up, **labels}).outcomes
        broken = {each.policy for each in found if each.violations or each.malformed or each.error or each.patched}
        clean, needless = frozenset[str](), {each.policy for each in found} - broken
        while more := _lacking_labels(answer) & needless - clean:
            clean |= more
            engine = self._selecting(clean)
            if engine is None:
                break
            answer = self._ask_engine(engine, admission, looked_up)
        return answer

    def _selecting(self, titles: frozenset[str]) -> Engine | None:
        """Return the engine as if the namespace selectors of these policies matched; None if policies then conflict."""
        if titles not in self._anywhere:
            policies = (_anywhere(each) if each.title in titles else each for each in self._engine.policies)
            try:
                self._anywhere[titles] = self._engine.with_policies(policies)
            except ConflictingPoliciesError:
                self._anywhere[titles] = None
        return self._anywhere[titles]


def _anywhere(bound: BoundPolicy) -> BoundPolicy:
    clauses = tuple(replace(clause, namespace_selector=None) for clause in bound.match.clauses)
    return replace(bound, match=replace(bound.match, clauses=clauses))


def judge(engine: Engine, documents: Iterable[Document], namespace: str, now: datetime) -> Iterator[Judged]:
    """Yield the verdict on each document at the time `now`; `namespace` is the default namespace.

    The documents also serve as look-ups. Raises DocumentError if one is not an API object.
    """
    documents = list(documents)
    for document in documents:
        require_object(document)
    known = Known([document.value for document in documents], namespace)
    yield from map(Judge(engine, known, namespace, now), documents)


def _judged(
    document: Document,
    where: str,
    outcomes: tuple[Outcome, ...],
    operations: tuple[dict[str, Any], ...],
    object: dict[str, Any],
) -> Judged:
    findings = tuple(dict.fromkeys(_findings(outcomes, where)))
    return Judged(document, where, _verdict(outcomes, findings), findings, operations, object)


def _lacking_labels(answer: Answer) -> set[str]:
    """Return the policies that cannot decide without the labels of the namespace."""
    errors = ((each.policy, each.error) for each in answer.outcomes)
    return {
        policy for policy, error in errors if isinstance(error, NotLookedUpError) and str(error) == NAMESPACE_LABELS
    }


def _verdict(outcomes: tuple[Outcome, ...], findings: tuple[Finding, ...]) -> str:
    if not outcomes:
        return "unmatched"
    actions = {each.action for each in findings}
    for action in ("Deny", "Error", "Warn", "Audit"):
        if action in actions:
            return VERDICTS[action]
    return "mutated" if any(outcome.patched for outcome in outcomes) else "allowed"


def _findings(outcomes: Iterable[Outcome], namespace: str) -> Iterator[Finding]:
    malformed: set[str] = set()
    for outcome in outcomes:
        if outcome.malformed is not None:
            if outcome.malformed.where not in malformed:  # every policy that reads the field reports it
                malformed.add(outcome.malformed.where)
                yield _finding(outcome.policy, outcome.malformed, "Deny")
        elif outcome.error is not None:
            action = "Error" if outcome.denies else "Warn"
            yield Finding(outcome.policy, "", _undecided(outcome, namespace), action)
        else:
            action = next((each for each in ACTIONS if each in outcome.actions), "Audit")
            yield from (_finding(outcome.policy, each, action) for each in outcome.violations)


def _finding(policy: str, violation: Violation, action: str) -> Finding:
    return Finding(policy, violation.where, violation.message, action, violation)


def _undecided(outcome: Outcome, namespace: str) -> str:
    if not isinstance(outcome.error, NotLookedUpError):
        return failure(outcome)
    missing = str(outcome.error).replace("_", " ").removeprefix("namespace ")
    return (
        f"cannot be decided: the {missing} of namespace {namespace} are unknown. Add Namespace {namespace} to the "
        "manifests, or use --namespace-labels or --kubeconfig."
    )
