"""Finds an image's signatures: bundles by the referrers API or a tag, and legacy signatures.

The type of a candidate is read from its own manifest: the type in the descriptor that points to it
depends on the registry and on the client that wrote it.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Annotated, Literal

import msgspec

from config.image_references import ImageReference
from webhook.engine.image_look_ups import Attached, SignatureDocument
from webhook.registries.client import (
    BLOB_BYTES,
    NotInRegistryError,
    RegistryClient,
    RegistryError,
    digest_of,
)

MAX_CANDIDATES = 50
MAX_BYTES = 4 * 1024 * 1024  # of all signatures of an image
BUNDLE_TYPE = "application/vnd.dev.sigstore.bundle"
LEGACY_TYPE = "application/vnd.dev.cosign.simplesigning.v1+json"
LEGACY_SIGNATURE = "dev.cosignproject.cosign/signature"
INVALID = (msgspec.DecodeError, RecursionError)


class Descriptor(msgspec.Struct, rename="camel", gc=False):
    """A reference from a manifest to a blob or another manifest."""

    digest: Annotated[str, msgspec.Meta(pattern="^sha256:[0-9a-f]{64}$")]
    media_type: str = ""
    size: int = 0
    annotations: dict[str, str] | None = None


class Manifest(msgspec.Struct, rename="camel"):
    """A manifest, or an index of manifests."""

    artifact_type: str = ""
    manifests: list[Descriptor] | None = None
    layers: list[Descriptor] | None = None
    subject: Descriptor | None = None

    def is_bundle_of(self, image: ImageReference) -> bool:
        """Return whether its first layer is a bundle about the image."""
        if not self.layers or self.subject is None or self.subject.digest != image.digest:
            return False
        kinds = (self.artifact_type, self.layers[0].media_type)
        return any(each.startswith(BUNDLE_TYPE) for each in kinds)


class RegistryReader:
    """Reads the digests and signatures of images for policies."""

    def __init__(self, client: RegistryClient) -> None:
        """Take the registry client."""
        self._client = client

    async def digest(self, image: ImageReference) -> str:
        """Return the current digest of an image's tag.

        Raises RegistryError if it cannot be read.
        """
        body = await self._client.read(image, "manifests", image.version or "")
        with _only_manifests(image):
            manifest = msgspec.json.decode(body, type=Manifest)
            if manifest.manifests is None and manifest.layers is None:
                raise msgspec.DecodeError
        return digest_of(body)

    async def read_signatures(self, image: ImageReference) -> Attached:
        """Return the signatures of an image's digest.

        Raises RegistryError if they cannot be read.
        """
        documents, size = list[SignatureDocument](), 0
        try:
            with _only_manifests(image):
                async for document in self._documents(image):
                    self._client.hold(image, len(document.content))
                    size += len(document.content)
                    documents.append(document)
                    if size > MAX_BYTES:
                        text = f"{image} has signatures of more than {MAX_BYTES} bytes"
                        raise RegistryError(text)
        finally:
            self._client.in_flight.release(size)
        return Attached(tuple(documents))

    async def _documents(self, image: ImageReference) -> AsyncIterator[SignatureDocument]:
        tag = (image.digest or "").replace(":", "-")
        for candidate in _few(image, await self._candidates(image, tag)):
            try:
                manifest = await self._manifest(image, candidate.digest)
            except INVALID:
                continue  # not a bundle
            layers = manifest.layers or []
            if manifest.is_bundle_of(image) and layers[0].size <= BLOB_BYTES:
                yield SignatureDocument(await self._client.read(image, "blobs", layers[0].digest))
        legacy = await self._manifest(image, f"{tag}.sig")
        for layer in _few(image, legacy.layers or ()):
            signature = (layer.annotations or {}).get(LEGACY_SIGNATURE)
            if layer.media_type == LEGACY_TYPE and signature:
                blob = await self._client.read(image, "blobs", layer.digest)
                yield SignatureDocument(blob, signature)

    async def _candidates(self, image: ImageReference, tag: str) -> Sequence[Descriptor]:
        """Return the descriptors that refer to an image, by the referrers API or by its tag.

        A registry without this API may answer with a page.
        """
        index = Manifest()
        with suppress(*INVALID):
            index = await self._manifest(image, image.digest or "", "referrers")
        return index.manifests or (await self._manifest(image, tag)).manifests or ()

    async def _manifest(
        self,
        image: ImageReference,
        name: str,
        kind: Literal["manifests", "referrers"] = "manifests",
    ) -> Manifest:
        """Return a manifest; an empty one if there is none."""
        try:
            body = await self._client.read(image, kind, name)
        except NotInRegistryError:
            return Manifest()
        return msgspec.json.decode(body, type=Manifest)


@contextmanager
def _only_manifests(image: ImageReference) -> Iterator[None]:
    """Translate the error of a document that is no manifest."""
    try:
        yield
    except INVALID:
        what = "answers with something that is no manifest"
        raise RegistryError(f"registry {image.registry} {what}") from None


def _few(image: ImageReference, candidates: Sequence[Descriptor]) -> Sequence[Descriptor]:
    if len(candidates) > MAX_CANDIDATES:
        raise RegistryError(f"{image} has more than {MAX_CANDIDATES} candidates for signatures")
    return candidates
