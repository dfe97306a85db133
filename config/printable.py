"""Escapes untrusted text for output: names of files and objects may contain any character.

A CI system runs commands that it finds in the output of a step: GitHub those at the beginning of a
line (`::error::`), GitHub, Azure and TeamCity those anywhere in it (`##[add-path]`, `##vso[`).
"""

import re
from collections.abc import Collection
from dataclasses import fields, is_dataclass, replace
from typing import Any

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


def printable_record(value: Any, with_lines: Collection[str], *, has_lines: bool = False) -> Any:
    """Return a value with every text in it printable: a text, a tuple, or a dataclass of these.

    The texts of the fields in `with_lines` keep their line breaks. A mapping is not changed.
    """
    if isinstance(value, str):
        return printable_lines(value) if has_lines else printable(value)
    if isinstance(value, tuple):
        return tuple(printable_record(item, with_lines, has_lines=has_lines) for item in value)
    if is_dataclass(value) and not isinstance(value, type):
        texts = {
            field.name: printable_record(
                getattr(value, field.name), with_lines, has_lines=field.name in with_lines
            )
            for field in fields(value)
        }
        return replace(value, **texts)
    return value


def _escape(match: re.Match[str]) -> str:
    if match[0] == "##":
        return r"\x23\x23"
    return match[0].encode("unicode_escape").decode()
