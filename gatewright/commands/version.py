"""`gatewright version`."""

import click

from gatewright import __version__


@click.command
def command() -> None:
    """Print the version."""
    click.echo(f"gatewright {__version__}")
