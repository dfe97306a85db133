"""Names with `*` and `?`, compiled once."""

import fnmatch
import re
from collections.abc import Iterable


class Globs:
    """Matches a name that any of some patterns matches; case counts. Of no patterns, it matches nothing."""

    __slots__ = ("_pattern", "patterns")

    def __init__(self, patterns: Iterable[str]) -> None:
        """Compile the patterns."""
        self.patterns = tuple(patterns)
        brackets = (pattern.replace("[", "[[]") for pattern in self.patterns)  # they stand in IPv6 hosts
        plain = map(fnmatch.translate, brackets)
        self._pattern = re.compile("|".join(f"(?:{each})" for each in plain) or r"(?!)")

    def match(self, name: str) -> bool:
        """Return whether `name` as a whole is matched."""
        return self._pattern.match(name) is not None
