"""`gatewright doctor`: find problems in a cluster's admission, Gatewright's or not."""

import asyncio
from datetime import UTC, datetime

import click

from config.documents import Document
from config.settings import Settings
from controller.audit.listing import Lister, RateLimit
from gatewright.checks.check_report import problem
from gatewright.checks.inventory import kinds_of
from gatewright.checks.sources import read_sources
from gatewright.console.options import CLUSTER, ChartOptions, NamedPath, settings_options
from gatewright.outputs import FAIL_ON, OUTPUTS, InputProblem, Output, SourceLocation, write
from gatewright.tools.doctor import diagnose
from gatewright.tools.doctor.bundles import endpoints
from gatewright.tools.doctor.loading import ClusterReader, ask
from gatewright.tools.doctor.reporting import report
from gatewright.tools.doctor.state import ClusterState, is_read
from kube.client import Client
from kube.credentials import load
from kube.errors import ApiError
from kube.resource import group_kind, title_of

NOTHING_TO_JUDGE = (
    "{files}: no webhook configuration, admission policy, conversion webhook or aggregated API. "
    "A program that registers its webhooks when it runs is judged in a cluster: gatewright doctor "
    "--kubeconfig FILE"
)
REPEATED = "not judged: an earlier object of this name is"
UNUSED = "not judged: no check reads objects of these kinds"
QPS = 50.0  # requests a second at most, as kubectl


@click.command
@settings_options(*CLUSTER)
@OUTPUTS
@FAIL_ON
@click.option(
    "--probe",
    is_flag=True,
    help="connect to each server that the API server calls, and check its certificate",
)
@click.argument("files", nargs=-1, type=NamedPath(), metavar="[FILE…]")
def command(
    settings: Settings,
    files: tuple[str, ...],
    outputs: tuple[Output, ...],
    fail_on: str,
    *,
    probe: bool,
) -> int:
    """Find problems in a cluster's admission: deadlocks, dead webhooks, expired certificates.

    Reads the webhook configurations, admission policies, conversion webhooks and aggregated APIs of
    all programs, with the objects that they depend on, from a cluster or from FILEs. With FILEs
    alone, an absent object does not count as missing. Nothing is written. Each finding names the
    request that will fail and the smallest fix. Critical findings make the exit code 1.
    """
    problems, notes, places = list[InputProblem](), list[str](), dict[str, SourceLocation]()
    if files:
        state = _of_files(files, problems, notes, places)
        served, failed = asyncio.run(ask(endpoints(state))) if probe else ({}, [])
    else:
        state, served, failed = asyncio.run(_of_cluster(settings, problems, notes, probe=probe))
    problems += map(InputProblem, failed)
    hazards = diagnose(state, datetime.now(UTC), served)
    if files and not problems and not places:
        problems.append(InputProblem(f"{', '.join(files)}: no Kubernetes objects"))
    result = report(state, hazards, places, problems, notes)
    if files and not problems and not result.results:
        problems.append(InputProblem(NOTHING_TO_JUDGE.format(files=", ".join(files))))
        result = report(state, hazards, places, problems, notes)
    write(result, outputs)
    return result.exit_code(fail_on)


def _of_files(
    files: tuple[str, ...],
    problems: list[InputProblem],
    notes: list[str],
    places: dict[str, SourceLocation],
) -> ClusterState:
    sources = read_sources(files, ChartOptions())
    problems += map(problem, sources.problems)
    state, read = ClusterState(), dict[tuple[str, str], Document]()
    for document in sources.documents:
        title, (group, _) = title_of(document.value), group_kind(document.value)
        first = read.setdefault((group, title), document)
        if first.value != document.value:
            sources.skipped.add(document.where(), REPEATED)
        places.setdefault(title, SourceLocation(document.source, *document.place()))
    problems += state.read(sources.documents)
    if others := kinds_of(each for each in sources.documents if not is_read(each.value)):
        sources.skipped.add(others, UNUSED)
    notes += sources.notes
    return state


async def _of_cluster(
    settings: Settings, problems: list[InputProblem], notes: list[str], *, probe: bool
) -> tuple[ClusterState, dict[str, bytes], list[str]]:
    try:
        async with Client(await load(settings.kubeconfig, settings.context)) as client:
            reader = ClusterReader(Lister(client, RateLimit(QPS)))
            state = await reader.read()
    except ApiError as error:
        problems.append(InputProblem(f"cannot read from the API server: {error}"))
        return ClusterState(), {}, []
    problems += reader.problems
    notes += reader.notes
    served, failed = await ask(endpoints(state)) if probe else ({}, [])
    return state, served, failed
