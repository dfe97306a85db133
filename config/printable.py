"""Escapes untrusted text for output: names of files and objects may contain any character.

A CI system runs commands that it finds in the output of a step: GitHub those at the beginning of a
line (`::error::`), GitHub, Azure and TeamCity those anywhere in it (`##[add-path]`, `##vso[`).
"""

import re

COMMAND_MARK = r"##(?=\w*\[)"  # begins a command of a CI anywhere in a line
# Characters that move the cursor, end a line, start a terminal escape or change text direction.
_UNPRINTABLE = re.compile(
    rf"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]|{COMMAND_MARK}"
)
_BUT_LINES = re.compile(
    rf"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]|{COMMAND_MARK}"
)
_COMMAND = re.compile(r"^(\s*)::", re.MULTILINE)


def printable(text: object) -> str:
    r"""Return a text with control characters escaped, such as `\n` and `\x1b`."""
    return _UNPRINTABLE.sub(_escape, str(text))


def printable_lines(text: str) -> str:
    r"""Return a text whose line breaks are kept and whose other control characters are escaped.

    No line begins with `::`; it is `\x3a:`.
    """
    return _COMMAND.sub(r"\1\\x3a:", _BUT_LINES.sub(_escape, text))


def _escape(found: re.Match[str]) -> str:
    if found[0] == "##":
        return r"\x23\x23"
    return found[0].encode("unicode_escape").decode()
