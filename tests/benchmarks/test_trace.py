"""docs/architecture.md prints the figures that `python -m benchmarks.trace` counts."""

import asyncio
import re
from pathlib import Path

import pytest

from benchmarks.trace import ROOT, count, trace_check, trace_reconcile

pytestmark = pytest.mark.long

FIGURES = re.compile(
    r"([\d,]+) modules,\s+([\d,]+) functions, ([\d,]+) calls,\s+([\d,]+)\s+switches"
)
# What a check of one plain file does not ask: of charts, kustomizations, fixes, exceptions, clusters.
NOT_ASKED = {"charts", "kustomizations", "rendering", "programs", "template_places", "fixes", "fixed_text",
             "exceptions", "impact", "live_cluster"}  # fmt: skip
CHECKS = "gatewright/checks/"
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


def test_a_plain_file_meets_only_what_it_needs() -> None:
    """No function of a module runs that is there for other inputs or outputs."""
    asked = {Path(module).stem for module, _ in trace_check() if module.startswith(CHECKS)}
    existing = {path.stem for path in (ROOT / CHECKS).glob("*.py")}
    assert (asked & NOT_ASKED, NOT_ASKED - existing) == (set(), set())
