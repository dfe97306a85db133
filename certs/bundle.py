"""A CA bundle: the authorities that a client trusts at the same time."""

from collections.abc import Iterable
from datetime import datetime

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from certs.pair import read_certificates


def join(*bundles: bytes) -> bytes:
    """Return the authorities of all bundles, each once, in the order of their first appearance."""
    return _bundle(
        certificate
        for bundle in bundles
        if bundle.strip()
        for certificate in read_certificates(bundle, "CA bundle")
    )


def prune(bundle: bytes, now: datetime) -> bytes:
    """Return the bundle without the authorities that have expired."""
    if not bundle.strip():
        return b""
    return _bundle(
        certificate
        for certificate in read_certificates(bundle, "CA bundle")
        if certificate.not_valid_after_utc > now
    )


def _bundle(certificates: Iterable[x509.Certificate]) -> bytes:
    return b"".join(
        dict.fromkeys(certificate.public_bytes(Encoding.PEM) for certificate in certificates)
    )
