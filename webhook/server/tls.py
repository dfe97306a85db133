"""The serving certificate as a TLS context, replaced once a new one is verified."""

import logging
import ssl
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from kube.endpoint import load_pair
from webhook.server.certificate_pairs import PairFiles, PairSecret
from webhook.server.metrics import WebhookMetrics
from webhook.server.tls_records import CountedRecords

# OpenSSL's X509_V_FLAG_NO_CHECK_TIME, which the ssl module does not define.
NO_CHECK_TIME = 0x200000

log = logging.getLogger("gatewright.webhook.tls")


class ServingCertificate:
    """The serving pair of a source, reloaded when it changes.

    `context` is for the listener: each handshake uses the pair in force, so a swap drops no
    connection. Without a pair, handshakes fail; an invalid new pair leaves the old one in force.
    """

    def __init__(
        self,
        source: PairFiles | PairSecret,
        metrics: WebhookMetrics,
        *,
        client_ca: Path | None = None,
        minimum_version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._source = source
        self._client_ca = client_ca
        self._metrics = metrics
        self._minimum_version = minimum_version
        self._now = now
        self._problem: str | None = f"{source}: not read yet"
        self._seen: int | None = None  # hash of the pair that was read last
        self._in_force: ssl.SSLContext | None = None
        self._expires: datetime | None = None
        self._authorities: bytes | None = None
        self.on_new_authorities: Callable[[], None] = lambda: None
        """Called when the authorities of clients were replaced."""
        self.context = self._new_context()
        self.context.sni_callback = self._choose
        source.subscribe(self.refresh)

    def refresh(self) -> None:
        """Load the current pair of the source, if it is new and valid.

        Store and log the error of an invalid one.
        """
        try:
            certificate, key = self._source.read()
            authorities = self._client_ca.read_bytes() if self._client_ca else b""
            previous, self._seen = self._seen, hash((certificate, key, authorities))
            if previous == self._seen and self._problem is None:
                return
            self._take(certificate, key, authorities)
        except (ValueError, OSError) as error:
            self._metrics.certificate_errors.inc()
            problem = _reason(error)
            if problem != self._problem:
                log.warning(
                    "the serving certificate cannot be used, %s: %s",
                    "the last good one stays in force" if self._in_force else "none is in force",
                    problem,
                    extra={"fields": self._fields()},
                )
            self._problem = problem
        else:
            self._problem = None
            log.info("serving certificate in force", extra={"fields": self._fields()})
        self._metrics.certificate_reads.inc()

    def ready(self) -> str | None:
        """Return why no client can connect, or None."""
        if self._expires is None:
            return self._problem
        if self._expires < self._now():
            return f"the certificate expired at {self._expires:%Y-%m-%d %H:%M} UTC"
        return None

    def _take(self, certificate: bytes, key: bytes, authorities: bytes) -> None:
        context, now = self._new_context(), self._now()
        if self._client_ca is not None:
            try:
                context.load_verify_locations(cadata=authorities.decode("ascii", "replace"))
            except (ssl.SSLError, ValueError):
                raise ValueError(f"{self._client_ca}: no CA certificates of clients") from None
        try:
            load_pair(context, certificate, key)
            begins, ends = validity(context, certificate)
            if not begins <= now <= ends:
                raise ValueError(f"the certificate is valid from {begins} to {ends}")
        except (ssl.SSLError, ValueError):
            # imported here: cryptography takes 10 MB, and a valid pair does not need it
            from certs import KeyPair, check

            # raises an error with a better message
            check(KeyPair(certificate, key), None, None, now)
            raise
        self._in_force = context
        self._expires = ends
        before, self._authorities = self._authorities, authorities
        if before not in {None, authorities}:
            self.on_new_authorities()
        self._metrics.certificate_expiry.set(ends.timestamp())

    def _new_context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = self._minimum_version
        context.num_tickets = 0  # the API server does not resume sessions
        context.set_alpn_protocols(["http/1.1"])
        context.sslobject_class = CountedRecords
        if self._client_ca is not None:  # a certificate of another CA fails the handshake
            context.verify_mode = ssl.CERT_OPTIONAL
        return context

    def _choose(
        self, connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext
    ) -> int | None:
        if self._in_force is None:
            return ssl.ALERT_DESCRIPTION_INTERNAL_ERROR
        connection.context = self._in_force
        return None

    def _fields(self) -> dict[str, str]:
        expiry = {"expires": self._expires.isoformat()} if self._expires else {}
        return {"from": str(self._source)} | expiry


def validity(context: ssl.SSLContext, certificate: bytes) -> tuple[datetime, datetime]:
    """Return the validity of a served certificate, by a handshake in memory.

    Raises SSLError or ValueError if the server presents another one, or if a client that trusts it
    cannot connect.
    """
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname = False
    trusting.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN | NO_CHECK_TIME
    trusting.load_verify_locations(cadata=certificate.decode("ascii", "replace"))
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = context.wrap_bio(to_server, to_client, server_side=True)
    client = trusting.wrap_bio(to_client, to_server)
    for end in (client, server, client):
        with suppress(ssl.SSLWantReadError):
            end.do_handshake()
    peer = client.getpeercert() or {}
    seconds = (ssl.cert_time_to_seconds(str(peer[name])) for name in ("notBefore", "notAfter"))
    begins, ends = (datetime.fromtimestamp(each, UTC) for each in seconds)
    return begins, ends


def _reason(error: ValueError | OSError) -> str:
    if isinstance(error, ssl.SSLError):
        return f"OpenSSL refuses the pair ({error.reason})"
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}"
    return str(error)
