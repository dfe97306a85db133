"""Log lines in JSON and text."""

import io
import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest

from gatewright.processes.logs import JsonLines, Text


def record(
    message: str = "denied", *, error: Exception | None = None, **fields
) -> logging.LogRecord:
    """Return a record as a logger creates it."""
    exc_info = (type(error), error, None) if error else None
    made = logging.LogRecord("gatewright.webhook", logging.INFO, "x.py", 1, message, None, exc_info)
    made.created, made.msecs, made.fields = 1_000_000_000.25, 250.0, fields
    return made


def test_a_json_line_holds_the_fields_beside_the_message():
    """Fields are at the top level, where log stores index them."""
    line = JsonLines().format(record(**{"webapp.name": "shop", "count": 3}))
    assert json.loads(line) == {
        "time": "2001-09-09T01:46:40.250Z",
        "level": "info",
        "logger": "gatewright.webhook",
        "message": "denied",
        "webapp.name": "shop",
        "count": 3,
    }


def test_a_text_line_has_time_level_area_message_and_fields():
    """Terminals get this format."""
    assert Text().format(record(uid="u1")) == "01:46:40 INFO    webhook: denied uid=u1"


@pytest.mark.parametrize("form", [JsonLines(), Text()])
def test_control_characters_never_reach_the_terminal(form):
    """A name can neither forge a line nor change the terminal's colours."""
    line = form.format(record("a\nb", name="\x1b[31m\r\u202eevil"))
    assert all(character.isprintable() or character == "\u202e" for character in line)
    assert "\n" not in line


def test_a_right_to_left_override_is_escaped_in_text():
    """Characters that reorder a line are shown escaped."""
    assert "\\u202e" in Text().format(record(name="\u202e"))


@pytest.mark.parametrize("form", [JsonLines(), Text()])
def test_a_traceback_is_shown(form):
    """An unexpected error is logged with its traceback."""
    assert "ValueError: no" in form.format(record(error=ValueError("no")))


def test_long_values_are_cut():
    """A name of a megabyte is cut."""
    assert len(JsonLines().format(record("m" * 1_000_000, name="n" * 1_000_000))) < 5000


@pytest.fixture
def lines():
    """Return a logger, and what returns its output."""
    stream = io.StringIO()
    logger = logging.Logger("gatewright.webhook")
    logger.addHandler(JsonLines(stream))
    return logger, lambda: [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_logger_writes_a_line_for_each_record(lines):
    """A message takes its values by position or by name; records of other libraries have no fields."""
    logger, written = lines
    logger.info("%s of %d", "two", 3)
    logger.warning("%(found)s of %(all)d", {"found": "two", "all": 3})
    logger.error("100 %", extra={"fields": {"uid": "u1"}})
    assert [(line["level"], line["message"], line.get("uid")) for line in written()] == [
        ("info", "two of 3", None),
        ("warning", "two of 3", None),
        ("error", "100 %", "u1"),
    ]


def test_exc_info_adds_the_traceback(lines):
    """It may be the current or a given exception; None adds none."""
    logger, written = lines
    try:
        raise ValueError("no")
    except ValueError as error:
        logger.exception("failed")
        logger.error("failed", exc_info=error)
        logger.error("failed", exc_info=None)
    exceptions = [line.get("exception", "") for line in written()]
    assert ["test_logs.py" in text and "ValueError: no" in text for text in exceptions] == [
        True,
        True,
        False,
    ]


WRITES = """
import logging, os, sys
from gatewright.processes import logs
logs.install()
log = logging.getLogger("gatewright.process")
log.info("first")
log.info("%d", "no number")
log.info("last")
print("went on", flush=True)
os._exit(0)
"""


def test_lines_are_written_immediately():
    """A process that exits loses no line; a record that cannot be formatted is reported, and the next is written."""
    done = subprocess.run(
        [sys.executable, "-c", WRITES], capture_output=True, check=True, timeout=60, text=True
    )
    lines = done.stderr.splitlines()
    assert json.loads(lines[0])["message"] == "first"
    assert lines[1] == "--- Logging error ---"
    assert json.loads(lines[-1])["message"] == "last"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_process_outlives_a_full_disk():
    """A line that cannot be written is lost, without any other effect."""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", WRITES], stdout=subprocess.PIPE, stderr=full, timeout=60
        )
    assert (done.returncode, done.stdout) == (0, b"went on\n")
