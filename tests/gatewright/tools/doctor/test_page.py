"""The page for users has every check."""

from pathlib import Path

from gatewright.tools.doctor.reporting import CHECKS


def test_the_page_names_every_check():
    """docs/doctor.md has a row for each."""
    page = Path("docs/doctor.md").read_text()
    assert [name for name in CHECKS if f"`{name}`" not in page] == []
