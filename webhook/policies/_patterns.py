"""Patterns of labels and annotations (a glob, or /a regular expression/), and of hosts."""

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from config.regexes import compile_regex
from webhook.engine.globs import MAX_MATCHED, Globs
from webhook.engine.policy import Params
from webhook.engine.request import Request
from webhook.engine.violation import Violation
from webhook.policies._records import is_made_by_kubernetes

MAX_PROGRAM = 1000  # instructions of a compiled expression; [a-z]{1,1000} has 2,000

NOT_EMPTY = "?*"
LIKE = {"*": "", NOT_EMPTY: " and must not be empty"}  # patterns that messages describe in words


def wildcard(host: str) -> str:
    """Return the wildcard host that covers `host`: a wildcard stands for exactly one label."""
    return f"*.{host.partition('.')[2]}"


@lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> Callable[[str], bool]:
    """Compile `team-*`, or `/[0-9]+/`; either must match a value as a whole.

    Raises ValueError if it is invalid.

    Tenants write both patterns and values: see `Globs` and `compile_regex`.
    """
    if len(pattern) < 2 or not (pattern.startswith("/") and pattern.endswith("/")):
        return Globs([pattern]).match
    try:
        compiled = compile_regex(pattern[1:-1])
    except ValueError as error:
        raise ValueError(f"is not a valid regular expression: {error}") from None
    if compiled.programsize > MAX_PROGRAM:
        raise ValueError(
            f"is too large: {compiled.programsize} instructions when compiled; at most "
            f"{MAX_PROGRAM}"
        )
    return lambda value: len(value) <= MAX_MATCHED and compiled.fullmatch(value) is not None


Pattern = Annotated[str, AfterValidator(lambda pattern: compile_pattern(pattern) and pattern)]


class OnMetadata(Params):
    """Selects the metadata to judge: of objects, or of their pods."""

    where: Literal["objects", "pods"] = Field(
        "objects", description="whether the objects themselves must have them, or their pods"
    )

    def lacking(
        self, request: Request, field: str, patterns: Mapping[str, str]
    ) -> Iterator[Violation]:
        """Yield a violation for each key that `field` lacks, or has with another value.

        Objects that Kubernetes itself creates have none.
        """
        metadata = request.fields("metadata") if self.where == "objects" else request.pod_metadata()
        if metadata is None:
            return
        texts = metadata.texts(field)
        for key, pattern in patterns.items():
            path, value = f"{field}[{key}]", texts.get(key)
            if value is not None and compile_pattern(pattern)(value):
                continue
            if is_made_by_kubernetes(request):
                return
            if value is None:
                like = LIKE.get(pattern, f", with a value like {pattern}")
                rule = f"the {field.removesuffix('s')} is required{like}"
                yield metadata.violation(path, None, rule, "add it", found="missing")
            else:
                must = "not be empty" if pattern == NOT_EMPTY else f"be like {pattern}"
                yield metadata.violation(path, value, f"the value must {must}", "correct it")
