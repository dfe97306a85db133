"""Parse image references into their parts (the distribution project's reference grammar), and compare them by parts."""

import functools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from webhook.engine.globs import Globs
from webhook.engine.request import Request
from webhook.engine.violation import Violation, shown

LONGEST = 1024  # characters: host, repository (255), tag (128) and digest have no more, and what is parsed is kept
DEFAULT_REGISTRY = "docker.io"
REGISTRY_ALIASES = frozenset({"index.docker.io", "registry-1.docker.io", "registry.hub.docker.com"})

_REGISTRY = re.compile(
    r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*|\[[0-9a-fA-F:.]+\])(?::[0-9]{1,5})?"
)
_REPOSITORY = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*")
_HTTPS_PORT = re.compile(r":0*443$")
_TAG = re.compile(r"[\w][\w.-]{0,127}", re.ASCII)
_TAG_PATTERN = re.compile(r"[\w.*?-]{1,128}", re.ASCII)
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
        raise ImageReferenceError("it is the id of an image that a node has, whatever registry that came from")
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


@dataclass(frozen=True, slots=True)
class Registry:
    """A registry host, or a part of one: images whose repository lies under `path` (all of them where it is empty).

    A component of either that is `*` stands for any one component: `*.dkr.ecr.*.amazonaws.com`, `ghcr.io/*/approved`.
    With a `tag`, a pattern, it is the images of one repository with such a tag.
    """

    host: str
    path: tuple[str, ...] = ()
    tag: str = ""

    def holds(self, image: ImageReference) -> bool:
        """Return whether `image` comes from here: whole components count, `team` does not hold `team-evil/app`."""
        if self.host != image.registry and not _alike(self.host.split("."), image.registry.split(".")):
            return False
        parts = image.repository.split("/")
        if not self.tag:
            return _alike(self.path, parts[: len(self.path)])
        return _alike(self.path, parts) and Globs([self.tag]).match(image.tag or image.version or "")

    def __str__(self) -> str:
        """As a person writes it."""
        return "/".join((self.host, *self.path)) + (f":{self.tag}" if self.tag else "")


def _alike(pattern: Sequence[str], parts: Sequence[str]) -> bool:
    return len(pattern) == len(parts) and all(
        wanted in ("*", part) for wanted, part in zip(pattern, parts, strict=True)
    )


def parse_registry(text: str) -> Registry:
    """Return `host[:port][/path[:tag]]` as a registry. ImageReferenceError where it is none."""
    host, _, path = text.strip("/").partition("/")
    path, colon, tag = path.partition(":")
    if colon and not (path and _TAG_PATTERN.fullmatch(tag)):
        raise ImageReferenceError("its tag is malformed")
    if path and ((path.endswith("*") and not tag) or not _REPOSITORY.fullmatch(_filled_in(path, "/"))):
        raise ImageReferenceError("its path is malformed")
    if not host.strip("*."):
        raise ImageReferenceError("its registry is malformed")
    name = registry_name(_filled_in(host, "."))
    return Registry(host.lower() if "*" in host else name, tuple(path.split("/")) if path else (), tag)


def _filled_in(pattern: str, separator: str) -> str:
    """Return `pattern` with a letter for each component that is `*`, so that it can be checked like any other."""
    return separator.join("x" if part == "*" else part for part in pattern.split(separator))


Fault = tuple[str, str]  # what is wrong with an image, as it follows its reference in a message, and the fix
Judge = Callable[[str], Fault | None]


def by_reference(judge: Callable[[ImageReference], Fault | None]) -> Judge:
    """Return a judge of references as text, which judges each distinct one once; what is no reference is a fault.

    What it finds begins with the reference.
    """

    @functools.lru_cache(maxsize=4096)
    def judged(text: str) -> Fault | None:
        try:
            fault = judge(parse_image(text))
        except ImageReferenceError as error:
            fault = f"is no image reference: {error}", "correct it"
        return None if fault is None else (f"{shown(text)} {fault[0]}", fault[1])

    return judged


def image_violations(request: Request, rule: str, judge: Judge, controller_fix: str = "") -> Iterator[Violation]:
    """Yield a violation of `rule` for each image that `judge`, made by `by_reference`, finds fault with.

    `controller_fix` is the fix of an image that the controller chose. Where no image is named, nothing is pulled;
    whether one must be is the API's own rule.
    """
    for text, holder, field in request.images():
        fault = judge(text if len(text) <= LONGEST else text[: LONGEST + 1])  # what is judged is kept
        if fault is not None:
            found, fix = fault
            yield holder.violation(field, text, rule, fix, found=found, controller_fix=controller_fix)
