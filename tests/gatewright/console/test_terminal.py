"""Output for people: whole words and colours on a terminal, plain lines in a pipe."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from gatewright.console.terminal import table, wrap
from tests.gatewright.started import COMMAND
from tests.pseudo_terminal import on_a_terminal

ROOT = Path(__file__).parents[3]
CHECK = (
    "check",
    "--policies",
    "config/policies/production.yaml",
    "-n",
    "production",
    "docs/shop.yaml",
)


def shown(*arguments, columns=80, **environment):
    """The screen of a terminal after a command."""
    known = {
        name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS")
    }
    return on_a_terminal(
        [COMMAND, *arguments], ROOT, {**known, "TERM": "xterm", **environment}, columns
    )[1]


def test_lines_are_broken_between_words():
    """Long words stay whole; continuation lines are indented."""
    assert wrap("one two-three four", 9, "  ") == ["one", "  two-three", "  four"]
    assert wrap("one two", None) == ["one two"]
    assert wrap("", 10) == [""]


def test_a_table_in_a_pipe_has_no_trailing_blanks(capsys):
    """Columns are aligned, and the last one is not padded."""
    table([("denied", "a", "long " * 30), ("error", "bcd", "")], ("VERDICT", "X", "Y"))
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["VERDICT  X    Y", f"denied   a    {('long ' * 30).rstrip()}", "error    bcd"]


COVERAGE = ("test", "--coverage", "tests/policies/image_signatures.yaml")


@pytest.mark.long
@pytest.mark.parametrize(
    "arguments",
    [CHECK, COVERAGE, ("policies",), ("explain", "replica-limits"), ("--help",)],
    ids=" ".join,
)
def test_nothing_is_wider_than_the_terminal(arguments):
    """At 80 columns only single words may be longer; the words are the same as in a pipe."""
    screen = re.sub(r"\x1b\[[\d;]*[mK]", "", shown(*arguments))
    piped = subprocess.run([COMMAND, *arguments], cwd=ROOT, capture_output=True, text=True).stdout
    assert screen.split() == piped.split()
    assert [line for line in screen.splitlines() if len(line) > 80 and len(line.split()) > 1] == []
    assert [line for line in piped.splitlines() if line != line.rstrip()] == []


@pytest.mark.long
def test_errors_are_broken_between_words():
    """Standard error is wrapped too."""
    assert shown("check", "docs/shop.yaml", columns=72) == (
        "no policies given: name policy sets with --policies, or a cluster that\n    has some with --kubeconfig\n"
    )


@pytest.mark.long
def test_colours_need_a_terminal_and_no_opt_out():
    """NO_COLOR is respected, and a terminal without escape codes gets none."""
    assert "\x1b[31mdenied\x1b[0m" in shown(*CHECK)
    assert "\x1b[" not in shown(*CHECK, NO_COLOR="1")
    assert "\x1b[" not in shown(*CHECK, TERM="dumb")


@pytest.mark.long
def test_a_diff_has_colours():
    """Removed lines are red, added lines are green."""
    screen = shown(*CHECK, "--diff")
    assert "\x1b[31m-  replicas: 11\x1b[0m\n\x1b[32m+  replicas: 10\x1b[0m\n" in screen
