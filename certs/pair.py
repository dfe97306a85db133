"""A certificate with its private key, parsed from PEM."""

from dataclasses import dataclass, field

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import load_pem_private_key


class CertificateError(ValueError):
    """A certificate, key or bundle that cannot be used, and why in one line."""


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate, followed by any intermediates, and its private key: what `tls.crt` and `tls.key` hold."""

    certificate: bytes
    key: bytes = field(repr=False)


def read_certificates(pem: bytes, what: str = "certificate") -> list[x509.Certificate]:
    """Read one or more certificates; the first of a pair's is its own."""
    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError as error:
        raise CertificateError(f"the {what} is not readable as PEM") from error


def read_key(pem: bytes) -> PrivateKeyTypes:
    """Read an unencrypted private key."""
    try:
        return load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise CertificateError("the private key is not readable as unencrypted PEM") from error
