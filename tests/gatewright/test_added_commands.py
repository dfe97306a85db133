"""Commands that packages add, and Gatewright's own tools, which its image leaves out."""

import sys

import pytest

from gatewright.cli import TOOLS, main
from tests.gatewright.packages import declare, installed

MODULE = """
import click

@click.command
@click.argument("team")
def command(team):
    '''List the owners of a team. With more than one sentence.'''
    click.echo(f"owners of {team}")
"""


@pytest.fixture
def run(capsys):
    """Run the command line; return exit code, stdout and stderr."""

    def _run(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        out, err = capsys.readouterr()
        return ended.value.code, out, err

    return _run


def test_a_package_adds_a_command(run, tmp_path):
    """It is listed last, and runs."""
    (tmp_path / "our_owners.py").write_text(MODULE)
    declare(tmp_path, "gatewright.commands", owners="our_owners:command")
    with installed(tmp_path):
        assert run("owners", "shop") == (0, "owners of shop\n", "")
        last = run("--help")[1].splitlines()[-1]
    assert last.split(maxsplit=1) == ["owners", "List the owners of a team."]


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("check", "our_owners:command", 'a command "check" already exists'),
        ("doctor", "our_owners:command", 'a command "doctor" already exists'),
        ("owners", "our_owners:MODULE", "not a command; it must name a click.Command"),
        (
            "owners",
            "our_nothing:command",
            "cannot be imported: ModuleNotFoundError: No module named 'our_nothing'",
        ),
    ],
)
def test_an_unusable_command_is_reported(run, tmp_path, name, value, error):
    """The message names the entry point."""
    (tmp_path / "our_owners.py").write_text(f"{MODULE}\nMODULE = 1\n")
    declare(tmp_path, "gatewright.commands", **{name: value})
    with installed(tmp_path):
        code, out, err = run("owners", "shop")
    assert (code, out) == (3, "")
    assert err.endswith(f": {error}\n")
    assert f"entry point {name}" in err


@pytest.mark.parametrize("tool", TOOLS)
def test_a_tool_that_is_not_installed_is_named(run, monkeypatch, tmp_path, tool):
    """The message says where it is to be had, as it does in the image."""
    monkeypatch.setitem(sys.modules, "gatewright.tools", None)
    with installed(tmp_path):
        code, out, err = run(tool, "x")
        assert tool not in run("--help")[1].partition("Commands:")[2].split()
    assert (code, out) == (2, "")
    assert err.endswith(
        f'Error: the command "{tool}" is not installed: Gatewright\'s image does not have it; '
        "`pipx install` and `uv tool install` of Gatewright do\n"
    )
