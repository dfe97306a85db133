"""`gatewright plan`: print the objects that the controller would create, or a diff against a cluster."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from config.documents import DocumentError, documents_of
from config.settings import Settings, planner_settings
from gatewright.differences import Cluster, Difference
from gatewright.hidden import hidden
from gatewright.options import CLUSTER, INSTALLED_IN, POLICIES, NamedPath, settings_options
from gatewright.planning import planners_of
from gatewright.plans import Parent, Planned, is_ours, parent_of, planned
from gatewright.policies import HOME, engine_of
from gatewright.terminal import complain, echo
from gatewright.written import written
from kube.client import Client
from kube.credentials import load
from kube.errors import ApiError
from webhook.harness.manifests import Judged, judge

BAD = {"denied": 1, "error": 3}
STYLES = {"+": "green", "-": "red", "@": "cyan", "#": "yellow"}


@click.command
@settings_options("policies", "registry", "controller_account", *POLICIES, *CLUSTER)
@click.option("--diff", is_flag=True, help="print what would change, against the cluster of --kubeconfig or nothing")
@click.option("-n", "--namespace", default="default", help="where objects go that name no namespace [default]")
@INSTALLED_IN
@click.argument("files", nargs=-1, required=True, type=NamedPath(), metavar="FILE…")
def command(settings: Settings, files: tuple[str, ...], diff: bool, namespace: str, home: str | None) -> int:
    """Print, as YAML, what the controller would make of custom resources, all steps of each.

    FILE is YAML or JSON, a directory of such files, or - for standard input.

    With --diff, what that would change: the API server of --kubeconfig is asked what would come of it, and changes
    nothing. Without a kubeconfig all objects are new. With --policies, the webhook's verdict is printed too.
    """
    documents = documents_of(files)
    ours = [document for document in documents if is_ours(document)] or documents
    parents = [parent_of(document, namespace) for document in ours]
    now = datetime.now(UTC)
    home = home or settings.namespace or HOME
    engine = engine_of(settings.policies, home, planners_of(settings, home))
    judged = [each for each in judge(engine, documents, namespace, now) if each.document in ours]
    changed = [parent.with_object(each.object) for parent, each in zip(parents, judged, strict=True)]
    try:
        is_carried_out = _print_all(settings, changed, now, diff=diff)
    finally:
        for each in judged:
            _tell(each)
    return max([0 if is_carried_out else 1, *(BAD.get(each.verdict, 0) for each in judged)])


def _print_all(settings: Settings, parents: list[Parent], now: datetime, *, diff: bool) -> bool:
    """Print what can be planned, and raise DocumentError with what is wrong with the others.

    Tell whether all of it could be carried out, as far as the cluster was asked.
    """
    given, is_carried_out = planner_settings(settings), True
    if diff and settings.kubeconfig is not None:
        wrong, is_carried_out = asyncio.run(_print_differences(settings, settings.kubeconfig, parents, now))
    else:
        made, wrong = _all_of(parents, now, given)
        if diff:
            for each in made:
                _print(Difference(each, None, each.object))
        else:
            click.echo("---\n".join(f"{each.comment}{written(hidden(each.write.object))}" for each in made), nl=False)
    if wrong:
        raise DocumentError("\n".join(wrong))
    return is_carried_out


def _all_of(parents: list[Parent], now: datetime, given: Mapping[str, Any]) -> tuple[list[Planned], list[str]]:
    made, wrong = list[Planned](), list[str]()
    for parent in parents:
        try:
            made += planned(parent, now, given)
        except DocumentError as error:
            wrong.append(str(error))
    return made, wrong


async def _print_differences(
    settings: Settings, kubeconfig: Path, parents: list[Parent], now: datetime
) -> tuple[list[str], bool]:
    wrong, is_carried_out = list[str](), True
    try:
        async with Client(await load(kubeconfig, settings.context)) as client:
            cluster = Cluster(client, planner_settings(settings), now)
            for parent in parents:
                try:
                    async for difference in cluster.differences(parent):
                        _print(difference)
                        is_carried_out = is_carried_out and not difference.note
                except DocumentError as error:
                    wrong.append(str(error))
    except ApiError as error:
        raise DocumentError(f"{kubeconfig}: the API server cannot be asked: {error}") from error
    return wrong, is_carried_out


def _print(difference: Difference) -> None:
    for line in difference.lines():
        style = "bold" if line.startswith(("---", "+++")) else STYLES.get(line[:1], "")
        echo(line, style)


def _tell(judged: Judged) -> None:
    """Say on stderr what the webhook would say."""
    if judged.findings:
        complain(f"{judged.document.where()}: {judged.title}: {judged.verdict}")
    for each in judged.findings:
        complain(f"  {judged.document.where(each.path)}: {each.policy}: {each.message}")
