"""Kubernetes' `semver()`: semantic versions 2.0.0."""

import re
from dataclasses import dataclass
from typing import Any

from webhook.cel.cost import NO_MORE, parsing
from webhook.cel.errors import EvaluationError
from webhook.cel.functions import declare, declare_order, succeeds
from webhook.cel.values import MAX_UINT, NAMES

_PRE = r"(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
_SEMVER = re.compile(
    rf"\d+\.\d+\.\d+(?:-({_PRE}(?:\.{_PRE})*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?", re.ASCII
)
_LONGEST = 256


@dataclass(frozen=True, slots=True, order=True)
class Semver:
    """A version, without build metadata; one with a pre-release is lower than without."""

    core: tuple[int, ...]
    is_release: bool
    pre: tuple[Any, ...]


NAMES[Semver] = _OF = "kubernetes.Semver"


def parse_semver(text: str, normalize: bool = False) -> Semver:
    """Parse a version; `normalize` allows a leading v, missing parts and leading zeros."""
    text = _normalize(text) if normalize else text
    if not text:
        raise EvaluationError("Version string empty")
    core = text.split(".", 2)
    if len(core) < 3:
        raise EvaluationError("No Major.Minor.Patch elements found")
    core[2] = re.split("[-+]", core[2], maxsplit=1)[0]
    for name, part in zip(("Major", "Minor", "Patch"), core, strict=True):
        if not part.isdigit():
            raise EvaluationError(f'Invalid character(s) found in {name.lower()} number "{part}"')
        if len(part) > 1 and part.startswith("0"):
            raise EvaluationError(f'{name} number must not contain leading zeroes "{part}"')
    match = _SEMVER.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None or any(int(part) > MAX_UINT for part in core):
        raise EvaluationError(f'Invalid version "{text}"')
    pre = [
        (0, int(part), "") if part.isdigit() else (1, 0, part)
        for part in (match[1] or "").split(".")
    ]
    return Semver(tuple(map(int, core)), not match[1], tuple(pre))


def _normalize(text: str) -> str:
    parts = text.removeprefix("v").split(".", 2)
    for index, part in enumerate(parts):
        if len(part) > 1:
            stripped = part.lstrip("0")
            parts[index] = stripped if stripped[:1].isdigit() else f"0{stripped}"
    if len(parts) < 3 and re.search("[+-]", parts[-1]):
        raise EvaluationError("short version cannot contain PreRelease/Build meta data")
    return ".".join([*parts, "0", "0"][: max(len(parts), 3)])


declare(
    (f"semver(string, ?bool) -> {_OF}", parse_semver, parsing),
    ("isSemver(string, ?bool) -> bool", succeeds(parse_semver), parsing),
    (f"({_OF}).major() -> int", lambda version: version.core[0], NO_MORE),
    (f"({_OF}).minor() -> int", lambda version: version.core[1], NO_MORE),
    (f"({_OF}).patch() -> int", lambda version: version.core[2], NO_MORE),
    *declare_order(_OF, 12),
)
