"""Rewrites images to the mirrors of their registries.

Why: a private mirror is near, is available when the original registry is not, and has no pull
limits. Users need not know its name.

Sets: the image of each container and image volume whose registry has a mirror. Tag and digest stay,
so the image is the same. The mirror with the longest matching path wins. On an update, only changed
images are rewritten, so that an unrelated change restarts no pods. ReplicaSets of a Deployment are
not changed, since the Deployment would no longer recognize them; their pods are. An invalid image
reference is left unchanged.

`mirrors: {docker.io: mirror.company.com/hub}` rewrites `nginx:1.21` to
`mirror.company.com/hub/library/nginx:1.21`.
Fix: nothing to do; use the mirror's name where another policy requires it.
"""

from functools import cached_property
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from config.image_references import ImageReference, try_parse_image
from webhook.engine import Params, Patches, Policy, Request
from webhook.policies._images import Registry, changed_images, parse_registry
from webhook.policies._records import is_copy


def _registry(text: str) -> str:
    if "*" in text or parse_registry(text).tag:
        raise ValueError("a registry and its mirror are named in full, without a tag")
    return text


MirrorName = Annotated[str, AfterValidator(_registry)]


class RegistryRewrite(Params):
    """The mirrors of registries."""

    mirrors: dict[MirrorName, MirrorName] = Field(
        min_length=1, description="mirrors by registry: host, host:port, or with a path"
    )

    @model_validator(mode="after")
    def _ends(self) -> "RegistryRewrite":
        for _, mirror in self.parsed:
            for registry, _ in self.parsed:
                if _overlap(registry, mirror):
                    raise ValueError(
                        f"images of the mirror {mirror} would be rewritten again, as those of "
                        f"{registry}"
                    )
        return self

    @cached_property
    def parsed(self) -> tuple[tuple[Registry, Registry], ...]:
        """Registries and their mirrors, those with the longest path first."""
        pairs = [
            (parse_registry(registry), parse_registry(mirror))
            for registry, mirror in self.mirrors.items()
        ]
        return tuple(sorted(pairs, key=lambda pair: -len(pair[0].path)))


def _overlap(one: Registry, other: Registry) -> bool:
    shorter = min(len(one.path), len(other.path))
    return one.host == other.host and one.path[:shorter] == other.path[:shorter]


def mutate(request: Request, params: RegistryRewrite) -> Patches:
    """Yield a patch for each image that has a mirror."""
    if is_copy(request):
        return
    for text, holder, field in changed_images(request):
        rewritten = _rewritten(text, params.parsed)
        if rewritten != text:
            yield holder.set(field, rewritten, overwrite=True)


def _rewritten(text: str, mirrors: tuple[tuple[Registry, Registry], ...]) -> str:
    """Return the image at its mirror; unchanged if there is none."""
    image = try_parse_image(text)
    for registry, mirror in mirrors:
        if image is not None and registry.holds(image):
            path = (*mirror.path, *image.repository.split("/")[len(registry.path) :])
            rewritten = str(ImageReference(mirror.host, "/".join(path), image.tag, image.digest))
            at_mirror = try_parse_image(rewritten)
            return rewritten if at_mirror is not None and mirror.holds(at_mirror) else text
    return text


POLICY = Policy("registry-rewrite", RegistryRewrite, mutate=mutate, category="images")
