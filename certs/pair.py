"""A certificate with its private key, parsed from PEM."""

from dataclasses import dataclass, field

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import load_pem_private_key


class CertificateError(ValueError):
    """An unusable certificate, key or bundle; the message is one line."""


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate with its intermediates, and its private key: `tls.crt` and `tls.key`."""

    certificate: bytes
    key: bytes = field(repr=False)


def read_certificates(pem: bytes, what: str = "certificate") -> list[x509.Certificate]:
    """Parse one or more certificates; the first one of a pair is the leaf."""
    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError as error:
        raise CertificateError(f"the {what} is not valid PEM") from error


def read_key(pem: bytes) -> PrivateKeyTypes:
    """Parse an unencrypted private key."""
    try:
        return load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise CertificateError("the private key is not valid, unencrypted PEM") from error
