"""Look-ups of images in registries: the digest of a tag, and documents attached to a digest."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from webhook.engine import LACKED, NotLookedUpError, Request

DIGESTS = "image_digests"  # look-up: by reference with a tag, its digest
SIGNATURES = "image_signatures"  # look-up: by reference with a digest, what is attached to it
RUNNING = "running_digests"  # by name of a Pod's container, the digest it runs; the audit has it
IMAGE_LOOK_UPS = frozenset({DIGESTS, SIGNATURES})


@dataclass(frozen=True, slots=True)
class SignatureDocument:
    """A bundle, or a legacy payload with its signature in base64."""

    content: bytes
    legacy_signature: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Attached:
    """The documents attached to one image, with a cache of their verification."""

    documents: tuple[SignatureDocument, ...] = ()
    verified: dict[Any, Any] = field(default_factory=dict, repr=False)


def read(request: Request, look_up: str, references: Iterable[str]) -> dict[str, Any]:
    """Return the look-ups of images. Raises NotLookedUpError if any is missing.

    All look-ups are requested before a missing one ends the judgement, so that they are read in
    parallel.
    """
    looked_up = request.lookup(look_up)
    results = {each: looked_up.get(each) for each in references}
    if any(answer is None for answer in results.values()):
        raise NotLookedUpError(look_up)
    return results


def require_digests(request: Request) -> None:
    """Raise NotLookedUpError if image-pins lacked digests: without one, nothing is decided."""
    if DIGESTS in request.looked_up.get(LACKED, ()):
        raise NotLookedUpError(DIGESTS)
