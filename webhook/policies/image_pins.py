"""Adds the digest to images that are named by a tag.

Why: a tag can be moved to another image. With its digest, what is judged is what is pulled, on
every node and at every restart.

Sets: the digest of each image that `images` names and that has none: `shop:1.4` becomes
`shop:1.4@sha256:…`. The registry says which digest the tag has now; where it does not answer, the
policy's failurePolicy decides. On an update, images that stay as they are are not pinned, so that
an unrelated change restarts no pods. ReplicaSets of a Deployment are not changed, since the
Deployment would no longer recognize them.

`images: [registry.company.com]` pins every image of that registry. With the policy
image-signatures, the digest that is pinned is the one that is verified.
Fix: nothing to do; name a digest yourself to choose another one.
"""

from functools import cached_property

from pydantic import Field

from config.image_references import try_parse_image
from webhook.engine import Params, Patches, Policy, Request
from webhook.engine.image_look_ups import DIGESTS, read
from webhook.engine.policy import RuleError
from webhook.policies._images import Registry, RegistryName, changed_images, parse_registry
from webhook.policies._records import is_copy


class ImagePins(Params):
    """Which images are pinned."""

    images: list[RegistryName] = Field(min_length=1, description="registries, or parts of them")

    @cached_property
    def registries(self) -> tuple[Registry, ...]:
        """The images, parsed."""
        return tuple(map(parse_registry, self.images))


def mutate(request: Request, params: ImagePins) -> Patches:
    """Yield a patch for each image that has a tag alone."""
    if is_copy(request):
        return
    images = {
        container: image
        for container in changed_images(request)
        if (image := try_parse_image(container.text)) is not None
        and not image.digest
        and any(registry.holds(image) for registry in params.registries)
    }
    digests = read(request, DIGESTS, map(str, images.values())) if images else {}
    for (text, holder, field), image in images.items():
        digest = digests[str(image)]
        if not digest.startswith("sha256:"):
            raise RuleError(f"{image}: {digest}")
        yield holder.set(field, f"{text}@{digest}", overwrite=True)


POLICY = Policy(
    "image-pins", ImagePins, mutate=mutate, category="images", severity="high", needs=(DIGESTS,)
)
