"""Print for people: aligned, coloured only on a terminal, never wrapped or cut where a machine reads."""

import sys
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

STYLES = {
    "allowed": "green",
    "passed": "green",
    "mutated": "cyan",
    "warned": "yellow",
    "unmatched": "dim",
    "denied": "red",
    "failed": "red",
    "error": "bold red",
}


def console() -> Console:
    """Return a console on stdout."""
    is_terminal = sys.stdout is not None and sys.stdout.isatty()
    return Console(highlight=False, soft_wrap=True, width=None if is_terminal else 10_000)


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
