"""Kubernetes' `semver()`: semantic versions 2.0.0."""

import re
from typing import Any

from webhook.cel.errors import EvaluationError
from webhook.cel.functions import declare, declare_order, function
from webhook.cel.library.network import is_valid
from webhook.cel.values import MAX_UINT, Opaque

_NUMBER = r"(0|[1-9]\d*)"
_PRE = r"(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
_SEMVER = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-({_PRE}(?:\.{_PRE})*))?(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?", re.ASCII
)
_LONGEST = 256
_OF = "kubernetes.Semver"


class Semver(Opaque):
    """A version; `key` is what its order follows, without build metadata."""

    type_name = _OF

    def __init__(self, core: tuple[int, int, int], pre: str | None) -> None:
        parts = [] if pre is None else [(0, int(p), "") if p.isdigit() else (1, 0, p) for p in pre.split(".")]
        self.key: Any = (core, pre is None, parts)


@function(f"semver(string) -> {_OF}", f"semver(string, bool) -> {_OF}")
def parse_semver(text: str, normalize: bool = False) -> Semver:
    """Return the version that `text` says; `normalize` allows a leading v, missing parts and leading zeros."""
    text = _normalized(text) if normalize else text
    match = _SEMVER.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None or any(int(part) > MAX_UINT for part in match.groups()[:3]):
        raise EvaluationError(_fault(text))
    return Semver((int(match[1]), int(match[2]), int(match[3])), match[4])


def _fault(text: str) -> str:
    if not text:
        return "Version string empty"
    parts = text.split(".", 2)
    if len(parts) != 3:
        return "No Major.Minor.Patch elements found"
    for name, part in zip(("Major", "Minor"), parts, strict=False):
        if not part.isdigit():
            return f'Invalid character(s) found in {name.lower()} number "{part}"'
        if len(part) > 1 and part.startswith("0"):
            return f'{name} number must not contain leading zeroes "{part}"'
    patch = re.split("[-+]", parts[2], maxsplit=1)[0]
    if not patch.isdigit():
        return f'Invalid character(s) found in patch number "{patch}"'
    if len(patch) > 1 and patch.startswith("0"):
        return f'Patch number must not contain leading zeroes "{patch}"'
    return f'Invalid version "{text}"'


def _normalized(text: str) -> str:
    parts = text.removeprefix("v").split(".", 2)
    for index, part in enumerate(parts):
        if len(part) > 1:
            stripped = part.lstrip("0")
            parts[index] = stripped if stripped[:1].isdigit() else f"0{stripped}"
    if len(parts) < 3 and re.search("[+-]", parts[-1]):
        raise EvaluationError("short version cannot contain PreRelease/Build meta data")
    return ".".join([*parts, "0", "0"][: max(len(parts), 3)])


def _is_semver(text: str, normalize: bool = False) -> bool:
    return is_valid(lambda each: parse_semver(each, normalize))(text)


declare(_is_semver, "isSemver(string) -> bool", "isSemver(string, bool) -> bool")
for _index, _name in enumerate(("major", "minor", "patch")):
    declare(lambda version, index=_index: version.key[0][index], f"({_OF}).{_name}() -> int")
declare_order(_OF)
