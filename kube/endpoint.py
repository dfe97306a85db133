"""One API server: its address, the authorities that verify it, and the credentials."""

import asyncio
import logging
import os
import ssl
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from ssl import SSLContext
from typing import IO, NamedTuple
from urllib.parse import urlsplit

TOKEN_SECONDS = 60.0

LOG = logging.getLogger("gatewright.kube.credentials")

Authorization = Callable[[], Awaitable[str | None]]


class CredentialsError(ValueError):
    """Credentials that cannot be used.

    The text names the file and what is wrong with it, never what is secret.
    """


async def anonymous() -> None:
    """Send no Authorization header: the client has a certificate, or needs no credentials."""


class Endpoint(NamedTuple):
    """What a connection to one API server needs."""

    url: str
    ssl: SSLContext | None = None
    authorization: Authorization = anonymous
    """Returns the Authorization header, or None; asked before each request."""
    namespace: str = "default"
    server_hostname: str | None = None
    proxy: str | None = None

    @property
    def host(self) -> str:
        """The host and the port, as they stand in the address."""
        return urlsplit(self.url).netloc.rpartition("@")[2]


class Renewed:
    """An Authorization header from `ask`: refreshed each minute, kept while that fails."""

    def __init__(self, ask: Authorization, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._ask = ask
        self._monotonic = monotonic
        self._asked_at = float("-inf")
        self._header: str | None = None
        self._lock = asyncio.Lock()

    async def __call__(self) -> str | None:
        """Return the header; CredentialsError as long as there was none at all."""
        async with self._lock:
            if self._monotonic() - self._asked_at >= TOKEN_SECONDS:
                try:
                    self._header = await self._ask()
                except CredentialsError as error:
                    if self._header is None:
                        raise
                    LOG.warning(
                        "using the cached token: %s", error, extra={"fields": {"error": str(error)}}
                    )
                self._asked_at = self._monotonic()
        return self._header


def static_token(token: str, source: str = "token") -> Authorization:
    """Return the authorization by a token that never changes; `source` is named in errors."""
    header = bearer(token, source)

    async def authorization() -> str:
        return header

    return authorization


def token_file(path: Path, monotonic: Callable[[], float] = time.monotonic) -> Authorization:
    """Return the authorization by the token in a file, which others renew."""

    async def authorization() -> str:
        return bearer(read(path).decode("ascii", "replace").strip(), str(path))

    return Renewed(authorization, monotonic)


def bearer(token: str, source: str) -> str:
    """Return the Authorization header with a token.

    CredentialsError, naming its `source`, if that is none.
    """
    if not token or not token.isprintable() or not token.isascii():
        raise CredentialsError(f"{source}: not a valid token")
    return f"Bearer {token}"


def read(path: Path) -> bytes:
    """Return what is in a file, or say why it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise CredentialsError(f"{path}: {(error.strerror or 'cannot be read').lower()}") from None


def tls(source: str, *, authorities: bytes | None, verify: bool = True) -> ssl.SSLContext:
    """Return how to trust a server: by these PEM authorities, or by the system's.

    `source` is named in errors.
    """
    try:
        context = ssl.create_default_context(
            cadata=authorities.decode("ascii", "replace") if authorities else None
        )
    except (ssl.SSLError, ValueError):
        raise CredentialsError(
            f"{source}: the certificate authority is not a PEM certificate"
        ) from None
    # Many clusters' own authorities lack the key identifiers that Python 3.13 insists on and no
    # other client does.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def present(context: ssl.SSLContext, source: str, certificate: bytes, key: bytes) -> None:
    """Let `context` present a client certificate (PEM); `source` is named in errors."""
    try:
        load_pair(context, certificate, key)
    except ssl.SSLError:
        raise CredentialsError(
            f"{source}: the client certificate and its key are no pair in PEM"
        ) from None


def load_pair(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Load a certificate and its key (PEM) into `context`; SSLError where they are no pair."""
    with _private_file() as file:
        file.write(certificate + b"\n" + key)
        file.flush()
        path = f"/proc/self/fd/{file.fileno()}" if sys.platform == "linux" else file.name
        # without a password an encrypted key would be asked for on the terminal
        context.load_cert_chain(path, password=lambda: b"")


def _private_file() -> IO[bytes]:
    """Return a short-lived file for the ssl module, which reads files only.

    On Linux it is in memory: a container's root may be read-only, and no key reaches a disk.
    """
    if sys.platform == "linux":
        return os.fdopen(os.memfd_create("pair", os.MFD_CLOEXEC), "w+b")
    return tempfile.NamedTemporaryFile()
