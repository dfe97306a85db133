"""A client of the OCI distribution API: manifests, referrers and small blobs of one registry.

Source: opencontainers/distribution-spec v1.1, and the token authentication of the distribution
project.
"""

import asyncio
import hashlib
import json
import re
import ssl
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlencode, urljoin, urlsplit

import aiohttp

from config.image_references import DEFAULT_REGISTRY, ImageReference
from kube.session import CONNECT_SECONDS, reason_of
from webhook.registries.in_flight import MAX_IN_FLIGHT, BytesInFlight, TooManyBytesError

MANIFEST_BYTES = 4 * 1024 * 1024
BLOB_BYTES = 1024 * 1024
MAX_REDIRECTS = 3
REDIRECTS = (301, 302, 303, 307, 308)
TOKEN_BYTES = 64 * 1024
ABSENT = (404,)
NO_REFERRERS = (400, 404, 406)  # of registries without the referrers API
MAX_TOKENS = 500  # in memory; each repository has one
API_HOSTS = {DEFAULT_REGISTRY: "registry-1.docker.io"}
ACCEPTED = ", ".join(
    (
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    )
)
_PARAMETER = re.compile(r'(\w+)="([^"]*)"')


class RegistryError(Exception):
    """A registry does not answer correctly; the message has the reason, and no credentials."""


class NotInRegistryError(RegistryError):
    """The registry has no such manifest or blob."""


