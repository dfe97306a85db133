"""Patterns of image references, compared part by part."""

import re
import sys
from collections.abc import Sequence
from typing import NamedTuple

from config.image_references import (
    DEFAULT_REGISTRY,
    ImageReference,
    normalise_host,
    split_reference,
)
from webhook.engine.globs import Glob

_HOST = re.compile(r"[.:]")  # separators in a registry's host name, and before its port


class ImagePattern:
    """Images by a pattern of their reference, compared part by part.

    `*` and `?` stand for characters of one component of the registry or of the repository, or of
    the tag or the digest. `*` as the last component stands for everything below, and alone for
    every image. Without a tag it is `latest`, as in a reference. An image with a digest, which its
    tag does not select, is covered by a digest or by any tag.
    """

    __slots__ = ("_compiled", "_text")

    def __init__(self, text: str) -> None:
        """Take the pattern; it is split when it is first compared."""
        self._text = text
        self._compiled: _ImageParts | None = None

    def matches(self, image: ImageReference) -> bool:
        """Return whether an image is one of these."""
        compiled = self._compiled
        if compiled is None:
            compiled = self._compiled = _split_pattern(self._text)
        path = image.repository.split("/")
        if not _alike(compiled.path, path[: len(compiled.path)] if compiled.is_prefix else path):
            return False
        if not (compiled.host is None or _alike(compiled.host, _HOST.split(image.registry))):
            return False
        if compiled.digest is not None:
            return _is_like(compiled.digest, image.digest or "")
        if compiled.tag is None:
            return True
        return image.digest is None and _is_like(compiled.tag, image.version or "")


GlobOrText = str | Glob  # of a pattern: text, or a glob


class _ImageParts(NamedTuple):
    """The parts of a pattern; None matches everything."""

    host: tuple[GlobOrText, ...] | None
    path: tuple[GlobOrText, ...]
    is_prefix: bool
    tag: GlobOrText | None
    digest: GlobOrText | None


def _split_pattern(text: str) -> _ImageParts:
    """Split a pattern as a reference is split."""
    host, repository, _, tag, _, digest = split_reference("*/*" if text == "*" else text)
    registry = normalise_host(host)
    if registry == DEFAULT_REGISTRY and "/" not in repository and repository != "*":
        repository = f"library/{repository}"
    path = repository.split("/")
    is_prefix = path[-1] == "*" and not tag and not digest
    tag = tag or ("*" if path[-1].endswith("*") else "latest")
    return _ImageParts(
        None if registry == "*" else _parts(_HOST.split(registry)),
        _parts(path[:-1] if is_prefix else path),
        is_prefix,
        None if tag == "*" else _part(tag),
        _part(digest) if digest else None,
    )


def _part(text: str) -> GlobOrText:
    return Glob(text) if "*" in text or "?" in text else sys.intern(text)


def _parts(texts: Sequence[str]) -> tuple[GlobOrText, ...]:
    return tuple(map(_part, texts))


def _is_like(pattern: GlobOrText, text: str) -> bool:
    return pattern == text if isinstance(pattern, str) else pattern.match(text)


def _alike(patterns: Sequence[GlobOrText], parts: Sequence[str]) -> bool:
    return len(patterns) == len(parts) and all(map(_is_like, patterns, parts))
