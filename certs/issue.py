"""Issue a certificate authority, and serving certificates signed by it."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import (
    SECP256R1,
    EllipticCurvePrivateKey,
    generate_private_key,
)
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from certs.pair import CertificateError, KeyPair, read_certificates, read_key

CA_LIFETIME = timedelta(days=365)
SERVING_LIFETIME = timedelta(days=30)
BACKDATED = timedelta(hours=1)  # the clocks of other machines may be slow
MAX_COMMON_NAME = 64


def issue_ca(name: str, now: datetime, lifetime: timedelta = CA_LIFETIME) -> KeyPair:
    """Issue a self-signed authority that signs serving certificates but no authorities."""
    key = generate_private_key(SECP256R1())
    subject = _name(name)
    builder = (
        _builder(subject, key, now, now + lifetime)
        .issuer_name(subject)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
    )
    return _sign(builder, key, key)


def issue_serving(
    ca: KeyPair,
    dns_names: Iterable[str],
    ip_addresses: Iterable[str],
    now: datetime,
    lifetime: timedelta = SERVING_LIFETIME,
) -> KeyPair:
    """Issue a certificate for a TLS server, signed by `ca`.

    It expires no later than its authority.
    """
    authority, authority_key = _authority(ca, now)
    names = _subject_alternative_names(dns_names, ip_addresses)
    key = generate_private_key(SECP256R1())
    builder = (
        _builder(
            _name(str(names[0].value)), key, now, min(now + lifetime, authority.not_valid_after_utc)
        )
        .issuer_name(authority.subject)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(_authority_key_identifier(authority), critical=False)
    )
    return _sign(builder, key, authority_key)


def check_authority(ca: KeyPair, now: datetime) -> None:
    """Raise CertificateError if `ca` cannot sign serving certificates now."""
    _authority(ca, now)


def _authority(ca: KeyPair, now: datetime) -> tuple[x509.Certificate, EllipticCurvePrivateKey]:
    certificate, key = read_certificates(ca.certificate)[0], read_key(ca.key)
    if not isinstance(key, EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
        raise CertificateError("the authority's key does not belong to its certificate")
    if certificate.not_valid_after_utc <= now:
        raise CertificateError(
            f"the authority expired at {certificate.not_valid_after_utc:%Y-%m-%d %H:%M} UTC"
        )
    begins = certificate.not_valid_before_utc
    if begins > now:
        raise CertificateError(f"the authority is not valid before {begins:%Y-%m-%d %H:%M} UTC")
    try:
        constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
    except x509.ExtensionNotFound:
        constraints = None
    if constraints is None or not constraints.ca:
        raise CertificateError("the authority's certificate may not sign others")
    return certificate, key


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name[:MAX_COMMON_NAME])])


def _subject_alternative_names(
    dns_names: Iterable[str], ip_addresses: Iterable[str]
) -> list[x509.GeneralName]:
    try:
        names = [_dns_name(name) for name in dns_names]
        names += [x509.IPAddress(ip_address(address)) for address in ip_addresses]
    except ValueError as error:
        raise CertificateError(f"not a valid name in a certificate: {error}") from error
    if not names:
        raise CertificateError("a serving certificate needs at least one name")
    return names


def _dns_name(name: str) -> x509.GeneralName:
    """Return a DNS name, or an IP address if `name` is one: clients compare the two separately."""
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _authority_key_identifier(authority: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    try:
        identifier = authority.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    except x509.ExtensionNotFound as error:
        raise CertificateError(
            "the authority's certificate has no subject key identifier"
        ) from error
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier)


def _builder(
    subject: x509.Name, key: EllipticCurvePrivateKey, now: datetime, not_after: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(not_after)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _sign(
    builder: x509.CertificateBuilder, key: EllipticCurvePrivateKey, signer: EllipticCurvePrivateKey
) -> KeyPair:
    certificate = builder.sign(signer, SHA256())
    return KeyPair(
        certificate.public_bytes(Encoding.PEM),
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
    )
