"""Validation of certificate pairs."""

import ssl
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from certs import (
    CertificateError,
    KeyPair,
    check,
    expires,
    issue_ca,
    issue_serving,
    join,
    renewal_due,
)
from certs.check import check_served

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
NAME = "gatewright-webhook.gatewright-system.svc"
CA = issue_ca("gatewright", NOW)
OTHER = issue_ca("gatewright", NOW)
PAIR = issue_serving(CA, [NAME, "*.example.com"], ["127.0.0.1"], NOW)
STRANGER = issue_serving(OTHER, [NAME], [], NOW)


@pytest.mark.parametrize("name", [NAME, "127.0.0.1", "shop.example.com", None])
@pytest.mark.parametrize("bundle", [CA.certificate, join(OTHER.certificate, CA.certificate), None])
def test_a_good_pair_passes(bundle, name):
    """A pair is valid for each of its names, with each bundle that contains its CA."""
    check(PAIR, bundle, name, NOW)


def bare(name, key, *extensions, issuer=None, signed_by=None):
    """Return a certificate with only these extensions, as Helm and `openssl req -x509` make them."""
    subject, issuer = (
        x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, part)])
        for part in (name, issuer or name)
    )
    builder = x509.CertificateBuilder(
        issuer, subject, key.public_key(), x509.random_serial_number()
    )
    builder = builder.not_valid_before(NOW).not_valid_after(NOW + timedelta(days=365))
    for extension in extensions:
        builder = builder.add_extension(extension, critical=False)
    return builder.sign(signed_by or key, SHA256()).public_bytes(Encoding.PEM)


def test_certificates_that_the_api_server_accepts_pass():
    """It needs no key identifiers, no key usage of an authority, and trusts a server's own certificate."""
    names = x509.SubjectAlternativeName([x509.DNSName(NAME)])
    keys = [ec.generate_private_key(ec.SECP256R1()) for _ in range(2)]
    itself = bare(NAME, keys[0], names)
    check_served(itself, itself, NAME, NOW)
    authority = bare("ca", keys[0], x509.BasicConstraints(ca=True, path_length=None))
    served = bare(NAME, keys[1], names, issuer="ca", signed_by=keys[0])
    check_served(served, authority, NAME, NOW)
    usages = ("digital_signature", "content_commitment", "key_encipherment", "data_encipherment")
    signs = dict.fromkeys((*usages, "key_agreement", "key_cert_sign", "crl_sign"), False)
    usage = x509.KeyUsage(**signs | {"crl_sign": True}, encipher_only=False, decipher_only=False)
    authority = bare("ca", keys[0], x509.BasicConstraints(ca=True, path_length=None), usage)
    with pytest.raises(CertificateError, match="may not sign certificates"):
        check_served(served, authority, NAME, NOW)
    authority = bare("ca", keys[0], x509.BasicConstraints(ca=False, path_length=None))
    with pytest.raises(CertificateError, match="must be asserted in a CA certificate"):
        check_served(served, authority, NAME, NOW)


@pytest.mark.parametrize(
    ("pair", "bundle", "name", "now", "text"),
    [
        (
            KeyPair(PAIR.certificate, STRANGER.key),
            None,
            None,
            NOW,
            "does not belong to the certificate",
        ),
        (
            PAIR,
            None,
            None,
            NOW + timedelta(days=31),
            "the certificate expired at 2026-03-31 12:00 UTC",
        ),
        (PAIR, None, None, NOW - timedelta(hours=2), "not valid before 2026-03-01 11:00 UTC"),
        (PAIR, OTHER.certificate, None, NOW, "not verified by the CA bundle"),
        (PAIR, OTHER.certificate, NAME, NOW, "not verified by the CA bundle"),
        (
            PAIR,
            None,
            "elsewhere.svc",
            NOW,
            rf"the certificate is for {NAME}, .*127.0.0.1, not for elsewhere.svc",
        ),
        (PAIR, None, "a.b.example.com", NOW, "not for a.b.example.com"),
        (PAIR, CA.certificate, "127.0.0.2", NOW, "not for 127.0.0.2"),
        (PAIR, b"", NAME, NOW, "the CA bundle is not valid PEM"),
        (KeyPair(b"", PAIR.key), None, None, NOW, "the certificate is not valid PEM"),
        (
            KeyPair(PAIR.certificate[:200], PAIR.key),
            None,
            None,
            NOW,
            "the certificate is not valid PEM",
        ),
        (
            KeyPair(PAIR.certificate, PAIR.key[:100]),
            None,
            None,
            NOW,
            "the private key is not valid",
        ),
        (CA, CA.certificate, None, NOW, "the certificate has no name"),
    ],
)
def test_a_bad_pair_is_rejected_with_its_reason(pair, bundle, name, now, text):
    """Each error has a specific message."""
    with pytest.raises(CertificateError, match=text):
        check(pair, bundle, name, now)


