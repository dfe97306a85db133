"""Hostile names: no name of a file or an object becomes a command in any output, such as in a fork's pull request."""

import json
from pathlib import Path

import pytest

from gatewright.cli import main
from gatewright.outputs.choice import EXACT, FORMATS

EVIL = "a\\n::error::pwned\\x1b[2J\\u202e"
OBJECT = f"""\
apiVersion: v1
kind: Pod
metadata: {{name: "{EVIL}"}}
spec:
  hostNetwork: true
  containers: [{{name: "{EVIL}", image: a}}]
"""


@pytest.fixture
def fork(tmp_path: Path) -> Path:
    """A directory with an object and files whose names are commands."""
    name = "bad\n::error::pwned\x1b[2J.yaml"
    (tmp_path / name).write_text(OBJECT)
    (tmp_path / f"un{name}").write_text("a: [")
    (tmp_path / "empty\n::warning::pwned.yaml").write_text("")
    return tmp_path


@pytest.fixture
def check(fork, capsys, monkeypatch):
    """Check the fork in a format; return the exit code and both streams."""
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)

    def run(format):
        with pytest.raises(SystemExit) as ended:
            main(["check", "--policies", "baseline", "-o", format, str(fork)])
        return ended.value.code, *capsys.readouterr()

    return run


@pytest.mark.parametrize("format", [each for each in FORMATS if each not in EXACT])
def test_no_name_starts_a_line_or_moves_the_cursor(check, format):
    """No format prints a command on standard output or standard error."""
    code, out, err = check(format)
    assert code == 3
    for stream in (out, err):
        assert "\x1b" not in stream
        assert "\u202e" not in stream
        own = [line for line in stream.splitlines() if line.startswith("::") and "pwned" in line]
        assert [
            line for line in own if not line.startswith(("::error file=", "::warning file="))
        ] == []
        assert "pwned" not in [line.partition("::")[2].partition("::")[2] for line in own]
    assert "pwned" in out + err


@pytest.mark.parametrize("format", EXACT)
def test_formats_of_programs_escape_by_themselves(check, format):
    """They have no control character, so that no name starts a line."""
    _, out, _ = check(format)
    assert "\x1b" not in out
    assert "pwned" in out


def test_formats_of_programs_keep_names_as_they_are(check):
    """JSON escapes by itself."""
    _, out, _ = check("json")
    (result,) = json.loads(out)["results"]
    assert result["name"] == "a\n::error::pwned\x1b[2J\u202e"
