"""`python -m benchmarks.reviews.document RUN.json`: write a run into docs/performance.md."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.cluster import ROOT
from benchmarks.reviews.bars import tables

PAGE = ROOT / "docs" / "performance.md"
BEGIN, END = "<!-- begin: one run -->\n", "<!-- end: one run -->\n"


def written(page: str, run: dict[str, Any]) -> str:
    """Return the page with the run's tables between its marks."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{''.join(_markdown(run))}{END}{after}"


def _markdown(run: dict[str, Any]) -> Iterator[str]:
    machine = run["machine"]
    yield f"\n{machine['cores']} cores, Python {machine['python']}, {machine['go']};"
    yield f" medians of {run['rounds']} interleaved rounds of {run['reviews']:,} reviews.\n"
    for title, columns, rows in tables(run):
        yield f"\n### {title}\n\n"
        yield from (
            f"| {' | '.join(line)} |\n" for line in (columns, ["---"] * len(columns), *rows)
        )
    yield "\n"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(), json.loads(Path(sys.argv[1]).read_text())))
