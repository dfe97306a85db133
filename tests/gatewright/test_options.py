"""Every option of every command is written in a test, or is a setting, each of which has its own test."""

import re
from pathlib import Path

import click

from config.settings import Settings
from gatewright.cli import gatewright

TESTS = Path(__file__).parents[1]
# Of every command: `test_settings` tries them.
SHARED = {"help", "config"}


def own_options() -> set[tuple[str, ...]]:
    """Return the spellings of each option that is no setting."""
    context = click.Context(gatewright)
    commands = [gatewright.get_command(context, name) for name in gatewright.list_commands(context)]
    return {
        (*option.opts, *option.secondary_opts)
        for command in commands
        if command is not None
        for option in command.params
        if isinstance(option, click.Option)
        and option.name not in SHARED | Settings.model_fields.keys()
    }


def test_every_option_is_tried() -> None:
    """With any of its spellings."""
    words = {
        word
        for file in TESTS.rglob("*.py")
        for word in re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", file.read_text())
    }
    assert {option for option in own_options() if not words & set(option)} == set()
