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
    """Credentials cannot be used.

    The message names the file and the error, and contains no secrets.
    """


async def anonymous() -> None:
    """Send no Authorization header: the client has a certificate, or needs no credentials."""


class Endpoint(NamedTuple):
    """The address, trust and credentials for connections to one API server."""

    url: str
    ssl: SSLContext | None = None
    authorization: Authorization = anonymous
    """Returns the Authorization header, or None; called before each request."""
    namespace: str = "default"
    server_hostname: str | None = None
    proxy: str | None = None

    @property
    def host(self) -> str:
        """The host and the port of the address."""
        return urlsplit(self.url).netloc.rpartition("@")[2]


class Renewed:
    """An Authorization header from `ask`, refreshed each minute, and kept if that fails."""

    def __init__(self, ask: Authorization, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._ask = ask
        self._monotonic = monotonic
        self._asked_at = float("-inf")
        self._header: str | None = None
        self._lock = asyncio.Lock()

    async def __call__(self) -> str | None:
        """Return the header. Raises CredentialsError if there has never been one."""
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
    """Return the authorization by the token in a file, which another program renews."""

    async def authorization() -> str:
        return bearer(read(path).decode("ascii", "replace").strip(), str(path))

    return Renewed(authorization, monotonic)


def bearer(token: str, source: str) -> str:
    """Return the Authorization header with a token.

    Raises CredentialsError, with the `source`, if it is not a token.
    """
    if not token or not token.isprintable() or not token.isascii():
        raise CredentialsError(f"{source}: not a valid token")
    return f"Bearer {token}"


def read(path: Path) -> bytes:
    """Return the content of a file. Raises CredentialsError if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise CredentialsError(f"{path}: {(error.strerror or 'cannot be read').lower()}") from None


def tls(source: str, *, authorities: bytes | None, verify: bool = True) -> ssl.SSLContext:
    """Return a TLS context that trusts these PEM authorities, or by default the system's.

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
    # Many clusters' authorities lack the key identifiers that Python 3.13 requires, unlike other
    # clients.
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
    """Load a certificate and its key (PEM) into `context`. Raises SSLError if they do not match."""
    with _private_file() as file:
        file.write(certificate + b"\n" + key)
        file.flush()
        path = f"/proc/self/fd/{file.fileno()}" if sys.platform == "linux" else file.name
        # without this, an encrypted key would cause a password prompt on the terminal
        context.load_cert_chain(path, password=lambda: b"")


def _private_file() -> IO[bytes]:
    """Return a temporary file for the ssl module, which reads only files.

    On Linux it is in memory, since a container's root may be read-only, and no key should reach a
    disk.
    """
    if sys.platform == "linux":
        return os.fdopen(os.memfd_create("pair", os.MFD_CLOEXEC), "w+b")
    return tempfile.NamedTemporaryFile()
