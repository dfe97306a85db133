"""Parse image references into their parts (the distribution project's reference grammar), and compare them by parts."""

import functools
import re
from dataclasses import dataclass

DEFAULT_REGISTRY = "docker.io"
REGISTRY_ALIASES = frozenset({"index.docker.io", "registry-1.docker.io", "registry.hub.docker.com"})

_REGISTRY = re.compile(
    r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*|\[[0-9a-fA-F:.]+\])(?::[0-9]{1,5})?"
)
_REPOSITORY = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*")
_TAG = re.compile(r"[\w][\w.-]{0,127}", re.ASCII)
_DIGEST = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}")
_NOT_ALONE_A_REPOSITORY = re.compile(r"[.:\[A-Z]")  # what makes a first component a registry


class ImageReferenceError(ValueError):
    """Not an image reference."""


@dataclass(frozen=True, slots=True)
class ImageReference:
    """An image by its parts, normalised: registry in lower case, docker.io and library/ filled in."""

    registry: str
    repository: str
    tag: str | None
    digest: str | None


@functools.lru_cache(maxsize=4096)
def parse_image(text: str) -> ImageReference:
    """Return the parts of an image reference. ImageReferenceError where it is none."""
    name, at, digest = text.partition("@")
    if at and not _DIGEST.fullmatch(digest):
        raise ImageReferenceError("its digest is malformed")
    first, slash, rest = name.partition("/")
    if not slash or not (_NOT_ALONE_A_REPOSITORY.search(first) or first == "localhost"):
        first, rest = DEFAULT_REGISTRY, name
    repository, colon, tag = rest.partition(":")
    if colon and not _TAG.fullmatch(tag):
        raise ImageReferenceError("its tag is malformed")
    registry = registry_name(first)
    if registry == DEFAULT_REGISTRY and "/" not in repository:
        repository = f"library/{repository}"
    if not _REPOSITORY.fullmatch(repository) or len(repository) > 255:
        raise ImageReferenceError("its repository is malformed; it must be lower case")
    return ImageReference(registry, repository, tag or None, digest or None)


def registry_name(text: str) -> str:
    """Return the normalised name of a registry host. ImageReferenceError where it is none."""
    if not _REGISTRY.fullmatch(text):
        raise ImageReferenceError("its registry is malformed")
    registry = text.lower()
    return DEFAULT_REGISTRY if registry in REGISTRY_ALIASES else registry


@dataclass(frozen=True, slots=True)
class ApprovedRegistry:
    """A registry host, or a part of one: images whose repository lies under `path` (all of them where it is empty)."""

    host: str
    path: tuple[str, ...] = ()

    def holds(self, image: ImageReference) -> bool:
        """Return whether `image` comes from here: whole components count, `team` does not hold `team-evil/app`."""
        parts = tuple(image.repository.split("/"))
        return image.registry == self.host and parts[: len(self.path)] == self.path


def parse_registry(text: str) -> ApprovedRegistry:
    """Return `host[:port][/path]` as a registry. ImageReferenceError where it is none."""
    host, _, path = text.strip("/").partition("/")
    if path and not _REPOSITORY.fullmatch(path):
        raise ImageReferenceError("its path is malformed")
    return ApprovedRegistry(registry_name(host), tuple(path.split("/")) if path else ())
