"""Parse image references into their parts (the distribution project's reference grammar)."""

import functools
import re
from dataclasses import dataclass

# characters: host, repository (255), tag (128) and digest have no more, and what is parsed is kept
LONGEST = 1024
DEFAULT_REGISTRY = "docker.io"
REGISTRY_ALIASES = frozenset({"index.docker.io", "registry-1.docker.io", "registry.hub.docker.com"})

_REGISTRY = re.compile(
    r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*|\[[0-9a-fA-F:.]+\])(?::[0-9]{1,5})?"
)
REPOSITORY = re.compile(
    r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*"
)
_HTTPS_PORT = re.compile(r":0*443$")
_TAG = re.compile(r"[\w][\w.-]{0,127}", re.ASCII)
_DIGEST = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}")
_ID = re.compile(r"(?:sha256:)?[0-9a-f]{64}")  # runtimes read it as the id of a local image
_NOT_ALONE_A_REPOSITORY = re.compile(r"[.:\[A-Z]")  # what makes a first component a registry


class ImageReferenceError(ValueError):
    """Not an image reference."""


@dataclass(frozen=True, slots=True)
class ImageReference:
    """An image by its parts, normalised: registry in lower case without port 443, docker.io and library/ filled in."""

    registry: str
    repository: str
    tag: str | None
    digest: str | None

    def __str__(self) -> str:
        """In full: `docker.io/library/redis:7`."""
        tag = f":{self.tag}" if self.tag else ""
        return f"{self.registry}/{self.repository}{tag}{f'@{self.digest}' if self.digest else ''}"

    @property
    def version(self) -> str | None:
        """The tag that is pulled: `latest` where nothing is said, None where a digest says it better."""
        return None if self.digest else self.tag or "latest"


@functools.lru_cache(maxsize=4096)
def parse_image(text: str) -> ImageReference:
    """Return the parts of an image reference. ImageReferenceError where it is none."""
    if len(text) > LONGEST:
        raise ImageReferenceError(f"it has more than {LONGEST} characters")
    if _ID.fullmatch(text):
        raise ImageReferenceError(
            "it is the id of an image that a node has, whatever registry that came from"
        )
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
    if not REPOSITORY.fullmatch(repository) or len(repository) > 255:
        raise ImageReferenceError("its repository is malformed; it must be lower case")
    return ImageReference(registry, repository, tag or None, digest or None)


def parsed(text: str) -> ImageReference | None:
    """Return the parts of an image reference; None for what is none, and is never pulled."""
    try:
        return parse_image(text)
    except ImageReferenceError:
        return None


def registry_name(text: str) -> str:
    """Return the normalised name of a registry host. ImageReferenceError where it is none."""
    if not _REGISTRY.fullmatch(text):
        raise ImageReferenceError("its registry is malformed")
    registry = _HTTPS_PORT.sub("", text.lower())  # the default: the same registry
    return DEFAULT_REGISTRY if registry in REGISTRY_ALIASES else registry
