"""Contents of issued certificates."""

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
from cryptography.x509.oid import ExtendedKeyUsageOID
from hypothesis import given, settings
from hypothesis import strategies as st

from certs import CertificateError, KeyPair, issue_ca, issue_serving

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
CA = issue_ca("gatewright", NOW)
NAMES = ["gatewright-webhook", "gatewright-webhook.gatewright-system.svc"]


def read(pair: KeyPair) -> x509.Certificate:
    """Parse the certificate of a pair."""
    return x509.load_pem_x509_certificate(pair.certificate)


def test_an_authority_signs_certificates_and_no_further_authority():
    """The CA certificate may sign leaves only."""
    extensions = read(CA).extensions
    assert extensions.get_extension_for_class(x509.BasicConstraints).value == x509.BasicConstraints(
        True, 0
    )
    assert extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign


def test_a_serving_certificate_is_for_servers_of_its_names_only():
    """The certificate has names, addresses and the serverAuth usage, and cannot sign others."""
    leaf = read(issue_serving(CA, NAMES, ["127.0.0.1", "::1"], NOW))
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    usage = leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert names.get_values_for_type(x509.DNSName) == NAMES
    assert [str(address) for address in names.get_values_for_type(x509.IPAddress)] == [
        "127.0.0.1",
        "::1",
    ]
    assert list(usage) == [ExtendedKeyUsageOID.SERVER_AUTH]
    assert not leaf.extensions.get_extension_for_class(x509.BasicConstraints).value.ca


def test_a_host_that_is_an_address_becomes_an_address():
    """Clients compare 127.0.0.1 with addresses only."""
    leaf = read(issue_serving(CA, ["127.0.0.1", "localhost"], [], NOW))
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    assert [str(address) for address in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]


def test_keys_are_on_p256():
    """Both keys are on the curve whose handshakes are cheap."""
    for pair in (CA, issue_serving(CA, NAMES, [], NOW)):
        key = read(pair).public_key()
        assert isinstance(key, EllipticCurvePublicKey)
        assert isinstance(key.curve, SECP256R1)


def test_a_leaf_points_at_its_authority():
    """The authority key identifier of the leaf is the subject key identifier of the CA."""
    leaf = read(issue_serving(CA, NAMES, [], NOW)).extensions
    authority = read(CA).extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    assert (
        leaf.get_extension_for_class(x509.AuthorityKeyIdentifier).value.key_identifier
        == authority.digest
    )


def test_certificates_are_backdated_an_hour():
    """A client whose clock is an hour behind accepts them."""
    for pair in (CA, issue_serving(CA, NAMES, [], NOW)):
        assert read(pair).not_valid_before_utc == NOW - timedelta(hours=1)


def test_two_certificates_never_share_a_serial_number():
    """Serial numbers are random."""
    assert len({read(issue_serving(CA, NAMES, [], NOW)).serial_number for _ in range(10)}) == 10


@settings(max_examples=25, deadline=None)
@given(
    age=st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=364)),
    lifetime=st.timedeltas(min_value=timedelta(minutes=1), max_value=timedelta(days=800)),
)
def test_a_leaf_never_outlives_its_authority(age, lifetime):
    """A leaf expires no later than its CA."""
    leaf = read(issue_serving(CA, NAMES, [], NOW + age, lifetime))
    end = min(NOW + age + lifetime, read(CA).not_valid_after_utc)
    assert leaf.not_valid_after_utc == end.replace(microsecond=0)


OTHER_CA = issue_ca("other", NOW)


@pytest.mark.parametrize(
    ("ca", "dns_names", "ip_addresses", "now", "text"),
    [
        (CA, NAMES, [], NOW + timedelta(days=366), "the authority expired at 2027-03-01 12:00 UTC"),
        (CA, [], [], NOW, "a serving certificate needs at least one name"),
        (CA, [], ["127.0.0"], NOW, "not a valid name in a certificate"),
        (CA, ["bücher.example"], [], NOW, "not a valid name in a certificate"),
        (
            KeyPair(CA.certificate, OTHER_CA.key),
            NAMES,
            [],
            NOW,
            "the authority's key does not belong",
        ),
        (KeyPair(CA.certificate, b""), NAMES, [], NOW, "the private key is not valid"),
        (KeyPair(b"", CA.key), NAMES, [], NOW, "the certificate is not valid PEM"),
        (
            issue_serving(CA, NAMES, [], NOW),
            NAMES,
            [],
            NOW,
            "the authority's certificate may not sign others",
        ),
    ],
)
def test_invalid_input_is_an_error(ca, dns_names, ip_addresses, now, text):
    """Each error is a CertificateError with a specific message."""
    with pytest.raises(CertificateError, match=text):
        issue_serving(ca, dns_names, ip_addresses, now)


def test_a_long_name_is_still_a_valid_subject():
    """The subject is cut to X.509's limit; the alternative names have the whole name."""
    name = "gatewright-webhook." + "a" * 60 + ".svc"
    names = read(issue_serving(CA, [name], [], NOW)).extensions.get_extension_for_class(
        x509.SubjectAlternativeName
    )
    assert names.value.get_values_for_type(x509.DNSName) == [name]


def test_a_printed_pair_does_not_show_its_key():
    """The private key is not part of the repr."""
    assert b"PRIVATE KEY" in CA.key
    assert "PRIVATE" not in repr(CA)
