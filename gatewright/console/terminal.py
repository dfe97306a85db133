"""Output for people: aligned, wrapped between words and coloured on a terminal.

Without a terminal, output is never wrapped or padded.
"""

import os
import shutil
import sys
import textwrap
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Self, TypeVar

import click

from config.printable import printable, printable_lines

Item = TypeVar("Item")
STYLES = {
    "allowed": "green",
    "passed": "green",
    "mutated": "cyan",
    "warned": "yellow",
    "audited": "yellow",
    "unmatched": "dim",
    "denied": "red",
    "failed": "red",
    "error": "bold red",
    "critical": "red",
    "warning": "yellow",
    "note": "cyan",
    "newly denied": "red",
    "newly warned": "yellow",
    "no longer denied": "green",
    "no longer warned": "green",
    "patched otherwise": "cyan",
}
DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan", "#": "yellow"}
GAP, INDENT = "  ", "    "
NARROW = 32  # columns; a narrower last cell is printed on separate lines


def columns() -> int | None:
    """Return the width of the terminal on standard output; None if it is not a terminal."""
    return (
        shutil.get_terminal_size().columns
        if sys.stdout is not None and sys.stdout.isatty()
        else None
    )


def has_colours() -> bool:
    """Whether standard output is a terminal that shows colours, and whose user wants them."""
    is_dumb = os.environ.get("TERM") == "dumb"
    return columns() is not None and not is_dumb and not os.environ.get("NO_COLOR")


def say(text: str, style: str = "", indent: str = "") -> None:
    """Print lines, in a style of STYLES if colours are on; `indent` is for wrapped parts."""
    for line in text.split("\n"):
        for part in wrap(line, columns(), indent):
            echo(part, style)


def echo(line: str, style: str = "") -> None:
    """Print a text with escaped control characters, in a style of STYLES if colours are on."""
    click.echo(colour(printable_lines(line), style if has_colours() else ""), color=True)


def show_diff(lines: Iterable[str]) -> None:
    """Print the lines of a unified diff; removed and added lines are coloured."""
    for line in lines:
        echo(line, "bold" if line.startswith(("---", "+++")) else DIFF_STYLES.get(line[:1], ""))


def complain(text: str) -> None:
    """Print lines on standard error, wrapped on a terminal as in `say`."""
    is_terminal = sys.stderr is not None and sys.stderr.isatty()
    width = os.get_terminal_size(sys.stderr.fileno()).columns if is_terminal else 0
    for line in printable_lines(text).split("\n"):
        for part in wrap(line, width or None, INDENT):
            click.echo(part, err=True)


def table(rows: Iterable[Sequence[str]], head: Sequence[str]) -> None:
    """Print rows as aligned columns; a verdict in the first column is coloured."""
    lines = [[*map(printable, row)] for row in rows]
    widths = [max(map(len, cells)) for cells in zip(head, *lines, strict=True)][:-1]
    start = sum(widths) + len(GAP) * len(widths)
    width = columns()
    is_narrow = width is not None and width - start < NARROW
    for row in (head, *lines):
        cells = [cell.ljust(size) for cell, size in zip(row, widths, strict=False)]
        style = "bold" if row is head else STYLES.get(row[0], "")
        cells[0] = colour(cells[0], style if has_colours() else "")
        first = GAP.join(cells)
        if is_narrow:
            click.echo(first.rstrip(), color=True)
            first, start = INDENT, len(INDENT)
        else:
            first += GAP
        last = wrap(row[-1], None if width is None else width - start)
        click.echo((first + last[0]).rstrip(), color=True)
        for part in last[1:]:
            click.echo(" " * start + part)


def wrap(text: str, width: int | None, indent: str = "") -> list[str]:
    """Split a line into lines of at most `width` columns, between words only.

    Indent all but the first.
    """
    if width is None or len(text) <= width:
        return [text]
    return textwrap.wrap(
        text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    ) or [""]


def colour(text: str, style: str) -> str:
    """Return a text with the escape codes of a style of STYLES; unchanged for an empty style."""
    if not style:
        return text
    words = style.split()
    hue = next((word for word in words if word not in ("bold", "dim")), None)
    return click.style(text, fg=hue, bold="bold" in words or None, dim="dim" in words or None)


class Progress:
    """A counter on standard error, on a terminal only, for work longer than a second.

    A context manager.
    """

    def __init__(self, done: str, total: int | None = None) -> None:
        """Use this word for the finished items, and this total if it is known."""
        self._done = done
        self._of = "" if total is None else f" of {total:,}"
        self._number = 0
        self._is_on_a_terminal = sys.stderr is not None and sys.stderr.isatty()
        self._is_shown = False
        self._next = time.monotonic() + 1

    def __enter__(self) -> Self:
        return self

    def advance(self) -> None:
        """Count one more finished item."""
        self._number += 1
        if self._is_on_a_terminal and time.monotonic() >= self._next:
            self._is_shown = True
            self._next = time.monotonic() + 0.1
            click.echo(f"\r{self._done} {self._number:,}{self._of}", nl=False, err=True)

    def __exit__(self, *exception: object) -> None:
        if self._is_shown:
            click.echo("\r\033[K", nl=False, err=True)


def progress(items: Sequence[Item], done: str) -> Iterator[Item]:
    """Yield the items; on a terminal, show how many are done."""
    with Progress(done, len(items)) as shown:
        for item in items:
            yield item
            shown.advance()
