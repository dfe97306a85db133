"""`gatewright crds`: print the CustomResourceDefinitions of all kinds."""

import click

from config import crds
from config.faults import did_you_mean
from controller.reconcilers import planned_kinds


@click.command
@click.argument("kinds", nargs=-1, metavar="[KIND…]")
def command(kinds: tuple[str, ...]) -> None:
    """Print the CustomResourceDefinitions of all kinds, or of each KIND, for `kubectl apply`."""
    types = dict.fromkeys([*crds.kinds(), *(kind.type for kind in planned_kinds())])
    names = {each.definition.kind for each in types}
    for kind in kinds:
        if kind not in names:
            raise click.BadParameter(
                f'no kind "{kind}"{did_you_mean(kind, names)}', param_hint="KIND"
            )
    selected = [each for each in types if not kinds or each.definition.kind in kinds]
    click.echo("---\n".join(crds.render(selected).values()), nl=False)
