"""The subjects of `check` and `impact`: manifests, recorded reviews, or objects of a cluster.

Recorded requests are AdmissionReviews or API server audit events, one JSON object per line. Of the
manifests, `missing_pod_paths` finds paths of pods (`--pod-kinds`) that no object has.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from config.documents import Document, DocumentError
from gatewright.checks.loaded_policies import PoliciesInForce, known_of
from gatewright.checks.sources import Sources
from gatewright.console.terminal import Progress, progress
from kube.resource import group_version_kind
from webhook.engine.kinds import KINDS, NATIVE_KINDS, Kind
from webhook.engine.match import Labels
from webhook.harness.manifests import JudgedManifest, kinds_in
from webhook.known import Known
from webhook.review import MalformedRequestError, NotAReviewError, attributes

if TYPE_CHECKING:
    from gatewright.checks.live_cluster import Live
from pathlib import Path

from config.positions import OneLine
from gatewright.checks.fixed_text import value_below
from kube.resource import JsonObject
from webhook.engine.kinds import custom_pod_kinds

# By the verb of an audit event.
OPERATIONS = {"create": "CREATE", "update": "UPDATE", "patch": "UPDATE"}


def read_reviews(path: Path) -> Iterator[Document | DocumentError]:
    """Yield each line of a file as an AdmissionReview (admission.k8s.io/v1), or an error about it.

    In an audit log (audit.k8s.io/v1 Event), only finished writes with their object become reviews;
    other events are skipped. Raises DocumentError if the file cannot be read.
    """
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise DocumentError(f"{path}: {error.strerror or error}") from None
    events = reviews = 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            yield DocumentError(f"{path}:{number}: not JSON: {error}")
            continue
        kind = value.get("kind") if isinstance(value, dict) else None
        if kind == "AdmissionReview":
            yield _document(path, number, value)
        elif kind == "Event" and str(value.get("apiVersion", "")).startswith("audit.k8s.io/"):
            try:
                review = _review(value)
            except (AttributeError, TypeError, ValueError):
                yield DocumentError(f"{path}:{number}: not a valid audit Event")
                continue
            events += 1
            if review is not None:
                reviews += 1
                yield _document(path, number, review)
        else:
            yield DocumentError(f"{path}:{number}: neither an AdmissionReview nor an audit Event")
    if events and not reviews:
        yield DocumentError(
            f"{path}: no event has the object that was written; record level Request or "
            "RequestResponse"
        )


def _document(path: Path, number: int, review: JsonObject) -> Document:
    return Document(str(path), review, OneLine(number))


def _review(event: JsonObject) -> JsonObject | None:
    """Return the review of the write in an audit event.

    Return None for a read, and for an event without the written object.
    """
    operation = OPERATIONS.get(str(event.get("verb")))
    about, status = event.get("objectRef") or {}, event.get("responseStatus") or {}
    sent, stored = event.get("requestObject"), event.get("responseObject")
    if operation is None or event.get("stage") != "ResponseComplete":
        return None
    succeeded = int(status.get("code") or 0) < 300
    object = (
        stored
        if succeeded and isinstance(stored, dict)
        else sent
        if event["verb"] != "patch"
        else None
    )
    if not isinstance(object, dict) or "kind" not in object:
        return None
    group, version, kind = group_version_kind(object)
    user = event.get("user") or {}
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": str(event.get("auditID") or "recorded"),
            "kind": {"group": group, "version": version, "kind": kind},
            "resource": {
                "group": about.get("apiGroup", ""),
                "version": about.get("apiVersion", ""),
                "resource": about.get("resource", ""),
            },
            "subResource": about.get("subresource", ""),
            "name": about.get("name") or (object.get("metadata") or {}).get("name", ""),
            "namespace": about.get("namespace", ""),
            "operation": operation,
            "userInfo": {"username": user.get("username", ""), "groups": user.get("groups") or []},
            "object": object,
            "oldObject": None,
        },
    }


NO_IMAGES: Mapping[str, Any] = {}
Verdicts = list[JudgedManifest] | DocumentError


@dataclass(frozen=True, slots=True)
class Subjects:
    """Manifests with their default namespace, labels of namespaces, and recorded reviews.

    Without `sources`, the subjects are the objects of a cluster.
    """

    sources: Sources | None
    namespace: str
    labels: Mapping[str, Labels]
    reviews: Sequence[Document | DocumentError] = ()
    applies: bool = False
    """Whether `namespace` was named, so that objects without one would be applied to it."""

    @property
    def may_have_children(self) -> bool:
        """Whether a subject may be of a kind with planned children."""
        if self.sources is None or self.reviews:
            return True
        custom = KINDS.keys() - {(each.group, each.kind) for each in NATIVE_KINDS}
        sent = (group_version_kind(each.value) for each in self.sources.documents)
        return not custom.isdisjoint((group, kind) for group, _, kind in sent)

    async def kinds(self, live: "Live | None") -> list[Kind]:
        """Return the kinds of the subjects that the table of kinds does not have."""
        documents = [] if self.sources is None else self.sources.documents
        recorded = dict(self._recorded_kinds())
        return kinds_in(documents, recorded if live is None else recorded | await live.kinds())

    def _recorded_kinds(self) -> Iterator[tuple[tuple[str, str], Kind]]:
        """Yield the kinds of the reviews, by group and name, with their plurals."""
        for review in self.reviews:
            with suppress(NotAReviewError, MalformedRequestError):  # reported where it is judged
                value = None if isinstance(review, DocumentError) else review.value
                about = attributes(orjson.dumps(value))
                if not about.subresource:
                    versions, is_namespaced = (about.version,), bool(about.namespace)
                    kind = Kind(
                        about.group, about.kind, about.resource, versions, namespaced=is_namespaced
                    )
                    yield (kind.group, kind.kind), kind

    async def judge(
        self,
        sets: Sequence[PoliciesInForce],
        live: "Live | None",
        images: Mapping[str, Any] = NO_IMAGES,
    ) -> AsyncIterator[Verdicts]:
        """Yield the verdicts of the policy sets on each subject, or the error.

        Policies look up the manifests, then the objects of the cluster (`live`) if there is one,
        and the `images` read from registries.
        """
        documents = [] if self.sources is None else self.sources.documents
        known = Known() if live is None else await live.look_up(each.engine for each in sets)
        known.images = images
        if live is not None and self.sources is not None:
            known.kinds |= await live.kinds()
            named = await live.custom_types(documents)
            known.served_types = known.served_types.beside(named)
        known_of(documents, self.namespace, self.labels, known)
        if self.sources is not None:
            for subject in self._judge(self.sources, sets, known):
                yield subject
        elif live is not None:
            with Progress("judged") as done:
                async for verdicts in live.judge(sets, known):
                    yield verdicts
                    done.advance()

    def _judge(
        self, sources: Sources, sets: Sequence[PoliciesInForce], known: Known
    ) -> Iterator[Verdicts]:
        yield from map(DocumentError, sources.problems)
        judges = [each.judge(known, self.namespace, applies=self.applies) for each in sets]
        for document in progress(sources.judged, "judged"):
            yield _verdicts(document, judges)
        for review in progress(self.reviews, "judged"):
            yield _verdicts(review, [judge.review for judge in judges])


def _verdicts(
    document: Document | DocumentError, judges: Iterable[Callable[[Document], JudgedManifest]]
) -> Verdicts:
    if isinstance(document, DocumentError):
        return document
    try:
        return [judge(document) for judge in judges]
    except DocumentError as error:
        return error


def missing_pod_paths(documents: Sequence[Document]) -> Iterator[str]:
    """Yield a line for each kind whose objects do not have the path of its pods."""
    for kind in custom_pod_kinds():
        of_kind = [each for each in documents if _is_of(each, kind.group, kind.kind)]
        for path in kind.pod_specs or (kind.pod_spec or "",):
            if of_kind and not any(_has(each.value, path) for each in of_kind):
                where = of_kind[0].where()
                why = "which --pod-kinds names: no pod of it is judged"
                yield f"{where}: no {kind.kind} has {path}, {why}"


def _is_of(document: Document, group: str, kind: str) -> bool:
    group_of_document, _, name = group_version_kind(document.value)
    return (group_of_document, name) == (group, kind)


def _has(value: Any, path: str) -> bool:
    here, is_list, below = path.partition("[].")
    for step in here.split("."):
        value = value_below(value, step)
    if not is_list:
        return value is not None
    return isinstance(value, list) and any(_has(item, below) for item in value)
