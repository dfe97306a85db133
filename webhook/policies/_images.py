"""Registries of images, and rules about images, which compare parsed parts, not text."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator

from config.image_references import (
    DEFAULT_REGISTRY,
    REPOSITORY,
    ImageReference,
    ImageReferenceError,
    normalise_host,
    parse_image,
    registry_name,
)
from webhook.engine import Request, Violation
from webhook.engine.containers import Image
from webhook.engine.globs import Globs
from webhook.engine.violation import shown

_TAG_PATTERN = re.compile(r"[\w.*?-]{1,128}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Registry:
    """A registry host, or the images below `path` on it ("" for all).

    A component of either that is `*` stands for any one component: `*.dkr.ecr.*.amazonaws.com`,
    `ghcr.io/*/approved`. With a `tag`, a pattern, it is the images of one repository with such a
    tag.
    """

    host: str
    path: tuple[str, ...] = ()
    tag: str = ""

    def holds(self, image: ImageReference) -> bool:
        """Return whether `image` is in this registry, by whole components."""
        is_pattern = "*" in self.host
        if self.host != image.registry and not (
            is_pattern and _alike(self.host.split("."), image.registry.split("."))
        ):
            return False
        if not self.path:
            return True
        parts = image.repository.split("/")
        if not self.tag:
            return _alike(self.path, parts[: len(self.path)])
        return _alike(self.path, parts) and Globs([self.tag]).match(
            image.tag or image.version or ""
        )

    def __str__(self) -> str:
        """The registry in the notation of parameters."""
        return "/".join((self.host, *self.path)) + (f":{self.tag}" if self.tag else "")


def _alike(pattern: Sequence[str], parts: Sequence[str]) -> bool:
    return len(pattern) == len(parts) and all(
        expected in ("*", part) for expected, part in zip(pattern, parts, strict=True)
    )


def parse_registry(text: str) -> Registry:
    """Parse `host[:port][/path[:tag]]`. Raises ImageReferenceError if it is malformed."""
    scheme, colons, _ = text.partition("://")
    if colons:
        raise ImageReferenceError(f"it has a scheme: remove {scheme}://")
    host, _, path = text.strip("/").partition("/")
    path, colon, tag = path.partition(":")
    if colon and not (path and _TAG_PATTERN.fullmatch(tag)):
        raise ImageReferenceError("its tag is malformed")
    if path and (
        (path.endswith("*") and not tag) or not REPOSITORY.fullmatch(_filled_in(path, "/"))
    ):
        raise ImageReferenceError("its path is malformed")
    if not host.strip("*."):
        raise ImageReferenceError("its registry is malformed")
    registry_name(_filled_in(host, "."))
    name, parts = normalise_host(host), tuple(path.split("/")) if path else ()
    if tag and name == DEFAULT_REGISTRY and len(parts) == 1:
        parts = ("library", *parts)
    return Registry(name, parts, tag)


def _filled_in(pattern: str, separator: str) -> str:
    """Return `pattern` with a letter for each component `*`, to be parsed as an image."""
    return separator.join("x" if part == "*" else part for part in pattern.split(separator))


RegistryName = Annotated[str, AfterValidator(lambda text: parse_registry(text) and text)]
# The fault of an image, as text that follows its reference in a message, and the fix.
ImageFault = tuple[str, str]


def changed_images(request: Request) -> Iterator[Image]:
    """Yield each image that an update changes or adds; on creation, all images."""
    before = request.before()
    old = before.images() if before is not None else ()
    before_by_path = {holder.path(field): text for text, holder, field in old}
    for image in request.images():
        if before_by_path.get(image.holder.path(image.field)) != image.text:
            yield image


def image_violations(
    request: Request,
    rule: str,
    judge: Callable[[ImageReference], ImageFault | None],
    controller_fix: str = "",
) -> Iterator[Violation]:
    """Yield a violation of `rule` for each image that `judge` finds fault with.

    `controller_fix` is the fix for an image that the controller chose. An empty image is not
    judged: nothing is pulled, and the API requires one where it must be set.
    """
    for text, holder, field in request.images():
        try:
            fault = judge(parse_image(text))
        except ImageReferenceError as error:
            fault = f"is no image reference: {error}", "correct it"
        if fault is not None:
            found, fix = f"{shown(text)} {fault[0]}", fault[1]
            violation = holder.violation(field, text, rule, fix, found=found)
            violation.controller_fix = controller_fix
            yield violation
