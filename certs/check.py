"""Check whether a serving pair is valid and when to renew it."""

from datetime import datetime
from ipaddress import ip_address

from cryptography import x509
from cryptography.x509.verification import (
    Criticality,
    ExtensionPolicy,
    Policy,
    PolicyBuilder,
    Store,
    VerificationError,
)

from certs.pair import CertificateError, KeyPair, read_certificates, read_key

RENEWED_AFTER = 2 / 3  # of a certificate's life


def check(pair: KeyPair, ca_bundle: bytes | None, dns_name: str | None, now: datetime) -> None:
    """Raise CertificateError if a client of `dns_name` that trusts `ca_bundle` rejects `pair`.

    Without a bundle the issuer is not checked; without a name the subject is not. `dns_name` may be
    an IP address.
    """
    leaf = read_certificates(pair.certificate)[0]
    if read_key(pair.key).public_key() != leaf.public_key():
        raise CertificateError("the private key does not belong to the certificate")
    check_served(pair.certificate, ca_bundle, dns_name, now)


def check_served(
    certificate: bytes, ca_bundle: bytes | None, dns_name: str | None, now: datetime
) -> None:
    """Raise CertificateError if such a client would reject a certificate and its intermediates."""
    leaf, *intermediates = read_certificates(certificate)
    _check_dates(leaf, now)
    if dns_name is not None and not _carries(leaf, dns_name):
        raise CertificateError(
            f"the certificate is for {_names(leaf) or 'no name'}, not for {dns_name}"
        )
    if ca_bundle is not None:
        _check_issuer(leaf, intermediates, read_certificates(ca_bundle, "CA bundle"), dns_name, now)


def is_for(certificate: bytes, dns_name: str) -> bool:
    """Return whether a certificate names a server."""
    return _carries(read_certificates(certificate)[0], dns_name)


def renewal_time(certificate: bytes) -> datetime:
    """Return the time at which two thirds of the certificate's life are over."""
    leaf = read_certificates(certificate)[0]
    life = leaf.not_valid_after_utc - leaf.not_valid_before_utc
    return leaf.not_valid_before_utc + life * RENEWED_AFTER


def renewal_due(certificate: bytes, now: datetime) -> bool:
    """Return whether the certificate is due for renewal."""
    return now >= renewal_time(certificate)


def expires(certificate: bytes) -> datetime:
    """Return when the certificate, the first of its chain, expires."""
    return read_certificates(certificate)[0].not_valid_after_utc


def _check_dates(leaf: x509.Certificate, now: datetime) -> None:
    if leaf.not_valid_after_utc < now:
        raise CertificateError(
            f"the certificate expired at {leaf.not_valid_after_utc:%Y-%m-%d %H:%M} UTC"
        )
    if leaf.not_valid_before_utc > now:
        raise CertificateError(
            f"the certificate is not valid before {leaf.not_valid_before_utc:%Y-%m-%d %H:%M} UTC"
        )


def _check_issuer(
    leaf: x509.Certificate,
    intermediates: list[x509.Certificate],
    authorities: list[x509.Certificate],
    dns_name: str | None,
    now: datetime,
) -> None:
    name = _subject(dns_name) if dns_name is not None else next(iter(_subjects(leaf)), None)
    if name is None:
        raise CertificateError("the certificate has no name")
    policies = {"ca_policy": _authority_policy(), "ee_policy": _server_policy()}
    builder = PolicyBuilder().store(Store(authorities)).time(now).extension_policies(**policies)
    verifier = builder.build_server_verifier(name)
    try:
        verifier.verify(leaf, intermediates)
    except VerificationError as error:
        raise CertificateError(
            f"the certificate is not verified by the CA bundle: {error}"
        ) from error


# The API server verifies as Go does, which is less strict than the Web's rules: certificates that
# Helm and `openssl req` sign have no key identifiers, and some authorities no key usage.
def _authority_policy() -> ExtensionPolicy:
    return (
        ExtensionPolicy.webpki_defaults_ca()
        .may_be_present(x509.AuthorityKeyIdentifier, Criticality.AGNOSTIC, None)
        .require_present(x509.BasicConstraints, Criticality.AGNOSTIC, None)
        .may_be_present(x509.KeyUsage, Criticality.AGNOSTIC, _signs_certificates)
    )


def _server_policy() -> ExtensionPolicy:
    return (
        ExtensionPolicy.webpki_defaults_ee()
        .may_be_present(x509.AuthorityKeyIdentifier, Criticality.AGNOSTIC, None)
        .may_be_present(x509.BasicConstraints, Criticality.AGNOSTIC, None)
        .may_be_present(x509.KeyUsage, Criticality.AGNOSTIC, None)
    )


def _signs_certificates(_: Policy, __: x509.Certificate, usage: x509.KeyUsage | None) -> None:
    if usage is not None and not usage.key_cert_sign:
        raise ValueError("the key of an authority may not sign certificates")


def _subject(name: str) -> x509.DNSName | x509.IPAddress:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _subjects(leaf: x509.Certificate) -> list[x509.DNSName | x509.IPAddress]:
    try:
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    return [name for name in names if isinstance(name, x509.DNSName | x509.IPAddress)]


def _names(leaf: x509.Certificate) -> str:
    return ", ".join(str(name.value) for name in _subjects(leaf))


def _carries(leaf: x509.Certificate, dns_name: str) -> bool:
    subject = _subject(dns_name)
    parent = dns_name.partition(".")[2]
    return any(
        name == subject or (parent and name.value == f"*.{parent}") for name in _subjects(leaf)
    )
