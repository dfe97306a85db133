"""Containers have the required imagePullPolicy.

Why: with `Always`, the registry authorizes every pull, and the kubelet gets the current image of a
tag. With another policy, a node runs its cached image.

Judged: all containers, and image volumes. An unset field counts as the API server's default: Always
for the tag `latest` or no tag, else IfNotPresent. A WebApp has no such field; its Deployment is
judged.

Allowed: `imagePullPolicy: Always`; `image: nginx`, whose default it is.
Denied:  `imagePullPolicy: IfNotPresent`; `image: nginx:1.21`, whose default that is.
Fix: set the pull policy.
"""

from typing import Literal

from pydantic import Field

from config.image_references import try_parse_image
from webhook.engine import Fix, Params, Policy, Request, Violations
from webhook.engine.globs import Globs
from webhook.engine.violation import UNSET

# Field of the policy, by the field that names the image.
PULL_POLICY = {"image": "imagePullPolicy", "image.reference": "image.pullPolicy"}


class ImagePullPolicy(Params):
    """Which pull policy is required, and for which images."""

    required: Literal["Always", "IfNotPresent", "Never"] = Field(
        "Always", description="pull policy that must be set"
    )
    tags: Globs | None = Field(
        None,
        min_length=1,
        description="tags of the images judged (not those with a digest); all images, if left out",
    )


def validate(request: Request, params: ImagePullPolicy) -> Violations:
    """Yield one violation for each image with another pull policy."""
    if request.pod() is None:
        return
    which = f" for images with the tag {' or '.join(params.tags)}" if params.tags else ""
    for text, holder, path in request.images():
        image = try_parse_image(text)  # None for the id of an image that a node has
        version = "" if image is None else image.version or ""
        if params.tags and not params.tags.match(version):
            continue
        field, required = PULL_POLICY[path], params.required
        value = holder.string(field)
        is_latest = image is not None and "latest" in (image.version, image.tag)
        default = "Always" if is_latest else "IfNotPresent"
        if (value or default) != required:
            found = None if value else f"missing, which means {default}"
            rule, fix = f"must be {required}{which}", f"set it to {required}"
            fix_value = UNSET if image is None else required  # an id cannot be pulled
            yield holder.violation(field, value, rule, fix, found=found, fix_value=fix_value)


POLICY = Policy(
    "image-pull-policy",
    ImagePullPolicy,
    validate=validate,
    category="images",
    fix=Fix(True, "the image stays the same"),
)
