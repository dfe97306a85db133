"""Images come from approved registries.

Why: images from approved registries are scanned, signed and kept available. An image is compared by
its parsed parts, never as text: `registry.company.com.evil.io/x` does not come from
`registry.company.com`.

Judged: the images of all containers and of image volumes, and the image of a WebApp.

A registry is a host, a host with its port (443 is the same as none), or either with a path:
`registry.company.com/team` contains `registry.company.com/team/app` but not
`registry.company.com/team-evil/app`. A `*` matches one whole component: `*.company.com`,
`ghcr.io/*/approved`. With a tag, where `*` matches any part, it is one repository's images with
that tag: `registry.company.com/base:1.*`; a tag beside a digest counts. `denied` takes precedence
over `registries`.

Allowed: `image: registry.company.com/shop:1.4` with `registries: [registry.company.com]`.
Denied:  `image: nginx:1.21`, which stands for `docker.io/library/nginx:1.21`; `image: sha256:…`,
         the id of an image of unknown origin.
Fix: push the image to an approved registry, or ask for an exception. The setting `registry` selects
     the registry of the images that Gatewright chooses itself: databases, caches and backups.
"""

from functools import cached_property

from pydantic import Field, model_validator

from config.image_references import ImageReference
from webhook.engine import Params, Policy, Request, Violations
from webhook.policies._images import (
    ImageFault,
    Registry,
    RegistryName,
    image_violations,
    parse_registry,
)

SETTING = "(chart value registry, flag --registry)"


class ImageRegistries(Params):
    """Where images may come from."""

    registries: list[RegistryName] = Field([], description="approved registries; any, if none")
    denied: list[RegistryName] = Field([], description="registries that are not approved")

    @model_validator(mode="after")
    def _says_something(self) -> "ImageRegistries":
        if not self.registries and not self.denied:
            raise ValueError("expected at least one registry, approved or denied")
        return self

    @cached_property
    def parsed(self) -> tuple[list[Registry], list[Registry]]:
        """The approved registries, and the denied ones."""
        return [*map(parse_registry, self.registries)], [*map(parse_registry, self.denied)]

    def elsewhere(self, image: ImageReference) -> ImageFault | None:
        """Return the fault of an image that is in no approved registry."""
        for registry in self.parsed[0]:
            if registry.holds(image):
                return None
        return f"comes from {image.registry}", "push it there, or ask for an exception"

    def from_denied(self, image: ImageReference) -> ImageFault | None:
        """Return the fault of an image in a denied registry."""
        for registry in self.parsed[1]:
            if registry.holds(image):
                return f"comes from {registry}", "use an image from elsewhere"
        return None


def validate(request: Request, params: ImageRegistries) -> Violations:
    """Yield a violation for each image from elsewhere, and each from a denied registry."""
    if params.registries:
        rule = f"images must come from approved registry {', '.join(params.registries)}"
        controller_fix = (
            f"push it there and set Gatewright's registry to it {SETTING}, or ask for an exception"
        )
        yield from image_violations(request, rule, params.elsewhere, controller_fix)
    if params.denied:
        rule = f"images must not come from denied registry {', '.join(params.denied)}"
        controller_fix = f"set Gatewright's registry to another one {SETTING}"
        yield from image_violations(request, rule, params.from_denied, controller_fix)


POLICY = Policy(
    "image-registries", ImageRegistries, validate=validate, category="images", severity="high"
)
