"""What the value of a label or an annotation must look like: a glob, or a regular expression between slashes."""

import re
from collections.abc import Iterator
from fnmatch import translate
from typing import Annotated

from pydantic import AfterValidator

from webhook.engine.fields import Fields, shown
from webhook.engine.policy import Violation


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Compile `team-*`, or `/[0-9]+/`; either must match a value as a whole. ValueError where it cannot be used."""
    if len(pattern) < 2 or not (pattern.startswith("/") and pattern.endswith("/")):
        return re.compile(translate(pattern))
    try:
        return re.compile(f"(?:{pattern[1:-1]})\\Z")
    except re.error as error:
        raise ValueError(f"is no regular expression: {error}") from None


def _checked(pattern: str) -> str:
    compile_pattern(pattern)
    return pattern


Pattern = Annotated[str, AfterValidator(_checked)]


class Required:
    """Keys that must be there, each with what its value must look like, compiled once."""

    __slots__ = ("_patterns",)

    def __init__(self, patterns: dict[str, str]) -> None:
        """Compile the patterns by key."""
        self._patterns = {key: (pattern, compile_pattern(pattern)) for key, pattern in patterns.items()}

    def lacking(self, metadata: Fields, field: str) -> Iterator[Violation]:
        """Yield a violation for each key of `field` (labels, annotations) that is missing or has another value."""
        there = metadata.texts(field)
        noun = field.removesuffix("s")
        for key, (pattern, compiled) in self._patterns.items():
            path = f"{metadata.path(field)}[{key}]"
            value = there.get(key)
            if value is None:
                yield Violation(path, "missing", f"the {noun} is required, with a value like {pattern}", "add it")
            elif not compiled.match(value):
                yield Violation(path, shown(value), f"the value must be like {pattern}", "correct it")
