"""`gatewright crds`."""

import click

from config.crds import render


@click.command
def command() -> None:
    """Print the CustomResourceDefinitions, ready for `kubectl apply -f -`."""
    click.echo("---\n".join(render().values()), nl=False)
