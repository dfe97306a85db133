"""Keys, certificates, tokens and kubeconfig files of one test control plane."""

import base64
import ipaddress
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509.oid import NameOID

# Who may log in with a token, and the groups each is in. The last two have no rights until a test gives them some.
USERS = {
    "admin": "system:masters",
    "hollow-kubelet": "system:masters",
    "system:kube-controller-manager": "",
    "system:kube-scheduler": "",
    "alice": "developers",
    "bob": "",
}
LIFETIME = timedelta(days=365)


@dataclass(frozen=True)
class Credentials:
    """Paths of the files, and the token of each user."""

    ca: Path
    certificate: Path
    key: Path
    service_account_key: Path
    service_account_public_key: Path
    token_file: Path
    tokens: Mapping[str, str]


def make_credentials(directory: Path) -> Credentials:
    """Write a CA, the API server's pair, the key that signs ServiceAccount tokens and the file of tokens."""
    directory.mkdir()
    made = Credentials(
        ca=directory / "ca.crt",
        certificate=directory / "apiserver.crt",
        key=directory / "apiserver.key",
        service_account_key=directory / "sa.key",
        service_account_public_key=directory / "sa.pub",
        token_file=directory / "tokens.csv",
        tokens={user: secrets.token_hex(16) for user in USERS},
    )
    ca_key, server_key, service_account_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(3))
    ca = _certificate_authority(ca_key)
    made.ca.write_bytes(ca.public_bytes(Encoding.PEM))
    made.certificate.write_bytes(_serving_certificate(ca, ca_key, server_key).public_bytes(Encoding.PEM))
    _write_key(made.key, server_key)
    _write_key(made.service_account_key, service_account_key)
    public = service_account_key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    made.service_account_public_key.write_bytes(public)
    made.token_file.write_text("".join(f'{made.tokens[user]},{user},{user},"{USERS[user]}"\n' for user in USERS))
    return made


def write_kubeconfig(path: Path, *, url: str, ca: Path, user: str, token: str, namespace: str = "default") -> Path:
    """Write a kubeconfig of one context that needs no other file and is readable by its owner only."""
    ca_data = base64.b64encode(ca.read_bytes()).decode()
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "controlplane", "cluster": {"server": url, "certificate-authority-data": ca_data}}],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [
            {"name": "controlplane", "context": {"cluster": "controlplane", "user": user, "namespace": namespace}}
        ],
        "current-context": "controlplane",
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return path


def _certificate_authority(key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    name = _name("controlplane-ca")
    return (
        _builder(name, name, key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )


def _serving_certificate(
    ca: x509.Certificate, ca_key: ec.EllipticCurvePrivateKey, key: ec.EllipticCurvePrivateKey
) -> x509.Certificate:
    addresses = [x509.IPAddress(ipaddress.ip_address(address)) for address in ("127.0.0.1", "10.96.0.1")]
    names = [x509.DNSName(name) for name in ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")]
    return (
        _builder(_name("kube-apiserver"), ca.subject, key.public_key())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([x509.OID_SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([*addresses, *names]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
        .sign(ca_key, hashes.SHA256())
    )


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + LIFETIME)
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
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


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    path.touch(mode=0o600)
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()))
