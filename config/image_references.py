"""Parse image references into their parts (the distribution project's reference grammar)."""

import functools
import re
from dataclasses import dataclass

# characters: host, repository (255), tag (128) and digest are shorter; parsed references are cached
LONGEST = 1024
DEFAULT_REGISTRY = "docker.io"
REGISTRY_ALIASES = frozenset({"index.docker.io", "registry-1.docker.io", "registry.hub.docker.com"})

_REGISTRY = re.compile(
    r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*|\[[0-9a-fA-F:.]+\])(?::[0-9]{1,5})?"
)
REPOSITORY = re.compile(
    r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*"
)
_LEADING_ZEROS = re.compile(r"(?<=:)0+(?=[0-9]+$)")  # of a port
_TAG = re.compile(r"[\w][\w.-]{0,127}", re.ASCII)
# the digest algorithms that container runtimes support
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128}")
_ID = re.compile(r"(?:sha256:)?[0-9a-f]{64}")  # runtimes read it as the id of a local image
# Characters that make a first component a registry.
_NOT_ALONE_A_REPOSITORY = re.compile(r"[.:\[A-Z]")


class ImageReferenceError(ValueError):
    """Not an image reference."""


@dataclass(frozen=True, slots=True)
class ImageReference:
    """An image by its parts, normalised: lower-case registry, docker.io and library/ filled in."""

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
        """The tag that is pulled: `latest` by default, None if there is a digest."""
        return None if self.digest else self.tag or "latest"


@functools.lru_cache(maxsize=4096)
def parse_image(text: str) -> ImageReference:
    """Return the parts of an image reference. Raises ImageReferenceError if it is invalid."""
    if len(text) > LONGEST:
        raise ImageReferenceError(f"it has more than {LONGEST} characters")
    if any(map(str.isspace, text)):
        raise ImageReferenceError("it contains whitespace")
    if _ID.fullmatch(text):
        why = "it is the id of an image that a node has, whatever registry that came from"
        raise ImageReferenceError(why)
    first, repository, colon, tag, at, digest = split_reference(text)
    if at and not _DIGEST.fullmatch(digest):
        raise ImageReferenceError("its digest is malformed")
    if colon and not _TAG.fullmatch(tag):
        raise ImageReferenceError("its tag is malformed")
    registry = registry_name(first)
    if registry == DEFAULT_REGISTRY and "/" not in repository:
        repository = f"library/{repository}"
    if not REPOSITORY.fullmatch(repository) or len(repository) > 255:
        raise ImageReferenceError("its repository is malformed; it must be lower case")
    return ImageReference(registry, repository, tag or None, digest or None)


def try_parse_image(text: str) -> ImageReference | None:
    """Return the parts of an image reference; None for an invalid one, which is never pulled."""
    try:
        return parse_image(text)
    except ImageReferenceError:
        return None


def split_reference(text: str) -> tuple[str, str, str, str, str, str]:
    """Return registry, repository, `:`, tag, `@` and digest of a reference or a pattern."""
    name, at, digest = text.partition("@")
    first, slash, rest = name.partition("/")
    is_registry = _NOT_ALONE_A_REPOSITORY.search(first) or first in ("localhost", "*")
    if not slash or not is_registry:
        first, rest = DEFAULT_REGISTRY, name
    repository, colon, tag = rest.partition(":")
    return first, repository, colon, tag, at, digest


def registry_name(text: str) -> str:
    """Return the normalised name of a registry host.

    Raises ImageReferenceError if it is invalid.
    """
    if not _REGISTRY.fullmatch(text):
        raise ImageReferenceError("its registry is malformed")
    return normalise_host(text)


def normalise_host(text: str) -> str:
    """Return the one spelling of a registry host, or of a pattern of hosts."""
    registry = _LEADING_ZEROS.sub("", text.lower())
    registry = registry.removesuffix(":443")  # the default port: the same registry
    return DEFAULT_REGISTRY if registry in REGISTRY_ALIASES else registry
