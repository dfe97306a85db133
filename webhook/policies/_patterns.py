"""Patterns of labels and annotations (a glob, or /a regular expression/), and of hosts."""

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from webhook.engine.globs import Globs
from webhook.engine.policy import Params
from webhook.engine.request import Request
from webhook.engine.violation import Violation

MAX_PROGRAM = 1000  # instructions of a compiled expression; 2,000 is what [a-z]{1,1000} compiles to
MAX_MATCHED = 4096  # characters; a longer value matches no pattern
MAX_MEMORY = 128 * 1024  # bytes, for the program and for what matching caches


def wildcard(host: str) -> str:
    """Return the wildcard host that covers `host`: a wildcard stands for exactly one label."""
    return f"*.{host.partition('.')[2]}"


@lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> Callable[[str], bool]:
    """Compile `team-*`, or `/[0-9]+/`; either must match a value as a whole.

    ValueError where it cannot be used.

    Tenants write both patterns and values, so the syntax is RE2's: matching takes time linear in
    the value, and the size of the compiled expression is bounded.
    """
    if len(pattern) < 2 or not (pattern.startswith("/") and pattern.endswith("/")):
        matches: Callable[[str], object] = Globs([pattern]).match
    else:
        # with the C++ library 2 MB, which a process without regular expressions does not need
        import re2

        options = re2.Options()
        options.log_errors, options.max_mem = False, MAX_MEMORY
        try:
            compiled = re2.compile(pattern[1:-1], options)
        except re2.error as error:
            reason = error.args[0].decode() if isinstance(error.args[0], bytes) else str(error)
            raise ValueError(f"is not a valid regular expression: {reason}") from None
        if compiled.programsize > MAX_PROGRAM:
            raise ValueError(
                f"is too large: {compiled.programsize} instructions when compiled; at most "
                f"{MAX_PROGRAM}"
            )
        matches = compiled.fullmatch
    return lambda value: len(value) <= MAX_MATCHED and bool(matches(value))


Pattern = Annotated[str, AfterValidator(lambda pattern: compile_pattern(pattern) and pattern)]


class OnMetadata(Params):
    """Which metadata is judged."""

    where: Literal["objects", "pods"] = Field(
        "objects", description="whether the objects themselves must have them, or their pods"
    )

    def lacking(
        self, request: Request, field: str, patterns: Mapping[str, str]
    ) -> Iterator[Violation]:
        """Yield a violation for each key that `field` lacks, or has with another value."""
        metadata = request.fields("metadata") if self.where == "objects" else request.pod_metadata()
        if metadata is None:
            return
        found = metadata.texts(field)
        for key, pattern in patterns.items():
            path, value = f"{field}[{key}]", found.get(key)
            if value is None:
                rule = f"the {field.removesuffix('s')} is required, with a value like {pattern}"
                yield metadata.violation(path, None, rule, "add it", found="missing")
            elif not compile_pattern(pattern)(value):
                yield metadata.violation(
                    path, value, f"the value must be like {pattern}", "correct it"
                )
