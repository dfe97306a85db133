"""The subjects of `check` and `impact`: manifests, recorded reviews, or objects of a cluster."""

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
        known = dict(self._recorded_kinds())
        return kinds_in(documents, known if live is None else known | await live.kinds())

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