@pytest.mark.parametrize("form", [PrivateFormat.TraditionalOpenSSL, PrivateFormat.PKCS8])
def test_keys_of_other_tools_are_read(form):
    """SEC1 and PKCS#8 keys, with either line ending, are accepted."""
    key = load_pem_private_key(PAIR.key, None).private_bytes(Encoding.PEM, form, NoEncryption())
    check(
        KeyPair(PAIR.certificate.replace(b"\n", b"\r\n"), key.replace(b"\n", b"\r\n")),
        CA.certificate,
        NAME,
        NOW,
    )


@settings(max_examples=25, deadline=None)
@given(lifetime=st.timedeltas(min_value=timedelta(hours=1), max_value=timedelta(days=3650)))
def test_renewal_is_due_at_two_thirds_of_the_life(lifetime):
    """It is due from two thirds on, not a minute earlier."""
    certificate = issue_ca("gatewright", NOW, lifetime).certificate
    due = NOW - timedelta(hours=1) + (lifetime + timedelta(hours=1)) * 2 / 3
    assert not renewal_due(certificate, due - timedelta(minutes=1))
    assert renewal_due(certificate, due + timedelta(minutes=1))
    assert expires(certificate) == (NOW + lifetime).replace(microsecond=0)


def shake_hands(pair: KeyPair, bundle: bytes, name: str, directory) -> None:
    """Run a TLS handshake between a client that trusts `bundle` and a server that has `pair`."""
    (directory / "tls.crt").write_bytes(pair.certificate)
    (directory / "tls.key").write_bytes(pair.key)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(directory / "tls.crt", directory / "tls.key")
    client = ssl.create_default_context(cadata=bundle.decode())
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = client.wrap_bio(to_client, to_server, server_hostname=name)
    theirs = server.wrap_bio(to_server, to_client, server_side=True)
    open_sides = [ours, theirs]
    while open_sides:
        for side in list(open_sides):
            try:
                side.do_handshake()
                open_sides.remove(side)
            except ssl.SSLWantReadError:
                continue


@pytest.fixture(scope="module")
def today():
    """Pairs that are valid by this machine's clock, which OpenSSL uses."""
    now = datetime.now(UTC)
    old, new = issue_ca("gatewright", now), issue_ca("gatewright", now)
    return old, new, issue_serving(new, [NAME], ["127.0.0.1"], now)


@pytest.mark.parametrize("name", [NAME, "127.0.0.1"])
def test_openssl_agrees_during_a_rotation(today, tmp_path, name):
    """A client with the old and the new CA of the same name accepts a leaf of the new one."""
    old, new, pair = today
    shake_hands(pair, join(old.certificate, new.certificate), name, tmp_path)


@pytest.mark.parametrize(("trusted", "name"), [("old", NAME), ("new", "elsewhere.svc")])
def test_openssl_rejects_what_the_check_rejects(today, tmp_path, trusted, name):
    """Both reject a foreign CA and a missing name."""
    old, new, pair = today
    bundle = (old if trusted == "old" else new).certificate
    with pytest.raises(CertificateError):
        check(pair, bundle, name, datetime.now(UTC))
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(pair, bundle, name, tmp_path)
