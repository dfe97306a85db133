"""Finds what is attached to an image: bundles by the referrers API or its tag, legacy signatures.

Each candidate is judged by its own manifest: the type in the descriptor that points to it depends
on the registry and on the client that wrote it.
"""

import json
from collections.abc import Mapping
from typing import Any

from webhook.engine.images import ImageReference
from webhook.policies._attached import Attached, SignatureDocument
from webhook.registries.client import NotInRegistryError, RegistryClient, RegistryError

MAX_CANDIDATES = 50
BUNDLE_TYPE = "application/vnd.dev.sigstore.bundle"
LEGACY_TYPE = "application/vnd.dev.cosign.simplesigning.v1+json"
LEGACY_SIGNATURE = "dev.cosignproject.cosign/signature"


class RegistryReader:
    """Answers what policies ask of images."""

    def __init__(self, client: RegistryClient) -> None:
        """Take the client."""
        self._client = client

    async def digest(self, image: ImageReference) -> str:
        """Return the digest that the tag of an image has now. RegistryError where none is known."""
        return (await self._client.manifest(image, image.version or ""))[0]

    async def attached(self, image: ImageReference) -> Attached:
        """Return what is attached to the digest of an image. RegistryError if it is not known."""
        documents = await self._bundles(image)
        documents += await self._legacy(image)
        return Attached(tuple(documents))

    async def _bundles(self, image: ImageReference) -> list[SignatureDocument]:
        try:
            index = _json(image, await self._client.referrers(image))
        except NotInRegistryError:
            index = {}
        if not index.get("manifests"):
            tag = (image.digest or "").replace(":", "-")
            try:
                index = _json(image, (await self._client.manifest(image, tag))[1])
            except NotInRegistryError:
                return []
        found = list[SignatureDocument]()
        candidates = index.get("manifests") or []
        if len(candidates) > MAX_CANDIDATES:
            raise RegistryError(f"{image} has more than {MAX_CANDIDATES} candidates for signatures")
        for descriptor in candidates:
            manifest = await self._manifest(image, _digest_of(descriptor))
            if manifest is not None and _refers_to(manifest, image):
                blob = await self._client.blob(image, _digest_of(manifest["layers"][0]))
                found.append(SignatureDocument(blob))
        return found

    async def _manifest(self, image: ImageReference, digest: str) -> Mapping[str, Any] | None:
        """Return the manifest of a candidate; None for one that is no longer there."""
        try:
            return _json(image, (await self._client.manifest(image, digest))[1])
        except NotInRegistryError:
            return None

    async def _legacy(self, image: ImageReference) -> list[SignatureDocument]:
        tag = f"{(image.digest or '').replace(':', '-')}.sig"
        try:
            manifest = _json(image, (await self._client.manifest(image, tag))[1])
        except NotInRegistryError:
            return []
        layers = [
            each
            for each in manifest.get("layers") or []
            if isinstance(each, dict) and each.get("mediaType") == LEGACY_TYPE
        ]
        found = list[SignatureDocument]()
        for layer in layers[:MAX_CANDIDATES]:
            signature = (layer.get("annotations") or {}).get(LEGACY_SIGNATURE)
            if isinstance(signature, str):
                blob = await self._client.blob(image, _digest_of(layer))
                found.append(SignatureDocument(blob, signature))
        return found


def _refers_to(manifest: Mapping[str, Any], image: ImageReference) -> bool:
    """Return whether a manifest is that of a bundle about the image."""
    layers = manifest.get("layers")
    if not isinstance(layers, list) or not layers or not isinstance(layers[0], dict):
        return False
    kinds = (manifest.get("artifactType"), layers[0].get("mediaType"))
    subject = manifest.get("subject")
    is_about = isinstance(subject, dict) and subject.get("digest") == image.digest
    return is_about and any(str(each).startswith(BUNDLE_TYPE) for each in kinds)


def _digest_of(descriptor: Any) -> str:
    digest = descriptor.get("digest") if isinstance(descriptor, dict) else None
    if not isinstance(digest, str) or not digest.startswith("sha256:"):
        raise RegistryError("a manifest names something without a digest")
    return digest


def _json(image: ImageReference, body: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise RegistryError(f"registry {image.registry} answers with something that is no manifest")
    return found
