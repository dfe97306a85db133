"""Find the position in a text of an error that has a position in an expression."""

import re
from collections.abc import Sequence

from config.positions import Position

PLACE = re.compile(r": line (\d+), column (\d+): ")
BLOCK = re.compile(r"[|>][-+0-9]*\s*(?:#.*)?$")
ESCAPED = {"'": re.compile(r"''|."), '"': re.compile(r"\\.|.")}


def cel_place(lines: Sequence[str], key: Position, message: str) -> Position:
    """Return the line and column (from 1) that a message names in the field at `key`.

    Return `key` itself if the message names no position.
    """
    match = PLACE.search(message)
    if match is None:
        return key
    line, column = int(match[1]), int(match[2])
    text = lines[key[0] - 1]
    begin = re.compile(r"[^:]*:\s*").match(text, key[1] - 1)
    if begin is None:
        return key
    value = text[begin.end() :]
    if BLOCK.match(value):
        return _in_block(lines, key[0], line, column, is_folded=value[0] == ">")
    if line > 1 or not value:
        return key
    steps = ESCAPED.get(value[0])
    if steps is None:
        return key[0], begin.end() + column
    before = [step[0] for step in steps.finditer(value[1:])][: column - 1]
    return key[0], begin.end() + 2 + len("".join(before))


def _in_block(
    lines: Sequence[str], first: int, line: int, column: int, *, is_folded: bool
) -> Position:
    """Return the position in a block; a folded block (`>`) counts as one line."""
    indent = len(lines[first]) - len(lines[first].lstrip()) if first < len(lines) else 0
    at = first + line
    while is_folded and at < len(lines) and column > (size := len(lines[at - 1].strip()) + 1):
        column -= size
        at += 1
    return min(at, len(lines)), indent + column