@dataclass(slots=True)
class RegistryClient:
    """Reads registries.

    `logins` are Authorization headers; `insecure` are the hosts that are contacted over plain HTTP.
    """

    session: aiohttp.ClientSession
    logins: Mapping[str, str] = field(default_factory=dict, repr=False)
    insecure: Collection[str] = ()
    trusted: ssl.SSLContext | bool = True
    in_flight: BytesInFlight = field(default_factory=BytesInFlight, repr=False)
    _tokens: dict[tuple[str, str], str] = field(default_factory=dict, repr=False)

    async def read(
        self, image: ImageReference, kind: Literal["manifests", "referrers", "blobs"], name: str
    ) -> bytes:
        """Return a manifest, the referrers or a blob from an image's repository.

        `name` is a tag or a digest. The content, except referrers, must match a digest.
        """
        try:
            body = await self._send_authorized(image, kind, name)
        except (aiohttp.ClientError, OSError, asyncio.IncompleteReadError) as error:
            reason = reason_of(error, CONNECT_SECONDS)
            raise RegistryError(f"registry {image.registry} cannot be reached: {reason}") from error
        except ValueError as error:  # of a host name, a URL or a token
            text = f"registry {image.registry} has an invalid name, redirect or login"
            raise RegistryError(text) from error
        is_digest = kind != "referrers" and name.startswith("sha256:")
        if is_digest and name != digest_of(body):
            raise RegistryError(f"{image.registry} returned other content than that of {name}")
        return body

    def hold(self, image: ImageReference, size: int) -> None:
        """Count bytes of an answer in memory. Raises RegistryError if these are too many."""
        try:
            self.in_flight.add(size)
        except TooManyBytesError as error:
            most = f"{MAX_IN_FLIGHT // 1024**2} MiB of answers in memory"
            text = f"registry {image.registry} sends much while others do: more than {most}"
            raise RegistryError(f"{text}; it is read again later") from error

    async def _send_authorized(self, image: ImageReference, kind: str, name: str) -> bytes:
        """Send a request, and if the registry requires it, repeat it with a token or login."""
        scheme = "http" if image.registry in self.insecure else "https"
        host = API_HOSTS.get(image.registry, image.registry)
        url = f"{scheme}://{host}/v2/{image.repository}/{kind}/{name}"
        limit = BLOB_BYTES if kind == "blobs" else MANIFEST_BYTES
        accept = "*/*" if kind == "blobs" else ACCEPTED
        absent = NO_REFERRERS if kind == "referrers" else ABSENT
        scope = image.registry, image.repository
        async with self._get(url, self._tokens.get(scope), accept) as response:
            if response.status != 401:
                return await self._body(image, response, limit, absent)
            challenge = response.headers.get("WWW-Authenticate", "")
        authorization = await self._authorization(image, challenge)
        if len(self._tokens) >= MAX_TOKENS:
            self._tokens.clear()
        self._tokens[scope] = authorization
        async with self._get(url, authorization, accept) as response:
            return await self._body(image, response, limit, absent)

    def _get(self, url: str, authorization: str | None = None, accept: str = "*/*") -> Any:
        headers = {"Accept": accept, "Accept-Encoding": "identity"}  # what is small stays small
        if authorization is not None:
            headers["Authorization"] = authorization
        return self.session.get(url, headers=headers, ssl=self.trusted, allow_redirects=False)

    async def _body(
        self,
        image: ImageReference,
        response: aiohttp.ClientResponse,
        limit: int,
        absent: Collection[int],
        redirects: int = MAX_REDIRECTS,
    ) -> bytes:
        """Return the body, also after a redirect to a blob store, which gets no credentials."""
        if response.status not in REDIRECTS:
            return await self._content(image, response, limit, absent)
        location = urljoin(str(response.url), response.headers.get("Location", ""))
        if not self._is_secure(location):
            scheme = urlsplit(location).scheme
            raise RegistryError(f"{image.registry} redirects to {scheme}, not to https")
        if not redirects:
            raise RegistryError(f"{image.registry} redirects more than {MAX_REDIRECTS} times")
        async with self._get(location) as answer:
            return await self._body(image, answer, limit, absent, redirects - 1)

    def _is_secure(self, url: str) -> bool:
        """Return whether a URL is HTTPS, or HTTP of a host that is named insecure."""
        parts = urlsplit(url)
        return parts.scheme == "https" or (parts.scheme == "http" and parts.netloc in self.insecure)

    async def _authorization(self, image: ImageReference, challenge: str) -> str:
        """Return the Authorization header for a challenge."""
        login = self.logins.get(image.registry)
        kind, _, rest = challenge.partition(" ")
        if kind.lower() == "basic" and login is not None:
            return login
        parameters = dict(_PARAMETER.findall(rest))
        realm = parameters.get("realm", "")
        if kind.lower() != "bearer" or not self._is_secure(realm):
            needed = "requires a login; add it to the file of --registry-config"
            raise RegistryError(f"registry {image.registry} {needed}")
        query = {"scope": f"repository:{image.repository}:pull"}
        if service := parameters.get("service"):
            query["service"] = service
        async with self._get(f"{realm}?{urlencode(query)}", login) as response:
            body = await self._content(image, response, TOKEN_BYTES)
        try:
            answer = json.loads(body)
            token = answer.get("token") or answer["access_token"]
        except (ValueError, RecursionError, KeyError, AttributeError):
            raise RegistryError(f"registry {image.registry} issued no token") from None
        return f"Bearer {token}"

    async def _content(
        self,
        image: ImageReference,
        response: aiohttp.ClientResponse,
        limit: int,
        absent: Collection[int] = ABSENT,
    ) -> bytes:
        if response.status in absent:
            raise NotInRegistryError(f"registry {image.registry} has no such image")
        if response.status == 429:
            raise RegistryError(f"registry {image.registry} limits the rate of requests (429)")
        if response.status != 200:
            raise RegistryError(f"registry {image.registry} answers with {response.status}")
        if "Content-Encoding" in response.headers:
            raise RegistryError(
                f"registry {image.registry} sends a Content-Encoding, which is not supported"
            )
        body, held = bytearray(), 0
        try:
            async for chunk in response.content.iter_any():
                self.hold(image, len(chunk))
                held += len(chunk)
                body += chunk
                if len(body) > limit:
                    raise RegistryError(
                        f"registry {image.registry} answers with more than {limit} bytes"
                    )
        finally:
            self.in_flight.release(held)
        return bytes(body)


def digest_of(body: bytes) -> str:
    """Return the digest of a body."""
    return f"sha256:{hashlib.sha256(body).hexdigest()}"
