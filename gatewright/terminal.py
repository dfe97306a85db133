"""Print for people: aligned, coloured only on a terminal, never wrapped or cut where a machine reads."""

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Self, TypeVar

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

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
}


def console() -> Console:
    """Return a console on stdout."""
    is_terminal = sys.stdout is not None and sys.stdout.isatty()
    return Console(highlight=False, soft_wrap=True, width=None if is_terminal else 10_000)


class Progress:
    """A counter on standard error, on a terminal only, for what takes more than a second; a context manager."""

    def __init__(self, done: str, total: int | None = None) -> None:
        """Take the word for what was done, and how much there is to do where that is known."""
        self._done = done
        self._of = "" if total is None else f" of {total:,}"
        self._number = 0
        self._is_shown = sys.stderr is not None and sys.stderr.isatty()
        self._next = time.monotonic() + 1

    def __enter__(self) -> Self:
        return self

    def advance(self) -> None:
        """Count one more."""
        self._number += 1
        if self._is_shown and time.monotonic() >= self._next:
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


def colour(text: str, style: str) -> str:
    """Return a text in a style of STYLES, as a terminal shows it; unchanged where the style is empty."""
    if not style:
        return text
    words = style.split()
    hue = next((word for word in words if word not in ("bold", "dim")), None)
    return click.style(text, fg=hue, bold="bold" in words or None, dim="dim" in words or None)


def styled(word: str) -> Text:
    """Return a verdict in its colour."""
    return Text(word, style=STYLES.get(word, ""))


def table(rows: Iterable[Sequence[str | Text]], head: Sequence[str] = ()) -> Table:
    """Return rows as aligned columns; a last column that is too long wraps within itself on a terminal."""
    drawn = Table(box=None, pad_edge=False, show_header=bool(head), header_style="bold", padding=(0, 2, 0, 0))
    width = len(head)
    for row in rows:
        cells = [cell if isinstance(cell, Text) else Text(cell) for cell in row]
        if not drawn.columns:
            for index in range(len(cells)):
                drawn.add_column(head[index] if index < width else "", no_wrap=index < len(cells) - 1)
        drawn.add_row(*cells)
    return drawn
