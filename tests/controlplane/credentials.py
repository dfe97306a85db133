"""The certificates, keys and kubeconfigs of the components and users of one test control plane."""

import base64
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.controlplane.pki import CertificateAuthority, signing_pair

# Users with a token, each with its group. The last two have no permissions until a test grants some.
USERS = {
    "admin": "system:masters",
    "hollow-kubelet": "system:masters",
    "system:kube-controller-manager": "",
    "system:kube-scheduler": "",
    "alice": "developers",
    "bob": "",
}


@dataclass(frozen=True)
class Credentials:
    """Paths of the files, the users' tokens, and the authority, which can issue more certificates."""

    authority: CertificateAuthority
    ca: Path
    certificate: Path
    key: Path
    service_account_key: Path
    service_account_public_key: Path
    token_file: Path
    tokens: Mapping[str, str]


def make_credentials(directory: Path, address: str) -> Credentials:
    """Write the CA, the API server's pair, the signing pair of ServiceAccount tokens, and the token file."""
    directory.mkdir()
    authority = CertificateAuthority()
    certificate, key = authority.serving_certificate(address)
    service_account_key, service_account_public_key = signing_pair()
    tokens = {user: secrets.token_hex(16) for user in USERS}
    lines = [f'{tokens[user]},{user},{user},"{group}"\n' for user, group in USERS.items()]
    return Credentials(
        authority=authority,
        ca=_written(directory / "ca.crt", authority.pem),
        certificate=_written(directory / "apiserver.crt", certificate),
        key=_written(directory / "apiserver.key", key),
        service_account_key=_written(directory / "sa.key", service_account_key),
        service_account_public_key=_written(directory / "sa.pub", service_account_public_key),
        token_file=_written(directory / "tokens.csv", "".join(lines).encode()),
        tokens=tokens,
    )


def token_user(token: str) -> dict[str, str]:
    """Return the user entry of a kubeconfig that logs in with a token."""
    return {"token": token}


def certificate_user(certificate: bytes, key: bytes) -> dict[str, str]:
    """Return the user entry of a kubeconfig that logs in with a client certificate."""
    return {"client-certificate-data": _base64(certificate), "client-key-data": _base64(key)}


def write_kubeconfig(
    path: Path, *, url: str, ca: Path, name: str, user: dict[str, str], namespace: str
) -> Path:
    """Write a kubeconfig of one context that needs no other file and is readable by its owner only."""
    cluster = {"server": url, "certificate-authority-data": _base64(ca.read_bytes())}
    context = {"cluster": "controlplane", "user": name, "namespace": namespace}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "controlplane", "cluster": cluster}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": "controlplane", "context": context}],
        "current-context": "controlplane",
    }
    path.parent.mkdir(exist_ok=True)
    return _written(path, yaml.safe_dump(content, sort_keys=False).encode())


def _written(path: Path, content: bytes) -> Path:
    path.touch(mode=0o600)
    path.write_bytes(content)
    return path


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
