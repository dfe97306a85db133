"""What a log line looks like."""

import json
import logging

import pytest

from gatewright.logs import JsonLines, Text


def record(message: str = "denied", *, error: Exception | None = None, **fields) -> logging.LogRecord:
    """Make a record as a logger would."""
    exc_info = (type(error), error, None) if error else None
    made = logging.LogRecord("gatewright.webhook", logging.INFO, "x.py", 1, message, None, exc_info)
    made.created, made.msecs, made.fields = 1_000_000_000.25, 250.0, fields
    return made


def test_a_json_line_holds_the_fields_beside_the_message():
    """Fields stand at the top level, where a log store indexes them."""
    line = JsonLines().format(record(**{"webapp.name": "shop", "count": 3}))
    assert json.loads(line) == {
        "time": "2001-09-09T01:46:40.250Z",
        "level": "info",
        "logger": "gatewright.webhook",
        "message": "denied",
        "webapp.name": "shop",
        "count": 3,
    }


def test_a_text_line_is_for_people():
    """Time, level, area, message, fields."""
    assert Text().format(record(uid="u1")) == "01:46:40 INFO    webhook: denied uid=u1"


@pytest.mark.parametrize("form", [JsonLines(), Text()])
def test_control_characters_never_reach_the_terminal(form):
    """A name cannot forge a line or colour the terminal."""
    line = form.format(record("a\nb", name="\x1b[31m\r\u202eevil"))
    assert all(character.isprintable() or character == "\u202e" for character in line)
    assert "\n" not in line


def test_a_right_to_left_override_is_escaped_in_text():
    """What reorders a terminal's line is shown as its escape."""
    assert "\\u202e" in Text().format(record(name="\u202e"))


@pytest.mark.parametrize("form", [JsonLines(), Text()])
def test_a_traceback_is_shown(form):
    """An unexpected error brings its traceback."""
    assert "ValueError: no" in form.format(record(error=ValueError("no")))


def test_long_values_are_cut():
    """A megabyte of name makes no megabyte of log."""
    assert len(JsonLines().format(record("m" * 1_000_000, name="n" * 1_000_000))) < 5000
