"""A registry in the test's process whose answers, valid or hostile, the test controls."""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from config.image_references import ImageReference
from kube.session import new_session
from tests.webhook.registries.signing import BUNDLE
from webhook.registries.client import RegistryClient
from webhook.registries.reader import LEGACY_SIGNATURE, LEGACY_TYPE, RegistryReader

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"


def digest_of(body: bytes) -> str:
    """Return the digest of a body."""
    return f"sha256:{hashlib.sha256(body).hexdigest()}"


@dataclass
class SmallRegistry:
    """Serves stored manifests and blobs, else 404. `asked` are the paths of requests."""

    address: str = ""
    bodies: dict[str, bytes] = field(default_factory=dict)
    handlers: dict[str, Handler] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    has_referrers: bool = True

    def image(self, digest: str, tag: str | None = None) -> ImageReference:
        """Return a reference to an image in it."""
        return ImageReference(self.address, "team/shop", tag, digest)

    def put(self, kind: str, value: dict[str, Any], *names: str) -> str:
        """Store a manifest under its digest and other names; return the digest."""
        body = json.dumps(value | {"mediaType": kind}).encode()
        digest = digest_of(body)
        for name in (digest, *names):
            self.bodies[f"/v2/team/shop/manifests/{name}"] = body
        return digest

    def blob(self, body: bytes) -> str:
        """Store a blob; return its digest."""
        digest = digest_of(body)
        self.bodies[f"/v2/team/shop/blobs/{digest}"] = body
        return digest

    def attach(self, digest: str, *bundles: dict[str, Any], artifact_type: str = BUNDLE) -> None:
        """Attach bundles to a digest, by the referrers API or else by its tag."""
        manifests = []
        for bundle in bundles:
            blob = self.blob(json.dumps(bundle).encode())
            manifest = {
                "artifactType": artifact_type,
                "layers": [{"digest": blob, "mediaType": BUNDLE}],
                "subject": {"digest": digest},
            }
            # registries write different types into the descriptor
            descriptor = {"artifactType": "application/vnd.oci.empty.v1+json"}
            manifests.append({"digest": self.put(MANIFEST, manifest)} | descriptor)
        index = {"manifests": manifests}
        if self.has_referrers:
            self.bodies[f"/v2/team/shop/referrers/{digest}"] = json.dumps(index).encode()
        else:
            self.put(INDEX, index, digest.replace(":", "-"))

    def attach_legacy(self, digest: str, payload: str, signature: str) -> None:
        """Attach a legacy signature."""
        layer = {
            "digest": self.blob(payload.encode()),
            "mediaType": LEGACY_TYPE,
            "annotations": {LEGACY_SIGNATURE: signature},
        }
        self.put(MANIFEST, {"layers": [layer]}, f"{digest.replace(':', '-')}.sig")

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer a request."""
        self.asked.append(f"{request.method} {request.path}")
        if handler := self.handlers.get(request.path) or self.handlers.get("*"):
            return await handler(request)
        body = self.bodies.get(request.path)
        if body is None:
            return web.Response(status=404)
        return web.Response(body=body, content_type=MANIFEST)


@asynccontextmanager
async def small_registry() -> AsyncIterator[SmallRegistry]:
    """Serve a registry over plain HTTP until the context exits."""
    small = SmallRegistry()
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", small.answer)
    async with TestServer(application) as server:
        small.address = f"127.0.0.1:{server.port}"
        yield small


@pytest.fixture
async def registry() -> AsyncIterator[SmallRegistry]:
    """A registry over plain HTTP."""
    async with small_registry() as small:
        yield small


@pytest.fixture
async def client(registry: SmallRegistry) -> AsyncIterator[RegistryClient]:
    """A client that may contact it over plain HTTP."""
    async with new_session({}) as session:
        yield RegistryClient(session, insecure={registry.address})


@pytest.fixture
def reader(client: RegistryClient) -> RegistryReader:
    """A reader of the signatures and attestations of its images."""
    return RegistryReader(client)


async def endless(request: web.Request) -> web.StreamResponse:
    """Answer with a body that does not end."""
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b"x" * 65_536)


async def hanging(request: web.Request) -> web.StreamResponse:
    """Never answer."""
    await asyncio.Event().wait()
    raise AssertionError


async def rate_limited(request: web.Request) -> web.Response:
    """Reject the request."""
    return web.Response(status=429)


async def never_ending_redirect(request: web.Request) -> web.Response:
    """Redirect to itself."""
    return web.Response(status=307, headers={"Location": str(request.url)})
