"""The picture in the README matches the current output; `make recording` renews it."""

import re

from tests.gatewright.test_readme import README, ROOT
from tests.recording.__main__ import COMMANDS
from tests.recording.terminal import drawn, text_of


def test_the_picture_shows_the_readmes_denial(capsys, monkeypatch):
    """Every violation with its fix, by the API server and by `check`."""
    picture = text_of((ROOT / "docs/denial.svg").read_text())
    found = re.findall(r"^(?:  docs/shop\.yaml:\d+:|-) ([a-z-]+: .+)$", README, re.MULTILINE)
    assert len(found) == 6
    assert [each for each in found if each not in picture] == []
    assert [each for each in COMMANDS if f"$ {each}" not in picture] == []


def test_colours_and_wrapped_lines_are_drawn():
    """No text is lost."""
    svg = drawn("a title", ["\x1b[31mdenied\x1b[0m  <it>", "- " + "word " * 40])
    assert '<tspan fill="#ff9b93">denied</tspan>\u00a0\u00a0&lt;it&gt;</text>' in svg
    assert text_of(svg) == f"denied <it> - {' '.join(['word'] * 40)}"
