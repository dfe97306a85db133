"""PostgreSQL's fail-over in pods, under a writer: nothing acknowledged is lost, and another instance takes over."""

from collections.abc import Iterator
from itertools import pairwise

import pytest

from tests.node.conftest import Figures
from tests.node.installation import Installation
from tests.node.test_databases import POSTGRESQL, primary, sql_in, wait_ready

pytestmark = [pytest.mark.node, pytest.mark.long]

NAMESPACE = "fail-over"
IMAGE = "gatewright-postgresql:17"
# A row for each attempt, through the Service; the log has those that were acknowledged, with their times.
WRITE = """
row=0
while :; do
  row=$((row + 1))
  if timeout 3 psql "$URL" -qXAtc "INSERT INTO rows VALUES ($row)" 2>&1 >/dev/null; then
    echo "row $row $EPOCHREALTIME"
  fi
done
"""
RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "runAsUser": 999,
    "seccompProfile": {"type": "RuntimeDefault"},
}


@pytest.fixture(scope="module")
def database(node) -> Iterator[Installation]:
    """A PostgreSQL of three instances, with a writer in a pod."""
    installation = Installation(node)
    installation.have()
    installation.namespace(NAMESPACE)
    three = {**POSTGRESQL["spec"], "replicas": 3}
    about = {"name": "db", "namespace": NAMESPACE}
    node.apply([{**POSTGRESQL, "metadata": about, "spec": three}])
    wait_ready(installation, "postgresql/db", NAMESPACE)
    sql_in(
        installation,
        NAMESPACE,
        primary(installation, NAMESPACE),
        "SET ROLE app; CREATE TABLE rows (id int)",
    )
    start_writer(installation, NAMESPACE, "db")
    yield installation
    installation.cluster.kubectl("delete", "pods/writer", "postgresqls/db", "-n", NAMESPACE)


def start_writer(installation: Installation, namespace: str, database: str) -> None:
    """Create the pod of a writer to a database, and wait until its container runs."""
    installation.node.apply([writer(namespace, database)])
    ready = ("--for=condition=Ready", "pod/writer", "--timeout=50s")
    installation.cluster.kubectl("wait", *ready, "-n", namespace)


def writer(namespace: str, database: str) -> dict:
    """Return the pod of a writer: the user `app` of the database `shop`."""
    secret = {"secretKeyRef": {"name": f"{database}-user-app", "key": "password"}}
    url = f"postgresql://app:$(WORD)@{database}:5432/shop?connect_timeout=2"
    container = {
        "name": "writer",
        "image": IMAGE,
        "command": ["bash", "-c", WRITE],
        "env": [{"name": "WORD", "valueFrom": secret}, {"name": "URL", "value": url}],
        "securityContext": RESTRICTED,
        "resources": POSTGRESQL["spec"]["resources"],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "writer", "namespace": namespace},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 1},
    }


def acknowledged(installation: Installation) -> list[tuple[int, float]]:
    """Return the rows that the writer of this module knows of, with their times."""
    return acknowledged_in(installation, NAMESPACE)


def acknowledged_in(installation: Installation, namespace: str) -> list[tuple[int, float]]:
    """Return the rows that a writer knows of, with their times."""
    log = installation.cluster.kubectl("logs", "writer", "-n", namespace)
    lines = [line.split() for line in log.splitlines() if line.startswith("row ")]
    return [(int(row), float(time)) for _, row, time in lines]


def is_synchronous(installation: Installation) -> bool:
    """Return whether Patroni may promote a standby: it waits for one with all acknowledged rows."""
    state: dict = installation.cluster.get("endpoints/db-sync", NAMESPACE)
    known = state["metadata"]["annotations"]
    is_current = known.get("leader") == primary(installation, NAMESPACE)
    return is_current and bool(known.get("sync_standby"))


FAULTS = {
    "every process killed": "kill -9 -1",
    "frozen for 30 s": "kill -STOP -1",
    "its data deleted": "rm -rf $PGDATA",
    "pod deleted": "",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_lost_primary_is_replaced(database: Installation, figure: Figures, fault: str) -> None:
    """Each acknowledged row is in the primary's table afterwards, and all instances are ready again."""
    database.until("a standby has all that is acknowledged", lambda: is_synchronous(database))
    database.until("rows are written", lambda: len(acknowledged(database)) > 10)
    kubectl, lost = database.cluster.kubectl, primary(database, NAMESPACE)
    before = acknowledged(database)[-1]
    command = FAULTS[fault]
    inside = ("exec", "-n", NAMESPACE, lost, "-c", "postgres", "--")
    if command:
        database.plane.kubectl(*inside, "bash", "-c", command, check=False)
    else:
        kubectl("delete", "pod", lost, "-n", NAMESPACE, "--wait=false")
    last = lambda: acknowledged(database)[-1][0]  # noqa: E731
    database.until("a next row", lambda: last() > before[0] + 30)
    if "STOP" in command:
        database.plane.kubectl(*inside, "bash", "-c", "kill -CONT -1", check=False)
    ready = ("readyReplicas", 3)
    status = lambda: database.cluster.get("postgresql/db", NAMESPACE)["status"]  # noqa: E731
    back = database.until("all are ready", lambda: ready in status().items())
    rows = acknowledged(database)
    times = [time for row, time in rows if row >= before[0]]
    gap = max(later - earlier for earlier, later in pairwise(times))
    now = primary(database, NAMESPACE)
    figure(f"{fault}: {gap:.1f} s without a row, {lost} -> {now}, all ready {back:.1f} s later")
    stored = sql_in(database, NAMESPACE, now, "SELECT id FROM rows").split()
    assert {row for row, _ in rows} <= set(map(int, stored))
