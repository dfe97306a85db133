"""Draws terminal output as an SVG: coloured text, wrapped between words."""

import re
import textwrap
from collections.abc import Iterable, Iterator
from html import escape

COLUMNS = 104
CHARACTER, LINE, MARGIN, FONT = 8.1, 20, 24, 13.5  # pixels
BAR = 36  # the height of the title bar
SPACES = re.compile(r"^ +| {2,}")
SGR = re.compile(r"\x1b\[([\d;]*)m")
COLOURS = {"31": "#ff9b93", "32": "#8fd694", "33": "#f0bd6a", "36": "#8ab8ff"}
HEAD = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" role="img" aria-labelledby="t">
<title id="t">{title}</title>
<rect width="100%" height="100%" rx="10" fill="#14171e"/>
<circle cx="20" cy="18" r="6" fill="#ff5f57"/><circle cx="40" cy="18" r="6" fill="#febc2e"/><circle cx="60" cy="18" r="6" fill="#28c840"/>
<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="{font}" fill="#e8eaf0">
"""

Run = tuple[str, str]  # a text, and the attributes of its element


def drawn(title: str, lines: Iterable[str]) -> str:
    """Return the SVG of lines with escape codes for colours."""
    rows = [row for line in lines for row in wrapped(line)]
    width = 2 * MARGIN + COLUMNS * CHARACTER
    height = BAR + MARGIN + len(rows) * LINE
    head = HEAD.format(width=width, height=height, title=escape(title), font=FONT)
    texts = "".join(
        f'<text x="{MARGIN}" y="{BAR + (number + 1) * LINE}">{"".join(map(element, runs(row)))}</text>\n'
        for number, row in enumerate(rows)
    )
    return f"{head}{texts}</g>\n</svg>\n"


def wrapped(line: str) -> list[str]:
    """Return the rows of a line; a coloured line is never wrapped."""
    if SGR.search(line) or len(line) <= COLUMNS:
        return [line]
    indent = " " * (len(line) - len(line.lstrip(" -")))
    return textwrap.wrap(line, COLUMNS, subsequent_indent=indent, break_on_hyphens=False)


def runs(row: str) -> Iterator[Run]:
    """Yield the parts of a row that have the same attributes."""
    fill, bold = "", False
    for number, part in enumerate(SGR.split(row)):
        if number % 2:
            for code in part.split(";"):
                fill = "" if code in ("", "0") else COLOURS.get(code, fill)
                bold = code == "1" or (bold and code not in ("", "0"))
        elif part:
            yield part, f' fill="{fill}"' * bool(fill) + ' font-weight="bold"' * bold


def element(run: Run) -> str:
    """Return a part of a row as an element."""
    text, attributes = run
    # SVG collapses spaces, except non-breaking ones
    text = escape(SPACES.sub(lambda found: "\u00a0" * len(found[0]), text), quote=False)
    return f"<tspan{attributes}>{text}</tspan>" if attributes else text


def text_of(svg: str) -> str:
    """Return the text of an SVG, with one space between words."""
    texts = re.findall(r"<text [^>]*>(.*?)</text>", svg)
    plain = re.sub(r"<[^>]+>", "", " ".join(texts))
    for name, character in (("lt", "<"), ("gt", ">"), ("amp", "&")):
        plain = plain.replace(f"&{name};", character)
    return " ".join(plain.split())
