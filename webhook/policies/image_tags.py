"""Images have an explicit tag other than latest.

Why: a tag like `latest` moves: nodes may run different versions, and a rollback is impossible. An
image without a tag means `latest`. A digest pins the version, so an image with a digest may have
any tag.

Judged: the images of all containers and of image volumes, and the image of a WebApp.

Allowed: `image: registry.company.com/shop:1.4`; `image: nginx@sha256:…`, with any tag.
Denied:  `image: nginx:latest`; `image: nginx`; a tag that none of `allowed` matches.
Fix: set a tag that names a version.
"""

from pydantic import Field

from config.image_references import ImageReference
from webhook.engine import Params, Policy, Request, Violations
from webhook.engine.globs import Globs
from webhook.policies._images import ImageFault, image_violations


class ImageTags(Params):
    """Which tags are allowed."""

    denied: Globs = Field(
        Globs(["latest"]), description="tags that are denied; `*` and `?` match as in file names"
    )
    allowed: Globs | None = Field(
        None, min_length=1, description="tags that are allowed; any other than denied, if left out"
    )

    def fault(self, image: ImageReference) -> ImageFault | None:
        """Return the fault of an image whose tag is not allowed."""
        tag = image.version
        if tag is None or (
            not self.denied.match(tag) and (self.allowed is None or self.allowed.match(tag))
        ):
            return None
        found = f"has the tag {tag}" if image.tag else f"has no tag, which means {tag}"
        return found, "name a version, or a digest"


def validate(request: Request, params: ImageTags) -> Violations:
    """Return one violation for each image whose tag is not allowed."""
    which = f" of {', '.join(params.allowed)}" if params.allowed else ""
    others = f" other than {', '.join(params.denied)}" if params.denied else ""
    return image_violations(request, f"images must have a tag{which}{others}", params.fault)


POLICY = Policy("image-tags", ImageTags, validate=validate, category="images")
