"""Images are pinned by digest.

Why: a tag can be moved to another image after the image was reviewed; a digest cannot.

Judged: the images of all containers and of image volumes, and the image of a WebApp.

Allowed: `image: registry.company.com/shop@sha256:…`, with or without a tag.
Denied:  `image: registry.company.com/shop:1.4`.
Fix: add the digest (`crane digest IMAGE`, or `docker buildx imagetools inspect IMAGE`).
"""

from webhook.engine import Params, Policy, Request, Violations
from webhook.engine.image_look_ups import require_digests
from webhook.policies._images import image_violations

FAULT = "has no digest", "add its digest: @sha256:…"


def validate(request: Request, params: Params) -> Violations:
    """Yield one violation for each image without a digest."""
    for violation in image_violations(
        request, "images must be named by digest", lambda image: None if image.digest else FAULT
    ):
        require_digests(request)
        yield violation


POLICY = Policy("image-digests", validate=validate, category="images")
