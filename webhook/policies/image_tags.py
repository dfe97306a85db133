"""Images have an explicit tag other than latest.

Why: a tag like `latest` moves: nodes may run different versions, and a rollback is impossible. An image without a tag
means `latest`. A digest pins the version, so an image with a digest may have any tag.

Judged: containers, init containers, ephemeral containers and image volumes of pods and of workloads with a pod
template, and the image of a WebApp.

Allowed: `image: registry.company.com/shop:1.4`; `image: nginx@sha256:…`, with any tag.
Denied:  `image: nginx:latest`; `image: nginx`; a tag that none of `allowed` matches.
Fix: set a tag that names a version.
"""

from collections.abc import Callable
from functools import cached_property

from pydantic import Field

from webhook.engine import Params, Policy, Request, Violations
from webhook.engine.globs import Globs
from webhook.engine.images import Fault, ImageReference, by_reference, image_violations


class ImageTags(Params):
    """Which tags are versions."""

    denied: list[str] = Field(["latest"], description="tags that are denied; `*` and `?` match as in file names")
    allowed: list[str] | None = Field(
        None, min_length=1, description="tags that are allowed; any other than denied, if left out"
    )

    @cached_property
    def denied_globs(self) -> Globs:
        """What is denied, compiled."""
        return Globs(self.denied)

    @cached_property
    def allowed_globs(self) -> Globs:
        """What is allowed, compiled."""
        return Globs(self.allowed or ["*"])

    @cached_property
    def judge(self) -> Callable[[str], Fault | None]:
        """What is wrong with an image whose tag is no version."""

        def judge(image: ImageReference) -> Fault | None:
            tag = image.version
            is_denied = tag is not None and bool(self.denied) and self.denied_globs.match(tag)
            if tag is None or (self.allowed_globs.match(tag) and not is_denied):
                return None
            return (
                f"has the tag {tag}" if image.tag else f"has no tag, which means {tag}",
                "name a version, or a digest",
            )

        return by_reference(judge)

    @cached_property
    def rule(self) -> str:
        """The rule, as messages say it."""
        others = f"other than {', '.join(self.denied)}" if self.denied else ""
        which = f"of {', '.join(self.allowed)}" if self.allowed else ""
        return " ".join(filter(None, ("images must have a tag", which, others)))


def validate(request: Request, params: ImageTags) -> Violations:
    """Yield one violation for each image whose tag is no version."""
    yield from image_violations(request, params.rule, params.judge)


POLICY = Policy("image-tags", ImageTags, validate=validate, category="images")
