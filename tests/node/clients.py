"""Clients of a PostgreSQL in pods: one writes row after row, one commits wherever it may; and what they saw."""

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from tests.node.installation import Installation
from tests.node.test_databases import POSTGRESQL, primary, sql_in

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
# Commits in each instance that is writable, by connections that stay open: an old primary must acknowledge none of
# them once another one commits. The time is that of the statement's begin; the log has what was acknowledged.
READ = """
watch() {
  while :; do
    psql "${URL/@db:/@$1.db-headless:}&tcp_user_timeout=5000" -qXAt <<<'SELECT commit() \\watch 0.1' 2>/dev/null |
      grep --line-buffered ^commit
    sleep 0.2
  done
}
for ordinal in 0 1 2; do watch "db-$ordinal" & done
wait
"""
COMMIT = """
SET ROLE app;
CREATE TABLE rows (id int);
CREATE TABLE commits (instance text);
CREATE FUNCTION commit() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  IF pg_is_in_recovery() THEN RETURN ''; END IF;
  INSERT INTO commits VALUES (inet_server_addr());
  RETURN format(
    'commit %s %s %s',
    extract(epoch FROM clock_timestamp()),
    ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int,
    inet_server_addr()
  );
END $$
"""
RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "runAsUser": 999,
    "seccompProfile": {"type": "RuntimeDefault"},
}


class Commit(NamedTuple):
    """What the reader saw: when a commit began, the timeline, and the instance's address."""

    began: float
    timeline: int
    at: str


def start_clients(installation: Installation, namespace: str) -> None:
    """Create the tables of the database `db`, its writer and its reader, and wait until these run."""
    sql_in(installation, namespace, primary(installation, namespace), COMMIT)
    start_client(installation, namespace, "writer", WRITE)
    start_client(installation, namespace, "reader", READ)


def start_writer(installation: Installation, namespace: str, database: str) -> None:
    """Create the pod of a writer to a database, and wait until its container runs."""
    start_client(installation, namespace, "writer", WRITE, database)


def start_client(
    installation: Installation, namespace: str, name: str, script: str, database: str = "db"
) -> None:
    """Create the pod of a client of a database, and wait until its container runs."""
    installation.node.apply([client(namespace, name, script, database)])
    ready = ("--for=condition=Ready", f"pod/{name}", "--timeout=50s")
    installation.cluster.kubectl("wait", *ready, "-n", namespace)


def client(namespace: str, name: str, script: str, database: str) -> dict:
    """Return the pod of a client: the user `app` of the database `shop`."""
    secret = {"secretKeyRef": {"name": f"{database}-user-app", "key": "password"}}
    url = f"postgresql://app:$(WORD)@{database}:5432/shop?connect_timeout=2"
    container = {
        "name": name,
        "image": IMAGE,
        "command": ["bash", "-c", script],
        "env": [{"name": "WORD", "valueFrom": secret}, {"name": "URL", "value": url}],
        "securityContext": RESTRICTED,
        "resources": POSTGRESQL["spec"]["resources"],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 1},
    }


def acknowledged_in(installation: Installation, namespace: str) -> list[tuple[int, float]]:
    """Return the rows that a writer knows of, with their times."""
    log = installation.plane.resources.logs("writer", namespace)
    lines = [line.split() for line in log if line.startswith("row ")]
    return [(int(row), float(time)) for _, row, time in lines]


def stored_in(installation: Installation, namespace: str) -> set[int]:
    """Return the rows that the primary has."""
    at = primary(installation, namespace)
    return set(map(int, sql_in(installation, namespace, at, "SELECT id FROM rows").split()))


def committed_in(installation: Installation, namespace: str) -> list[Commit]:
    """Return the reader's commits in their order."""
    log = installation.plane.resources.logs("reader", namespace)
    lines = [line.split() for line in log if line.startswith("commit ")]
    return sorted(Commit(float(began), int(timeline), at) for _, began, timeline, at in lines)


def longest_gap(rows: list[tuple[int, float]], since: int) -> float:
    """Return the longest time in seconds without a row, from the row `since` on."""
    times = [time for row, time in rows if row >= since]
    return max(later - earlier for earlier, later in pairwise(times))


def commits_of_earlier_primaries(commits: Iterable[Commit]) -> list[Commit]:
    """Return the commits that began after the first one of a later primary."""
    seen, newest, late = set(), None, []
    for commit in commits:
        writer = commit.timeline, commit.at
        if writer not in seen:
            seen.add(writer)
            newest = writer
        elif writer != newest:
            late.append(commit)
    return late
