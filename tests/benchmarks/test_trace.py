"""docs/architecture.md prints the figures that `python -m benchmarks.trace` counts."""

import asyncio
import re

import pytest

from benchmarks.trace import ROOT, count, trace_check, trace_reconcile

pytestmark = pytest.mark.long

FIGURES = re.compile(
    r"([\d,]+) modules,\s+([\d,]+) functions, ([\d,]+) calls,\s+([\d,]+)\s+switches"
)
NEAR = 0.15  # a page is not rewritten for each new call


def printed() -> list[list[int]]:
    """Return the figures of the page: of a reconcile, and of a check."""
    page = (ROOT / "docs/architecture.md").read_text()
    return [[int(number.replace(",", "")) for number in row] for row in FIGURES.findall(page)]


def test_the_page_has_the_figures_of_today() -> None:
    """Each figure is near."""
    check, reconcile = printed()
    for figures, calls in ((reconcile, asyncio.run(trace_reconcile())), (check, trace_check())):
        counted = list(count(calls).values())
        far = [
            (old, new)
            for old, new in zip(figures, counted, strict=True)
            if abs(old - new) > NEAR * old
        ]
        assert far == []
