"""Text from outside as one printable line: names of files and objects may have any character."""

import re

# What moves the cursor, starts a line or a terminal's command, or turns the direction of writing.
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_BUT_LINES = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def printable(text: object) -> str:
    r"""Return a text with `\n`, `\x1b` and the like in place of the characters themselves."""
    return _UNPRINTABLE.sub(_escaped, str(text))


def printable_lines(text: str) -> str:
    """Return a text of several lines, each printable."""
    return _BUT_LINES.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()
