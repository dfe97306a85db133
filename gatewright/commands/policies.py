"""`gatewright policies`: list the presets and the policies."""

import click

from config.presets import ALL, presets, summary_of
from config.settings import Settings
from gatewright.console.options import POLICIES, settings_options
from gatewright.console.terminal import say, table
from gatewright.explain.policy_pages import does, summary
from webhook.policy_sets.catalogue import catalogue


@click.command
@settings_options(*POLICIES)
def command(settings: Settings) -> None:
    """List the presets, which --policies takes by name, and the policies for policy sets.

    The rules of Gatewright's own kinds are always in force, and listed last.
    """
    del settings  # settings_options has added the policies to the catalogue
    named = [(name, summary_of(path)) for name, path in presets().items()]
    table([*named, (ALL, "All of these")], ("PRESET", "FOR"))
    ordered = sorted(catalogue().items())
    for always, title in ((False, "POLICY"), (True, "OF OWN KINDS")):
        say("")
        rows = [
            (name, each.category, does(each), summary(each))
            for name, each in ordered
            if each.always is always
        ]
        table(rows, (title, "CATEGORY", "DOES", "SUMMARY"))
