"""Names with `*` and `?`, compiled once."""

import fnmatch
import re
from collections.abc import Iterable
from typing import Any

from pydantic_core import core_schema


class Globs(tuple[str, ...]):
    """Patterns; a name matches that any of them matches, and case counts.

    No patterns match nothing.

    The type of a parameter that is a list of patterns.
    """

    def __init__(self, _: Iterable[str] = ()) -> None:
        """Compile the patterns."""
        brackets = (pattern.replace("[", "[[]") for pattern in self)  # they stand in IPv6 hosts
        plain = map(fnmatch.translate, brackets)
        self._pattern = re.compile("|".join(f"(?:{each})" for each in plain) or r"(?!)")

    def match(self, name: str) -> bool:
        """Return whether `name` as a whole is matched."""
        return self._pattern.match(name) is not None

    @classmethod
    def __get_pydantic_core_schema__(cls, _: Any, handler: Any) -> core_schema.CoreSchema:
        return core_schema.no_info_after_validator_function(
            cls,
            handler(list[str]),
            serialization=core_schema.plain_serializer_function_ser_schema(list),
        )
