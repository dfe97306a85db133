"""Verify signatures of images by public key: sigstore bundles (v0.3) and cosign's legacy format.

Sources: cosign's specs/BUNDLE_SPEC.md and specs/SIGNATURE_SPEC.md, the DSSE protocol
(secure-systems-lab/dsse) and in-toto's Statement v1.
"""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import msgspec
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256, SHA384
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_public_key,
)

from config.image_references import ImageReference, try_parse_image
from webhook.engine.image_look_ups import Attached, SignatureDocument

SIGN_PREDICATE = "https://sigstore.dev/cosign/sign/v1"
KEYLESS = "it is keyless (signed by a certificate), which is not supported"
CURVES = {"secp256r1": SHA256, "secp384r1": SHA384}

PublicKey = ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey | rsa.RSAPublicKey


@dataclass(frozen=True, slots=True)
class VerifyingKey:
    """A public key, and its id: the SHA-256 of its DER form in base64, as bundles name keys."""

    id: str
    key: PublicKey = field(compare=False)


@dataclass(frozen=True, slots=True)
class SignedStatement:
    """A verified statement about an image: its predicate type, its predicate, and its signers."""

    predicate_type: str
    predicate: Mapping[str, Any]
    keys: frozenset[str]


class UnusableSignatureError(ValueError):
    """A document that is not a valid signature of the image; the text is the reason."""


Verified = tuple[tuple[SignedStatement, ...], tuple[str, ...]]


@lru_cache(maxsize=256)
def verifying_key(pem: str) -> VerifyingKey:
    """Parse a public key in PEM. Raises ValueError if it is not a supported one."""
    if "PRIVATE KEY" in pem:
        raise ValueError(
            "expected its public key (cosign.pub). If it was published, replace the pair"
        )
    try:
        key = load_pem_public_key(pem.encode())
    except (ValueError, UnsupportedAlgorithm) as error:
        raise ValueError("expected a public key in PEM: the text of cosign.pub") from error
    is_other_curve = isinstance(key, ec.EllipticCurvePublicKey) and key.curve.name not in CURVES
    if is_other_curve or not isinstance(
        key, ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey | rsa.RSAPublicKey
    ):
        raise ValueError("expected a key of ECDSA P-256 or P-384, Ed25519 or RSA")
    der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return VerifyingKey(base64.b64encode(hashlib.sha256(der).digest()).decode(), key)


def statements(
    attached: Attached, image: ImageReference, keys: tuple[VerifyingKey, ...]
) -> Verified:
    """Return the statements about `image` that `keys` signed, and why other documents do not count.

    `image` has a digest.
    """
    verified: Verified | None = attached.verified.get((image, keys))
    if verified is not None:
        return verified
    signed, rejected = list[SignedStatement](), list[str]()
    for document in attached.documents:
        try:
            signed.append(_statement(document, image, keys))
        except UnusableSignatureError as error:
            rejected.append(str(error))
    answer = tuple(signed), tuple(dict.fromkeys(rejected))
    attached.verified[image, keys] = answer
    return answer


def _statement(
    document: SignatureDocument, image: ImageReference, keys: Sequence[VerifyingKey]
) -> SignedStatement:
    try:
        if document.legacy_signature:
            return _legacy(document, image, keys)
        return _bundle(msgspec.json.decode(document.content), image, keys)
    except (KeyError, TypeError, AttributeError, IndexError, ValueError, RecursionError) as error:
        if isinstance(error, UnusableSignatureError):
            raise
        raise UnusableSignatureError("it is malformed") from None


def _legacy(
    document: SignatureDocument, image: ImageReference, keys: Sequence[VerifyingKey]
) -> SignedStatement:
    signature = base64.b64decode(document.legacy_signature, validate=True)
    signers = _signers(signature, document.content, keys)
    critical = json.loads(document.content)["critical"]
    if critical["image"]["docker-manifest-digest"] != image.digest:
        raise UnusableSignatureError("it signs another digest")
    name = critical["identity"]["docker-reference"]
    if name:
        signed = try_parse_image(
            name.partition("@")[0]
        )  # of Docker Hub, index.docker.io/library/redis
        of_image = image.registry, image.repository
        if signed is None or (signed.registry, signed.repository) != of_image:
            raise UnusableSignatureError(f"it signs an image of {name}")
    return SignedStatement(SIGN_PREDICATE, {}, signers)


def _bundle(
    bundle: Mapping[str, Any], image: ImageReference, keys: Sequence[VerifyingKey]
) -> SignedStatement:
    """Return the statement of a sigstore bundle: in a DSSE envelope with one signature."""
    key = bundle["verificationMaterial"].get("publicKey")
    if key is None:
        raise UnusableSignatureError(KEYLESS)
    envelope = bundle.get("dsseEnvelope")
    if envelope is None:
        raise UnusableSignatureError("it signs a file, not an image")
    payload = base64.b64decode(envelope["payload"], validate=True)
    kind = envelope["payloadType"].encode()
    signed = b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)
    (signature,) = envelope["signatures"]
    hint = f" ({key['hint']})" if key.get("hint") else ""
    signers = _signers(base64.b64decode(signature["sig"], validate=True), signed, keys, hint)
    statement = json.loads(payload)
    algorithm, _, value = (image.digest or "").partition(":")
    if not any(each["digest"].get(algorithm) == value for each in statement["subject"]):
        raise UnusableSignatureError("it signs another digest")
    predicate = statement.get("predicate")
    return SignedStatement(
        statement["predicateType"], predicate if isinstance(predicate, dict) else {}, signers
    )


def _signers(
    signature: bytes, signed: bytes, keys: Sequence[VerifyingKey], hint: str = ""
) -> frozenset[str]:
    """Return the ids of the keys that made a signature.

    Raises UnusableSignatureError if none did.
    """
    signers = frozenset(each.id for each in keys if _is_made_by(each.key, signature, signed))
    if not signers:
        raise UnusableSignatureError(f"it was signed by another key{hint}")
    return signers


def _is_made_by(key: PublicKey, signature: bytes, signed: bytes) -> bool:
    """Return whether `key` made the signature, by cosign's algorithm for it."""
    try:
        if isinstance(key, ec.EllipticCurvePublicKey):
            key.verify(signature, signed, ec.ECDSA(CURVES[key.curve.name]()))
        elif isinstance(key, ed25519.Ed25519PublicKey):
            key.verify(signature, signed)
        else:
            key.verify(signature, signed, padding.PKCS1v15(), SHA256())
    except InvalidSignature:
        return False
    return True
