"""`gatewright rbac`: print RBAC rules for the kinds of packages.

The chart has the rules for Gatewright's own kinds.
"""

import click
import yaml

from config.faults import did_you_mean
from config.settings import Settings
from controller.reconcilers import own_kinds, planned_kinds
from controller.rights import roles
from gatewright.console.options import Namespace, settings_options
from webhook.engine.exceptions import HOME

WEBHOOK = "gatewright-webhook"


@click.command
@settings_options("controller_account")
@click.option(
    "--namespace",
    "home",
    type=Namespace(),
    metavar="NAME",
    help=f"namespace Gatewright is installed in [{HOME}]",
)
@click.option(
    "--webhook-account", default=WEBHOOK, help=f"ServiceAccount of the webhook [{WEBHOOK}]"
)
@click.argument("kinds", nargs=-1, metavar="[KIND…]")
def command(
    settings: Settings, kinds: tuple[str, ...], home: str | None, webhook_account: str
) -> None:
    """Print ClusterRoles and their bindings for the kinds of installed packages, or for each KIND.

    One ClusterRole is bound to the controller's ServiceAccount and, for kinds with /scale, one to
    the webhook's. The others are aggregated to the cluster's view, edit and admin. The output is
    YAML for `kubectl apply -f -`.
    """
    by_name = {kind.resource.kind: kind for kind in planned_kinds()}
    for kind in kinds:
        if kind not in by_name:
            raise click.BadParameter(
                f'no kind "{kind}"{did_you_mean(kind, by_name)}', param_hint="KIND"
            )
    selected = [by_name[each] for each in kinds] or [
        kind for kind in by_name.values() if kind not in own_kinds()
    ]
    if not selected:
        raise click.UsageError(
            "no installed package adds a kind; the chart has the RBAC rules for all others"
        )
    home, controller = home or settings.namespace or HOME, settings.controller_account
    objects = [each for kind in selected for each in roles(kind, home, controller, webhook_account)]
    click.echo(yaml.safe_dump_all(objects, sort_keys=False), nl=False)
