"""Signatures: formats, keys, replays, attestations, and messages of denials."""

import base64
import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from config.faults import FaultsError, parse
from config.image_references import parse_image
from tests.webhook.registries.signing import SigningKey, bundle, legacy, pem
from webhook.engine.image_look_ups import Attached, SignatureDocument
from webhook.policies._signatures import SIGN_PREDICATE, statements, verifying_key
from webhook.policies.image_signatures import ImageSignatures

DIGEST, OTHER = f"sha256:{'a' * 64}", f"sha256:{'b' * 64}"
NAME = "registry.company.com/team/shop"
IMAGE = parse_image(f"{NAME}:1.4@{DIGEST}")
P256 = ec.generate_private_key(ec.SECP256R1())
KEYS: dict[str, SigningKey] = {
    "P-256": P256,
    "P-384": ec.generate_private_key(ec.SECP384R1()),
    "Ed25519": ed25519.Ed25519PrivateKey.generate(),
    "RSA": rsa.generate_private_key(65537, 2048),
}


def read(
    document: dict[str, Any] | tuple[str, str] | bytes, *keys: SigningKey
) -> tuple[list[str], tuple[str, ...]]:
    """Return the predicate types of signed statements, and the reasons why other documents do not count."""
    if isinstance(document, tuple):
        attached = SignatureDocument(document[0].encode(), document[1])
    else:
        content = document if isinstance(document, bytes) else json.dumps(document).encode()
        attached = SignatureDocument(content)
    named = tuple(verifying_key(pem(key)) for key in keys or (P256,))
    found, rejected = statements(Attached((attached,)), IMAGE, named)
    return [each.predicate_type for each in found], rejected


@pytest.mark.parametrize("kind", KEYS)
def test_each_kind_of_key_verifies_both_formats(kind):
    """ECDSA with P-256 and P-384, Ed25519, RSA."""
    key = KEYS[kind]
    assert read(bundle(key, DIGEST), key) == ([SIGN_PREDICATE], ())
    assert read(legacy(key, DIGEST, NAME), key) == ([SIGN_PREDICATE], ())


@pytest.mark.parametrize("name", ["index.docker.io/library/redis", "docker.io/library/redis"])
def test_a_legacy_signature_of_docker_hub_counts(name):
    """Cosign writes Docker Hub's older host name into the payload."""
    payload, signed = legacy(P256, DIGEST, name)
    attached = Attached((SignatureDocument(payload.encode(), signed),))
    image, keys = parse_image(f"redis@{DIGEST}"), (verifying_key(pem(P256)),)
    found, rejected = statements(attached, image, keys)
    assert ([each.predicate_type for each in found], rejected) == ([SIGN_PREDICATE], ())


def test_one_of_several_keys_is_enough():
    """The statement names the key that signed."""
    keys = tuple(verifying_key(pem(key)) for key in KEYS.values())
    content = json.dumps(bundle(P256, DIGEST)).encode()
    ((statement,), _) = statements(Attached((SignatureDocument(content),)), IMAGE, keys)
    assert statement.keys == {verifying_key(pem(P256)).id}


def changed(document: dict[str, Any], digest: str) -> dict[str, Any]:
    """Return a bundle with the payload of another digest and the old signature."""
    envelope = document["dsseEnvelope"]
    statement = json.loads(base64.b64decode(envelope["payload"]))
    statement["subject"] = [{"digest": {"sha256": digest.removeprefix("sha256:")}}]
    payload = base64.b64encode(json.dumps(statement).encode()).decode()
    return document | {"dsseEnvelope": envelope | {"payload": payload}}


def signed_twice(document):
    """Return a bundle with two signatures, which no valid bundle has."""
    envelope = document["dsseEnvelope"]
    return document | {"dsseEnvelope": envelope | {"signatures": 2 * envelope["signatures"]}}


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (bundle(P256, OTHER), "it signs another digest"),
        (legacy(P256, OTHER, NAME), "it signs another digest"),
        (legacy(P256, DIGEST, f"{NAME}-evil"), f"it signs an image of {NAME}-evil"),
        (legacy(P256, DIGEST, "Redis"), "it signs an image of Redis"),
        (legacy(KEYS["P-384"], DIGEST), "it was signed by another key"),
        (
            bundle(KEYS["Ed25519"], DIGEST),
            f"it was signed by another key ({verifying_key(pem(KEYS['Ed25519'])).id})",
        ),
        (
            changed(bundle(P256, OTHER), DIGEST),
            f"it was signed by another key ({verifying_key(pem(P256)).id})",
        ),
        (
            bundle(P256, DIGEST) | {"verificationMaterial": {"certificate": {"rawBytes": ""}}},
            "it is keyless (signed by a certificate), which is not supported",
        ),
        (
            {"verificationMaterial": {"publicKey": {}}, "messageSignature": {}},
            "it signs a file, not an image",
        ),
        ({}, "it is malformed"),
        (b"no JSON", "it is malformed"),
        (b"[" * 100_000, "it is malformed"),
        (("{}", "%%%"), "it is malformed"),
        (bundle(P256, DIGEST) | {"dsseEnvelope": []}, "it is malformed"),
        (signed_twice(bundle(P256, DIGEST)), "it is malformed"),
        # no text: a message with half a character could not be sent
        (
            bundle(KEYS["Ed25519"], DIGEST)
            | {"verificationMaterial": {"publicKey": {"hint": "\ud800"}}},
            "it is malformed",
        ),
    ],
    ids=[str(number) for number in range(16)],
)
def test_documents_that_do_not_count_are_reported_with_the_reason(document, reason):
    """Replays, other keys, keyless and malformed documents, each with its reason."""
    assert read(document) == ([], (reason,))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
        pem(ec.generate_private_key(ec.SECP521R1())),  # type: ignore[arg-type]
    ],
    ids=["nothing", "no key", "P-521"],
)
def test_other_keys_are_an_error(text):
    """These are a P-521 key, and text that is not a key."""
    with pytest.raises(ValueError, match=r"^expected a (public key in PEM|key of ECDSA P-256)"):
        verifying_key(text)


def test_a_private_key_in_a_policy_is_an_error_that_does_not_show_it():
    """Messages are logged, and printed by CI."""
    key = ec.generate_private_key(ec.SECP256R1())
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    params = {"signatures": [{"images": ["registry.company.com"], "keys": [private]}]}
    with pytest.raises(FaultsError) as error:
        parse(ImageSignatures, params)
    assert error.value.faults == (
        (
            "signatures[0].keys[0]",
            "a private key: expected its public key (cosign.pub). If it was published, replace "
            "the pair",
        ),
    )


def test_an_invalid_condition_is_an_error():
    """Line and column are those of the condition."""
    key = {"keys": [pem(P256)]}
    params = {
        "signatures": [{"images": ["registry.company.com"], **key}],
        "attestations": [{"type": "x", "conditions": ["predicate.a =="], **key}],
    }
    with pytest.raises(FaultsError) as error:
        parse(ImageSignatures, params)
    ((path, text),) = error.value.faults
    assert path == "attestations[0].conditions[0]"
    assert text.startswith('"predicate.a ==": line 1, column 15: ')


def test_a_minimum_that_no_image_can_have_is_an_error():
    """A key that is named twice counts once."""
    entry = {"images": ["registry.company.com"], "keys": 2 * [pem(P256)], "minimum": 2}
    with pytest.raises(FaultsError) as error:
        parse(ImageSignatures, {"signatures": [entry]})
    assert error.value.faults == (
        (
            "signatures[0].minimum",
            "2: more than there are different keys (1), so the images would always be denied; add "
            "keys, or lower it to 1",
        ),
    )
