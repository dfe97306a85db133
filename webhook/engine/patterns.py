"""What the value of a label or an annotation must look like: a glob, or a regular expression between slashes."""

import re
from collections.abc import Callable, Iterator, Mapping
from fnmatch import translate
from functools import lru_cache
from typing import Annotated, Literal

from pydantic import AfterValidator, Field
from pydantic_core import SchemaError, SchemaValidator
from pydantic_core.core_schema import str_schema

from webhook.engine.fields import Fields, shown
from webhook.engine.policy import Params, Violation
from webhook.engine.request import Request


@lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> Callable[[str], bool]:
    """Compile `team-*`, or `/[0-9]+/`; either must match a value as a whole. ValueError where it cannot be used.

    Who writes a value is not who wrote the pattern, and a tenant may write both: so it is Rust's regular expressions
    that count, which pydantic brings along. No value takes them longer than its length; Python's could take for ever.
    """
    if len(pattern) < 2 or not (pattern.startswith("/") and pattern.endswith("/")):
        glob = re.compile(translate(pattern))
        return lambda value: glob.match(value) is not None
    try:
        return SchemaValidator(str_schema(pattern=rf"\A(?:{pattern[1:-1]})\z")).isinstance_python
    except SchemaError as error:
        reason = str(error).splitlines()[-1].partition(": ")[2]
        raise ValueError(f"is no regular expression: {reason}") from None


def _checked(pattern: str) -> str:
    compile_pattern(pattern)
    return pattern


Pattern = Annotated[str, AfterValidator(_checked)]


class OnMetadata(Params):
    """Whose metadata a policy is about."""

    where: Literal["objects", "pods"] = Field(
        "objects", description="whether objects themselves must have them, or the pods that they make"
    )

    def lacking(self, request: Request, field: str, patterns: Mapping[str, str]) -> Iterator[Violation]:
        """Yield a violation for each key that `field` (labels, annotations) lacks, or has with another value."""
        metadata = request.fields("metadata") if self.where == "objects" else request.pod_metadata()
        if metadata is not None:
            yield from lacking(metadata, field, patterns)


def lacking(metadata: Fields, field: str, patterns: Mapping[str, str]) -> Iterator[Violation]:
    """Yield a violation for each key that `field` of `metadata` lacks, or has with another value."""
    there = metadata.texts(field)
    noun = field.removesuffix("s")
    for key, pattern in patterns.items():
        path = f"{metadata.path(field)}[{key}]"
        value = there.get(key)
        if value is None:
            yield Violation(path, "missing", f"the {noun} is required, with a value like {pattern}", "add it")
        elif not compile_pattern(pattern)(value):
            yield Violation(path, shown(value), f"the value must be like {pattern}", "correct it")
