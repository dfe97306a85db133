"""`gatewright migrate`: convert policies of Kyverno, Gatekeeper and Pod Security."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

from config.documents import Document
from config.printable import printable
from config.settings import Settings
from controller.audit.listing import Lister, RateLimit
from gatewright.checks.sources import read_sources
from gatewright.console.options import (
    CLUSTER,
    FILE,
    ChartOptions,
    NamedPath,
    future,
    settings_options,
)
from gatewright.console.terminal import complain, echo
from gatewright.tools.migrate import migrate
from gatewright.tools.migrate.writing import REPORT, files_of, others, write_files
from kube.client import Client
from kube.credentials import load
from kube.errors import ApiError
from kube.resource import Resource
from webhook.messages import count_noun

QPS = 50.0
GROUPS = ("kyverno.io", "gatekeeper.sh")
BESIDE = {("", "Namespace"), ("apiextensions.k8s.io", "CustomResourceDefinition")}
VALID_FOR = timedelta(days=90)


@click.command
@settings_options(*CLUSTER)
@click.option("--output", "directory", type=FILE, required=True, help="new directory to write to")
@click.option(
    "--expires",
    type=click.DateTime(["%Y-%m-%d"]),
    metavar="DATE",
    callback=future,
    help="day on which converted exceptions end [in 90 days]",
)
@click.argument("files", nargs=-1, type=NamedPath(), metavar="[FILE…]")
def command(
    settings: Settings, files: tuple[str, ...], directory: Path, expires: datetime | None
) -> int:
    """Convert policies of Kyverno, Gatekeeper and Pod Security to a policy set.

    Reads FILEs or, without FILEs, the cluster of --kubeconfig, and writes nothing to the cluster.
    A rule is converted only if the result is known to decide the same. Every other rule is listed
    in not-converted.md, with the reason and the nearest equivalent.

    Exit code 0: all rules are converted; 1: some are not; 3: something could not be read (the rest
    is converted).

    Example: gatewright migrate kyverno/ --output policies
    """
    if directory.exists() and not directory.is_dir():
        raise click.UsageError(f"{directory} is not a directory; name a new one")
    if directory.exists() and any(directory.iterdir()):
        raise click.UsageError(f"{directory} exists and is not empty; name a new directory")
    problems, notes = list[str](), list[str]()
    if files:
        sources = read_sources(files, ChartOptions())
        problems += sources.problems
        notes += sources.notes
        documents = sources.documents
    else:
        documents = asyncio.run(_of_cluster(settings, problems))
    end = expires or datetime.now(UTC) + VALID_FOR
    migration = migrate(documents, f"{end:%Y-%m-%d}T00:00:00Z")
    problems += [f"{e.origin.document.where()}: {e.origin.title}: skipped: {e.reason}"
                 for e in migration.skipped]  # fmt: skip
    for line in (*problems, *(f"note: {note}" for note in notes)):
        complain(printable(line))
    for one in migration.unconverted:
        where = one.origin.document.where()
        nearest = f"; nearest: {one.nearest}" if one.nearest else ""
        echo(printable(f"{where}: not converted: {one.origin.title}: {one.reason}{nearest}"))
    if migration.others:
        echo(f"no policies, so not converted: {others(migration)}")
    if not (migration.converted or migration.unconverted):
        complain("nothing is written: no policies of Kyverno, Gatekeeper or Pod Security")
        return 3
    write_files(files_of(migration), directory)
    echo(
        f"{count_noun(len(migration.converted), 'object')} written to {directory}, "
        f"{count_noun(len(migration.unconverted), 'rule')} not converted ({directory / REPORT})"
    )
    return 3 if problems else 1 if migration.unconverted else 0


async def _of_cluster(settings: Settings, problems: list[str]) -> list[Document]:
    try:
        async with Client(await load(settings.kubeconfig, settings.context)) as client:
            lister = Lister(client, RateLimit(QPS))
            read = {(e.group, e.kind): e for e in await client.resources() if _is_read(e)}
            documents = [
                Document.of_object(
                    object | {"apiVersion": resource.api_version, "kind": resource.kind},
                    resource.plural,
                )
                for resource in read.values()
                async for object in lister.objects(resource)
            ]
    except ApiError as error:
        problems.append(f"cannot read from the API server: {error}")
        return []
    problems += [f"{e.plural} cannot be listed: {error}" for e, error in lister.unread.items()]
    return documents


def _is_read(resource: Resource) -> bool:
    is_result = resource.kind.endswith(("Report", "Status", "UpdateRequest", "PodStatus"))
    is_foreign = resource.group.endswith(GROUPS) and not is_result
    return is_foreign or (resource.group, resource.kind) in BESIDE
