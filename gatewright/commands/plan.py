"""`gatewright plan`: print what the controller would create, or a diff against a cluster."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from config.documents import Document, DocumentError, readable_documents_at
from config.printable import printable
from config.settings import Settings, planner_settings
from controller.runtime.child import fill_initial
from gatewright.checks.inventory import kinds_of
from gatewright.checks.loaded_policies import PoliciesInForce
from gatewright.checks.sources import read_sources
from gatewright.console.options import (
    CLUSTER,
    INSTALLED_IN,
    NAMESPACE,
    POLICIES,
    ChartOptions,
    NamedPath,
    settings_options,
)
from gatewright.console.terminal import complain, show_diff
from gatewright.outputs.redaction import redact
from gatewright.outputs.yaml_text import to_yaml
from gatewright.plans.children import Parent, Planned, has_planned_kind, parent_of, plan_children
from gatewright.plans.differences import Cluster, Difference
from gatewright.processes.planners import planners_of
from kube.client import Client
from kube.credentials import load
from kube.errors import ApiError
from webhook.engine.exceptions import HOME
from webhook.harness.manifests import JudgedManifest

BAD = {"denied": 1, "error": 3}
NOT_PLANNED = "not planned: the controller creates nothing for them"


@click.command
@settings_options("policies", "registry", "controller_account", *POLICIES, *CLUSTER)
@click.option("--diff", is_flag=True, help="print a diff against the cluster of --kubeconfig")
@NAMESPACE
@INSTALLED_IN
@click.argument("files", nargs=-1, required=True, type=NamedPath(), metavar="FILE…")
def command(
    settings: Settings, files: tuple[str, ...], diff: bool, namespace: str, home: str | None
) -> int:
    """Print, as YAML, the objects that the controller would create for custom resources.

    FILE is YAML or JSON, a directory of such files, or - for standard input.

    With --diff, print what would change in the cluster of --kubeconfig; a server-side dry run, so
    nothing is changed. Without --kubeconfig all objects are new. With --policies, the webhook's
    verdict is printed too.
    """
    sources = read_sources(files, ChartOptions())
    documents, problems = sources.documents, sources.problems
    if not (documents or problems):  # an empty output would look like success
        raise DocumentError(f"{', '.join(files)}: no objects")
    planned_documents, parents = list[Document](), list[Parent]()
    planned_kinds = [each for each in documents if has_planned_kind(each)]
    if planned_kinds and (
        others := kinds_of(each for each in documents if not has_planned_kind(each))
    ):
        sources.skipped.add(others, NOT_PLANNED)
    for note in sources.notes:
        complain(f"note: {note}")
    for document in planned_kinds or documents:
        try:
            parents.append(parent_of(document, namespace))
            planned_documents.append(document)
        except DocumentError as error:
            problems.append(str(error))
    now = datetime.now(UTC)
    home = home or settings.namespace or HOME
    policy_documents, unreadable = readable_documents_at(settings.policies)
    policies = PoliciesInForce.read(
        policy_documents,
        home,
        planners_of(settings, home),
        now,
        sources=settings.policies,
        unreadable=unreadable,
    )
    problems += map(str, policies.problems)
    judged = [
        child
        for child in policies.judge_documents(documents, namespace)
        if child.document in planned_documents
    ]
    changed = [
        parent.with_object(child.object) for parent, child in zip(parents, judged, strict=True)
    ]
    try:
        accepted = _print_all(settings, changed, now, problems, diff=diff)
    finally:
        for child in judged:
            _print_verdict(child)
    return max([0 if accepted else 1, *(BAD.get(each.verdict, 0) for each in judged)])


def _print_all(
    settings: Settings, parents: list[Parent], now: datetime, problems: list[str], *, diff: bool
) -> bool:
    """Print the plans, then raise DocumentError for what cannot be read or planned.

    Return whether the API server and the policies accept everything, as far as they were consulted.
    """
    values, accepted = planner_settings(settings), True
    if diff and settings.kubeconfig is not None:
        errors, accepted = asyncio.run(
            _print_differences(settings, settings.kubeconfig, parents, now)
        )
    else:
        children, errors = _all_of(parents, now, values)
        if diff:
            complain("note: without --kubeconfig, every object is shown as new")
            for child in children:
                show_diff(Difference(child, None, child.object).lines())
        else:
            click.echo(
                "---\n".join(
                    f"{child.comment}{to_yaml(redact(fill_initial(child.write)))}"
                    for child in children
                ),
                nl=False,
            )
    if problems or errors:
        raise DocumentError("\n".join([*problems, *errors]))
    return accepted


def _all_of(
    parents: list[Parent], now: datetime, values: Mapping[str, Any]
) -> tuple[list[Planned], list[str]]:
    children, errors = list[Planned](), list[str]()
    for parent in parents:
        try:
            children += plan_children(parent, now, values)
        except DocumentError as error:
            errors.append(str(error))
    return children, errors


async def _print_differences(
    settings: Settings, kubeconfig: Path, parents: list[Parent], now: datetime
) -> tuple[list[str], bool]:
    errors, accepted = list[str](), True
    try:
        async with Client(await load(kubeconfig, settings.context)) as client:
            cluster = Cluster(client, planner_settings(settings), now)
            for parent in parents:
                try:
                    async for difference in cluster.differences(parent):
                        show_diff(difference.lines())
                        accepted = accepted and not difference.note
                except DocumentError as error:
                    errors.append(str(error))
    except ApiError as error:
        raise DocumentError(f"{kubeconfig}: cannot read from the API server: {error}") from error
    return errors, accepted


def _print_verdict(judged: JudgedManifest) -> None:
    """Print the webhook's verdict on stderr."""
    if judged.findings:
        complain(f"{judged.document.where()}: {printable(judged.title)}: {judged.verdict}")
    for finding in judged.findings:
        complain(f"  {judged.document.where(finding.path)}: {finding.policy}: {finding.message}")
