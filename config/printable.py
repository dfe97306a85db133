"""Escapes untrusted text for output: names of files and objects may contain any character."""

import re

# Characters that move the cursor, end a line, start a terminal escape or change text direction.
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_BUT_LINES = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def printable(text: object) -> str:
    r"""Return a text with control characters escaped, such as `\n` and `\x1b`."""
    return _UNPRINTABLE.sub(_escape, str(text))


def printable_lines(text: str) -> str:
    """Return a text whose line breaks are kept and whose other control characters are escaped."""
    return _BUT_LINES.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()
