"""Images come from approved registries.

Why: what runs in the cluster should be what somebody scanned, signed and keeps. An image is compared by its parsed
parts, never as text: `registry.company.com.evil.io/x` does not come from `registry.company.com`.

Judged: containers, init containers, ephemeral containers and image volumes of pods and of everything that makes pods,
and the image of a WebApp.

Allowed: `image: registry.company.com/shop:1.4` with `registries: [registry.company.com]`; a registry may name a path,
`registry.company.com/team`, which holds `registry.company.com/team/app` and not `registry.company.com/team-evil/app`.
Denied:  `image: nginx:1.21`, which stands for `docker.io/library/nginx:1.21`.
Fix: push the image to an approved registry, or ask for an exception.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import Annotated

from pydantic import AfterValidator, Field

from webhook.engine import Fields, Params, Policy, Request, Violation
from webhook.engine.fields import shown
from webhook.engine.images import ApprovedRegistry, ImageReferenceError, parse_image, parse_registry


def _registry(text: str) -> str:
    parse_registry(text)
    return text


class ImageRegistries(Params):
    """Where images may come from."""

    registries: list[Annotated[str, AfterValidator(_registry)]] = Field(
        min_length=1, description="approved registries: host, host:port, or with a path"
    )

    @cached_property
    def approved(self) -> tuple[ApprovedRegistry, ...]:
        """The registries, parsed."""
        return tuple(map(parse_registry, self.registries))


def validate(request: Request, params: ImageRegistries) -> Iterator[Violation]:
    """Yield one violation for each image from elsewhere."""
    for container in request.containers():
        yield from _judge(container, "image", params)
    pod = request.pod()
    if pod is not None:
        for volume in pod.each("volumes"):
            yield from _judge(volume, "image.reference", params)


def _judge(fields: Fields, path: str, params: ImageRegistries) -> Iterator[Violation]:
    image = fields.string(path)
    if not image:
        return  # nothing is pulled; whether an image must be named is the API's own rule
    names = ", ".join(params.registries)
    rule = f"images must come from approved registry {names}"
    try:
        parsed = parse_image(image)
    except ImageReferenceError as error:
        yield Violation(fields.path(path), f"{shown(image)} is no image reference: {error}", rule, "correct it")
        return
    if not any(registry.holds(parsed) for registry in params.approved):
        found = f"{shown(image)} comes from {parsed.registry}"
        yield Violation(fields.path(path), found, rule, "push it there, or ask for an exception")


POLICY = Policy(
    "image-registries", ImageRegistries, validate=validate, kinds="pods", category="images", severity="high"
)
