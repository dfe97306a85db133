"""PostgreSQL's fail-over in pods, under clients: nothing acknowledged is lost, and at no moment two primaries commit."""

import os
import time
from collections.abc import Iterator

import pytest

from tests.node.clients import (
    IMAGE,
    acknowledged_in,
    commits_of_earlier_primaries,
    committed_in,
    longest_gap,
    start_clients,
    stored_in,
)
from tests.node.conftest import Figures
from tests.node.faults import (
    ALL,
    FAULTS,
    NAMESPACE,
    PROMOTED,
    SLOW_FAULTS,
    UPGRADED,
    condition,
    has_ready,
    limit_volumes,
    wait_for_rows,
)
from tests.node.installation import Installation
from tests.node.test_databases import POSTGRESQL, primary, wait_ready

pytestmark = [pytest.mark.node, pytest.mark.long]

IS_SLOW = os.environ.get("FAULTS") == "all"
STREAMS = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'"


@pytest.fixture(scope="module")
def database(node, request: pytest.FixtureRequest) -> Iterator[Installation]:
    """A PostgreSQL of three instances, with a writer and a reader in pods."""
    installation = Installation(node)
    installation.have()
    installation.namespace(NAMESPACE)
    three = {**POSTGRESQL["spec"], "replicas": len(ALL)}
    if IS_SLOW:
        limit_volumes(installation)
    if any(UPGRADED in item.name for item in request.session.items):
        three |= {"version": "15", "image": IMAGE}
    about = {"name": "db", "namespace": NAMESPACE}
    node.apply([{**POSTGRESQL, "metadata": about, "spec": three}])
    wait_ready(installation, "postgresql/db", NAMESPACE)
    start_clients(installation, NAMESPACE)
    yield installation
    clients = ("pods/writer", "pods/reader", "postgresqls/db")
    installation.cluster.kubectl("delete", *clients, "-n", NAMESPACE)


def is_synchronous(installation: Installation) -> bool:
    """Return whether all are ready, and Patroni may promote a standby: one with all acknowledged rows."""
    state: dict = installation.cluster.get("endpoints/db-sync", NAMESPACE)
    known, now = state["metadata"]["annotations"], primary(installation, NAMESPACE)
    is_current = now != "" and known.get("leader") == now and bool(known.get("sync_standby"))
    return is_current and condition(installation, "Ready")[0] == "True"


def are_back(installation: Installation) -> bool:
    """Return whether all instances are ready, and all but the primary stream from it."""
    now = primary(installation, NAMESPACE)
    psql = ("psql", "-U", "postgres", "-A", "-t", "-q", "-c", STREAMS)
    inside = ("exec", "-n", NAMESPACE, now, "-c", "postgres", "--")
    streaming = installation.plane.kubectl(*inside, *psql, check=False).stdout.strip()
    return streaming == str(len(ALL) - 1) and has_ready(installation, len(ALL))


@pytest.mark.parametrize("fault", SLOW_FAULTS | FAULTS if IS_SLOW else FAULTS)
def test_a_lost_primary_is_replaced(database: Installation, figure: Figures, fault: str) -> None:
    """Each acknowledged row is in the primary's table afterwards, and all instances are ready again.

    Only a person can lose rows: by promoting a standby that misses them.
    """
    database.until("a standby has all that is acknowledged", lambda: is_synchronous(database))
    wait_for_rows(database, 10)
    lost, (before, since) = primary(database, NAMESPACE), acknowledged_in(database, NAMESPACE)[-1]
    steps = (FAULTS | SLOW_FAULTS)[fault](database, lost)
    lasts = next(steps)
    if lasts is None:
        wait_for_rows(database)
    else:
        time.sleep(lasts)
    next(steps, None)
    ended = time.monotonic()
    wait_for_rows(database)
    database.until("all are back", lambda: are_back(database))
    back = time.monotonic() - ended
    rows, commits = acknowledged_in(database, NAMESPACE), committed_in(database, NAMESPACE)
    gap, late = longest_gap(rows, before), commits_of_earlier_primaries(commits)
    missing = {row for row, _ in rows} - stored_in(database, NAMESPACE)
    now, written = primary(database, NAMESPACE), rows[-1][0] - before
    figure(
        f"{fault}: {gap:.1f} s without a row, {len(missing)} of {written} rows lost, {len(late)} "
        f"commits of an earlier primary, {lost} -> {now}, all back {back:.1f} s after its end"
    )
    assert (missing == set()) is (fault != PROMOTED)
    assert late == [], "an earlier primary committed after its successor"
    assert len([commit for commit in commits if commit.began >= since]) > 10
