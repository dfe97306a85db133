"""One API server: its address, the authorities that verify it, and the credentials of the client."""

import logging
import ssl
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from ssl import SSLContext
from typing import NamedTuple
from urllib.parse import urlsplit

TOKEN_SECONDS = 60.0

LOG = logging.getLogger("gatewright.kube.credentials")

Authorization = Callable[[], str | Awaitable[str | None] | None]


class CredentialsError(ValueError):
    """Credentials that cannot be used; the text names the file and what is wrong with it, never what is secret."""


def anonymous() -> None:
    """Send no Authorization header: the client has a certificate, or the server asks for no credentials."""


class Endpoint(NamedTuple):
    """What a connection to one API server needs."""

    url: str
    ssl: SSLContext | None = None
    authorization: Authorization = anonymous
    """Returns the Authorization header, or an awaitable of it where it takes time; asked before each request."""
    namespace: str = "default"
    server_hostname: str | None = None
    proxy: str | None = None

    @property
    def host(self) -> str:
        """The host and the port, as they stand in the address."""
        return urlsplit(self.url).netloc.rpartition("@")[2]


def static_token(token: str) -> Authorization:
    """Return the authorization by a token that never changes."""
    return lambda: f"Bearer {token}"


class TokenFile:
    """A token in a file that the kubelet renews: read again each minute, kept while the file cannot be read."""

    def __init__(self, path: Path, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._monotonic = monotonic
        self._read_at = float("-inf")
        self._header = ""

    def __call__(self) -> str:
        """Return the Authorization header; CredentialsError as long as no token could be read at all."""
        now = self._monotonic()
        if now - self._read_at >= TOKEN_SECONDS:
            try:
                self._header = f"Bearer {self._read()}"
            except CredentialsError as error:
                if not self._header:
                    raise
                LOG.warning("using the cached token: %s", error, extra={"fields": {"error": str(error)}})
            self._read_at = now
        return self._header

    def _read(self) -> str:
        token = read(self._path).decode("ascii", "replace").strip()
        if not token.isprintable() or not token.isascii() or not token:
            raise CredentialsError(f"{self._path}: not a valid token")
        return token


def read(path: Path) -> bytes:
    """Return what is in a file, or say why it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise CredentialsError(f"{path}: {(error.strerror or 'cannot be read').lower()}") from None


def tls(source: str, *, authorities: bytes | None, verify: bool = True) -> ssl.SSLContext:
    """Return how to trust a server: by these PEM authorities, or by the system's; `source` is named in errors."""
    try:
        context = ssl.create_default_context(cadata=authorities.decode("ascii", "replace") if authorities else None)
    except (ssl.SSLError, ValueError):
        raise CredentialsError(f"{source}: the certificate authority is not a PEM certificate") from None
    # Many clusters' own authorities lack the key identifiers that Python 3.13 insists on and no other client does.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def present(context: ssl.SSLContext, source: str, certificate: bytes, key: bytes) -> None:
    """Let `context` present a client certificate (PEM); `source` is named in errors."""
    with tempfile.NamedTemporaryFile() as file:  # the ssl module reads files only; this one is private and short-lived
        file.write(certificate + b"\n" + key)
        file.flush()
        try:
            context.load_cert_chain(file.name, password=lambda: b"")  # never ask on the terminal
        except ssl.SSLError:
            raise CredentialsError(f"{source}: the client certificate and its key are no pair in PEM") from None
