"""`gatewright policies`: list the presets and the policies."""

import click

from config.presets import presets, summary_of
from config.settings import Settings
from gatewright.console.options import POLICIES, settings_options
from gatewright.console.terminal import say, table
from gatewright.explain.policy_pages import does, summary
from webhook.policy_sets.catalogue import catalogue


@click.command
@settings_options(*POLICIES)
def command(settings: Settings) -> None:
    """List the presets, which --policies takes by name, and the policies for policy sets."""
    del settings  # settings_options has added the policies to the catalogue
    table([(name, summary_of(path)) for name, path in presets().items()], ("PRESET", "FOR"))
    say("")
    rows = [
        (name, each.category, does(each), summary(each))
        for name, each in sorted(catalogue().items())
    ]
    table(rows, ("POLICY", "CATEGORY", "DOES", "SUMMARY"))
