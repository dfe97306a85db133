"""Images are signed by the keys of those who may build them.

Why: a registry says where an image comes from, not that it is the image that was built. A signature
does.

Judged: the images of all containers and of image volumes, and the image of a WebApp, where an entry
of `signatures` names them; `images` are named as in image-registries. What is verified is a digest:
an image without one is denied, unless the policy image-pins adds the digest first; the audit
verifies the digest that a Pod runs. On an update, images that stay as they are are not verified
again.

Formats, found in this order: sigstore bundles (cosign v3) by the registry's referrers API or by the
tag `sha256-…`, and cosign's legacy tag `sha256-….sig`. Keys are ECDSA P-256 or P-384, Ed25519 or
RSA. Keyless signatures (certificates of Fulcio) are not supported.

Allowed: `image: registry.company.com/shop@sha256:…` with `minimum` signatures by different `keys`.
Denied:  the same image without a signature, signed by another key, or with a signature of another
         digest or repository. Where the registry does not answer, the policy's failurePolicy
         decides.
Fix: sign the image: `cosign sign --key cosign.key IMAGE@DIGEST`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from config.image_references import ImageReference, try_parse_image
from webhook.engine import Params, Policy, Request, Violation, Violations
from webhook.engine.containers import Container, Image
from webhook.engine.image_look_ups import RUNNING, SIGNATURES, Attached, read, require_digests
from webhook.engine.policy import RuleError
from webhook.engine.violation import shown
from webhook.policies._images import Registry, RegistryName, changed_images, parse_registry

if TYPE_CHECKING:
    from webhook.cel.program import Program
    from webhook.policies._signatures import SignedStatement, VerifyingKey

RULE = "images must be signed"
ADD_DIGEST = "add its digest (@sha256:…), or let the policy image-pins add it"
NAME_IT = "use a signed image, or add its registry and keys to the policy"


def _key(pem: str) -> "VerifyingKey":
    # Imported here: only a policy set that names this policy needs cryptography.
    from webhook.policies._signatures import verifying_key

    return verifying_key(pem)


def _condition(text: str) -> "Program":
    # Imported here, for the same reason.
    from webhook.cel.attestations import compile_condition

    return compile_condition(text)


KeyPem = Annotated[str, AfterValidator(lambda text: _key(text) and text)]
ConditionText = Annotated[str, AfterValidator(lambda text: _condition(text) and text)]


class SigningKeys(Params):
    """The keys whose signatures count."""

    keys: list[KeyPem] = Field(min_length=1, description="public keys in PEM, such as cosign.pub")

    @cached_property
    def verifying_keys(self) -> "tuple[VerifyingKey, ...]":
        """The keys, parsed."""
        return tuple(map(_key, self.keys))


class SignedImages(SigningKeys):
    """Images, and the keys that must have signed them."""

    images: list[RegistryName] = Field(min_length=1, description="registries, or parts of them")
    minimum: int = Field(1, ge=1, description="how many of the keys must have signed")

    @field_validator("minimum")
    @classmethod
    def _is_possible(cls, minimum: int, info: ValidationInfo) -> int:
        keys = len({_key(each) for each in info.data.get("keys", ())})
        if 0 < keys < minimum:
            raise ValueError(
                f"more than there are different keys ({keys}), so the images would always be "
                f"denied; add keys, or lower it to {keys}"
            )
        return minimum


class RequiredAttestation(SigningKeys):
    """A statement about images that one of the keys must have signed, such as their provenance."""

    type: str = Field(min_length=1, description="predicate type: https://slsa.dev/provenance/v1")
    conditions: list[ConditionText] = Field(
        [], description="CEL about `predicate`; all must be true"
    )


class ImageSignatures(Params):
    """The images that must be signed, and by which keys."""

    signatures: list[SignedImages] = Field(min_length=1, description="images with their keys")
    attestations: list[RequiredAttestation] = Field(
        [], description="statements that all these images need"
    )
    unsigned: Literal["allow", "deny"] = Field(
        "allow", description="whether images that no entry names are allowed"
    )

    @cached_property
    def registries(self) -> tuple[tuple[Registry, SignedImages], ...]:
        """Each registry with its entry, in order."""
        return tuple(
            (parse_registry(name), entry) for entry in self.signatures for name in entry.images
        )

    def entry(self, image: ImageReference) -> SignedImages | None:
        """Return the first entry that names an image."""
        for registry, entry in self.registries:
            if registry.holds(image):
                return entry
        return None


def validate(request: Request, params: ImageSignatures) -> Violations:
    """Yield a violation for each image without the signatures and attestations that it needs."""
    named = list[tuple[Image, ImageReference, SignedImages]]()
    running = request.looked_up.get(RUNNING, {})
    for container in changed_images(request):
        image = try_parse_image(container.text)
        if image is not None and not image.digest and isinstance(container.holder, Container):
            image = replace(image, digest=running.get(container.holder.name))
        entry = None if image is None else params.entry(image)
        if image is not None and image.digest and entry is not None:
            named.append((container, image, entry))
        elif entry is not None:
            require_digests(request)
            found = "has no digest, so what is verified may not be what is pulled"
            yield _violation(container, found, ADD_DIGEST)
        elif params.unsigned == "deny":
            yield _violation(container, "is named by no entry of signatures", NAME_IT)
    attached_to = read(request, SIGNATURES, (str(image) for _, image, _ in named)) if named else {}
    for container, image, entry in named:
        attached = attached_to[str(image)]
        if isinstance(attached, str):
            raise RuleError(f"{image}: {attached}")
        for lack, fix in _faults(image, attached, entry, params.attestations):
            runs = "" if str(image.digest) in container.text else f"(it runs {image.digest}) "
            yield _violation(container, f"{runs}{lack}", fix)


def _violation(image: Image, found: str, fix: str) -> Violation:
    found = f"{shown(image.text)} {found}"
    return image.holder.violation(image.field, image.text, RULE, fix, found=found)


def _faults(
    image: ImageReference,
    attached: Attached,
    entry: SignedImages,
    attestations: Sequence[RequiredAttestation],
) -> Iterator[tuple[str, str]]:
    """Yield each fault of an image, and the fix."""
    from webhook.policies._signatures import SIGN_PREDICATE, statements

    signed, rejected = statements(attached, image, entry.verifying_keys)
    signers = {key for each in signed if each.predicate_type == SIGN_PREDICATE for key in each.keys}
    name = f"{image.registry}/{image.repository}@{image.digest}"
    if len(signers) < entry.minimum:
        had = f"has {len(signers)} of {entry.minimum} signatures"
        what = "has no signature" if entry.minimum == 1 else had
        others = f"; found: {', '.join(rejected)}" if rejected else ""
        expected = ", ".join(each.id for each in entry.verifying_keys)
        fix = f"sign it: cosign sign --key cosign.key {name}"
        yield f"{what} by a key of the policy ({expected}){others}", fix
    for attestation in attestations:
        signed, _ = statements(attached, image, attestation.verifying_keys)
        of_this_type = [each for each in signed if each.predicate_type == attestation.type]
        options = f"--key cosign.key --type {attestation.type} --predicate FILE"
        fix = f"attest it: cosign attest {options} {name}"
        if not of_this_type:
            yield f"has no attestation {attestation.type} by a key of the policy", fix
        elif not any(_meets(statement, attestation) for statement in of_this_type):
            conditions = " and ".join(attestation.conditions)
            yield f"has no attestation {attestation.type} for which {conditions} is true", fix


def _meets(statement: "SignedStatement", attestation: RequiredAttestation) -> bool:
    from webhook.cel.attestations import is_true

    return all(is_true(each, statement.predicate) for each in attestation.conditions)


POLICY = Policy(
    "image-signatures",
    ImageSignatures,
    validate=validate,
    category="images",
    severity="high",
    needs=(SIGNATURES,),
)
