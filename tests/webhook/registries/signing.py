"""Signs images as cosign does: sigstore bundles and legacy payloads."""

import base64
import hashlib
import json
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256, SHA384
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from webhook.policies._signatures import SIGN_PREDICATE, PublicKey

SigningKey = ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey | rsa.RSAPrivateKey
PAYLOAD_TYPE = "application/vnd.in-toto+json"
BUNDLE = "application/vnd.dev.sigstore.bundle.v0.3+json"


def pem(key: SigningKey) -> str:
    """Return the public key in the format of cosign.pub."""
    public = key.public_key()
    return public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def key_id(public: PublicKey) -> str:
    """Return the id of a key as in bundles."""
    der = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return base64.b64encode(hashlib.sha256(der).digest()).decode()


def signature(key: SigningKey, data: bytes) -> bytes:
    """Sign data with the algorithm that cosign uses for a key."""
    if isinstance(key, ec.EllipticCurvePrivateKey):
        return key.sign(data, ec.ECDSA(SHA384() if key.curve.name == "secp384r1" else SHA256()))
    if isinstance(key, ed25519.Ed25519PrivateKey):
        return key.sign(data)
    return key.sign(data, padding.PKCS1v15(), SHA256())


def bundle(
    key: SigningKey,
    digest: str,
    predicate_type: str = SIGN_PREDICATE,
    predicate: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a sigstore bundle (v0.3) with a statement about a digest."""
    statement = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"digest": {"sha256": digest.removeprefix("sha256:")}}],
        "predicateType": predicate_type,
        "predicate": predicate or {},
    }
    payload = json.dumps(statement).encode()
    kind = PAYLOAD_TYPE.encode()
    signed = b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)
    return {
        "mediaType": BUNDLE,
        "verificationMaterial": {"publicKey": {"hint": key_id(key.public_key())}},
        "dsseEnvelope": {
            "payload": base64.b64encode(payload).decode(),
            "payloadType": PAYLOAD_TYPE,
            "signatures": [{"sig": base64.b64encode(signature(key, signed)).decode()}],
        },
    }


def legacy(key: SigningKey, digest: str, name: str = "") -> tuple[str, str]:
    """Return a simple signing payload about a digest, and its signature in base64."""
    payload = json.dumps(
        {
            "critical": {
                "identity": {"docker-reference": name},
                "image": {"docker-manifest-digest": digest},
                "type": "cosign container image signature",
            },
            "optional": None,
        }
    )
    return payload, base64.b64encode(signature(key, payload.encode())).decode()
