"""PostgreSQL's fail-over in pods, under clients: nothing acknowledged is lost, and at no moment two primaries commit."""

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from urllib.parse import urlsplit

import pytest

from tests.node.conftest import Figures
from tests.node.installation import Installation
from tests.node.parts import NODE
from tests.node.test_databases import PODS, POSTGRESQL, primary, sql_in, wait_ready

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


@pytest.fixture(scope="module")
def database(node) -> Iterator[Installation]:
    """A PostgreSQL of three instances, with a writer and a reader in pods."""
    installation = Installation(node)
    installation.have()
    installation.namespace(NAMESPACE)
    if os.environ.get("FAULTS") == "all":
        limit_volumes(installation)
    three = {**POSTGRESQL["spec"], "replicas": 3}
    about = {"name": "db", "namespace": NAMESPACE}
    node.apply([{**POSTGRESQL, "metadata": about, "spec": three}])
    wait_ready(installation, "postgresql/db", NAMESPACE)
    sql_in(installation, NAMESPACE, primary(installation, NAMESPACE), COMMIT)
    start_client(installation, NAMESPACE, "writer", WRITE)
    start_client(installation, NAMESPACE, "reader", READ)
    yield installation
    clients = ("pods/writer", "pods/reader", "postgresqls/db")
    installation.cluster.kubectl("delete", *clients, "-n", NAMESPACE)


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


def acknowledged(installation: Installation) -> list[tuple[int, float]]:
    """Return the rows that the writer of this module knows of, with their times."""
    return acknowledged_in(installation, NAMESPACE)


def acknowledged_in(installation: Installation, namespace: str) -> list[tuple[int, float]]:
    """Return the rows that a writer knows of, with their times."""
    log = installation.cluster.kubectl("logs", "writer", "-n", namespace)
    lines = [line.split() for line in log.splitlines() if line.startswith("row ")]
    return [(int(row), float(time)) for _, row, time in lines]


def committed(installation: Installation) -> list[tuple[float, int, str]]:
    """Return the reader's commits in their order: when each began, its timeline, and the instance's address."""
    log = installation.cluster.kubectl("logs", "reader", "-n", NAMESPACE)
    lines = [line.split() for line in log.splitlines() if line.startswith("commit ")]
    return sorted((float(began), int(timeline), at) for _, began, timeline, at in lines)


def is_synchronous(installation: Installation) -> bool:
    """Return whether all are ready, and Patroni may promote a standby: one with all acknowledged rows."""
    state: dict = installation.cluster.get("endpoints/db-sync", NAMESPACE)
    known, now = state["metadata"]["annotations"], primary(installation, NAMESPACE)
    is_current = now != "" and known.get("leader") == now and bool(known.get("sync_standby"))
    return is_current and condition(installation, "Ready") == "True"


def condition(installation: Installation, type: str) -> str | None:
    """Return the status of a condition of the database."""
    status: dict = installation.cluster.get("postgresql/db", NAMESPACE)["status"]
    found = (each["status"] for each in status["conditions"] if each["type"] == type)
    return next(found, None)


Fault = Callable[[Installation, str], Iterator[None]]


def run_in(pod: str, command: str, installation: Installation) -> None:
    """Run a command in an instance's container, which may end with it."""
    inside = ("exec", "-n", NAMESPACE, pod, "-c", "postgres", "--")
    installation.plane.kubectl(*inside, "bash", "-c", command, check=False)


def kill(installation: Installation, lost: str) -> Iterator[None]:
    """End every process of the primary's container."""
    run_in(lost, "kill -9 -1", installation)
    yield


def freeze(installation: Installation, lost: str) -> Iterator[None]:
    """Stop every process of the primary, until there are writes again."""
    run_in(lost, "kill -STOP -1", installation)
    yield
    run_in(lost, "kill -CONT -1", installation)


def delete_data(installation: Installation, lost: str) -> Iterator[None]:
    """Delete the primary's data."""
    run_in(lost, "rm -rf $PGDATA", installation)
    yield


def delete_pod(installation: Installation, lost: str) -> Iterator[None]:
    """Delete the primary's pod."""
    installation.cluster.kubectl("delete", "pod", lost, "-n", NAMESPACE, "--wait=false")
    yield


def restart_all(installation: Installation, lost: str) -> Iterator[None]:
    """Restart the instances one by one for a parameter that PostgreSQL reads at its start."""
    kubectl = installation.cluster.kubectl
    wanted = int(sql_in(installation, NAMESPACE, lost, "SHOW max_connections")) + 20
    parameters = json.dumps({"spec": {"parameters": {"max_connections": wanted}}})
    kubectl("patch", "postgresql/db", "--type=merge", "-p", parameters, "-n", NAMESPACE)
    waits = lambda: condition(installation, "RestartPending") == "True"  # noqa: E731
    installation.until("a restart is pending", waits)
    kubectl("rollout", "restart", "statefulset/db", "-n", NAMESPACE)
    waits = lambda: condition(installation, "RestartPending") is None  # noqa: E731
    installation.until("no restart is pending", waits, within=300.0)
    yield
    now = primary(installation, NAMESPACE)
    assert sql_in(installation, NAMESPACE, now, "SHOW max_connections") == str(wanted)


def drain(installation: Installation, lost: str) -> Iterator[None]:
    """Evict all instances; the only node accepts pods again once the drain has begun."""
    kubectl = installation.cluster.kubectl
    before = uids(installation)
    for uid in before:
        name = before[uid]
        kubectl("cordon", NODE)
        selected = (f"--pod-selector=statefulset.kubernetes.io/pod-name={name}", "--timeout=100s")
        options = ("--delete-emptydir-data", "--ignore-daemonsets")
        installation.plane.kubectl("drain", NODE, *selected, *options, timeout=110)
        kubectl("uncordon", NODE)
        ready = ("wait", f"pod/{name}", "--for=condition=Ready", "-n", NAMESPACE)
        installation.until(f"{name} is replaced", lambda uid=uid: uid not in uids(installation))
        kubectl(*ready, "--timeout=100s")
    yield


def uids(installation: Installation) -> dict[str, str]:
    """Return the names of the instances' pods by their uids."""
    line = '{range .items[*]}{.metadata.uid} {.metadata.name}{"\\n"}{end}'
    listed = ("get", "pods", "-n", NAMESPACE, "-l", PODS, "-o", f"jsonpath={line}")
    return dict(each.split() for each in installation.cluster.kubectl(*listed).splitlines())


def addresses(installation: Installation) -> dict[str, str]:
    """Return the addresses of all pods of the namespace by their names."""
    line = '{range .items[*]}{.metadata.name} {.status.podIP}{"\\n"}{end}'
    listed = ("get", "pods", "-n", NAMESPACE, "-o", f"jsonpath={line}")
    return dict(each.split() for each in installation.cluster.kubectl(*listed).splitlines())


@contextmanager
def dropped(installation: Installation, chain: str, *match: str) -> Iterator[None]:
    """Drop packets of the node that match."""
    run = installation.node.machine.run
    run("iptables", "-I", chain, *match, "-j", "DROP")
    try:
        yield
    finally:
        run("iptables", "-D", chain, *match, "-j", "DROP")


def cut_from_api(installation: Installation, lost: str) -> Iterator[None]:
    """Drop what the primary sends to the API server, for 60 s."""
    port, source = urlsplit(installation.plane.url).port, addresses(installation)[lost]
    with dropped(installation, "INPUT", "-s", source, "-p", "tcp", "--dport", str(port)):
        time.sleep(60)
    yield


def cut_from_standbys(installation: Installation, lost: str) -> Iterator[None]:
    """Drop what the primary and its standbys send to each other, for 60 s."""
    known = addresses(installation)
    with ExitStack() as stack:
        for name in {"db-0", "db-1", "db-2"} - {lost}:
            for pair in ((known[lost], known[name]), (known[name], known[lost])):
                match = ("-s", pair[0], "-d", pair[1])
                stack.enter_context(dropped(installation, "FORWARD", *match))
        time.sleep(60)
    yield


def isolate(installation: Installation, lost: str) -> Iterator[None]:
    """Drop all that the primary sends, except to the reader, for 50 s."""
    known = addresses(installation)
    port = str(urlsplit(installation.plane.url).port)
    with ExitStack() as stack:
        api = ("-s", known[lost], "-p", "tcp", "--dport", port)
        stack.enter_context(dropped(installation, "INPUT", *api))
        for name in {"db-0", "db-1", "db-2", "writer"} - {lost}:
            match = ("-s", known[lost], "-d", known[name])
            stack.enter_context(dropped(installation, "FORWARD", *match))
        time.sleep(50)
    yield


def stop_api(installation: Installation, lost: str) -> Iterator[None]:
    """Freeze the API server for 300 s: it answers nothing."""
    installation.plane.stop("kube-apiserver")
    time.sleep(300)
    installation.plane.cont("kube-apiserver")
    alive = lambda: installation.plane.kubectl("get", "--raw=/readyz", check=False).returncode == 0  # noqa: E731
    installation.until("the API server answers", alive)
    yield


def leave_stale(installation: Installation, lost: str) -> Iterator[None]:
    """Freeze all; the standby that misses rows is alone for 40 s."""
    state = installation.cluster.get("endpoints/db-sync", NAMESPACE)["metadata"]["annotations"]
    current = state["sync_standby"]
    (stale,) = {"db-0", "db-1", "db-2"} - {lost, current}
    run_in(stale, "kill -STOP -1", installation)
    before = acknowledged(installation)[-1][0]
    more = lambda: acknowledged(installation)[-1][0] > before + 30  # noqa: E731
    installation.until("rows are written", more)
    for name in (current, lost):
        run_in(name, "kill -STOP -1", installation)
    run_in(stale, "kill -CONT -1", installation)
    time.sleep(40)
    assert sql_in(installation, NAMESPACE, stale, "SELECT pg_is_in_recovery()") == "t"
    for name in (current, lost):
        run_in(name, "kill -CONT -1", installation)
    yield


def freeze_standby(installation: Installation, lost: str) -> Iterator[None]:
    """Stop every process of the synchronous standby, until there are writes again."""
    state = installation.cluster.get("endpoints/db-sync", NAMESPACE)["metadata"]["annotations"]
    run_in(state["sync_standby"], "kill -STOP -1", installation)
    yield
    run_in(state["sync_standby"], "kill -CONT -1", installation)


def delete_all(installation: Installation, lost: str) -> Iterator[None]:
    """Delete all pods at once, without time to end."""
    force = ("--force", "--grace-period=0", "--wait=false")
    installation.cluster.kubectl("delete", "pods", "-l", PODS, "-n", NAMESPACE, *force)
    yield


def lose_node(installation: Installation, lost: str) -> Iterator[None]:
    """Silence the primary for good, as if its node were gone; its volume does not come back."""
    source = addresses(installation)[lost]
    run_in(lost, "kill -STOP -1", installation)
    with ExitStack() as stack:
        for chain, side in (("INPUT", "-s"), ("FORWARD", "-s"), ("FORWARD", "-d")):
            stack.enter_context(dropped(installation, chain, side, source))
        yield
        kubectl = installation.cluster.kubectl
        kubectl("delete", "pvc", f"data-{lost}", "-n", NAMESPACE, "--wait=false")
        force = ("--force", "--grace-period=0", "--wait=false")
        kubectl("delete", "pod", lost, "-n", NAMESPACE, *force)


def fill_disk(installation: Installation, lost: str) -> Iterator[None]:
    """Fill the primary's volume, until there are writes again."""
    run_in(lost, "cat /dev/zero >/var/lib/postgresql/data/full", installation)
    yield
    claim = ("get", "pvc", f"data-{lost}", "-n", NAMESPACE, "-o", "jsonpath={.spec.volumeName}")
    number = installation.cluster.kubectl(*claim).removeprefix("local-")
    installation.node.machine.run("rm", f"{volumes(installation)}/{number}/full")


def volumes(installation: Installation) -> str:
    """Return the directory of the volumes."""
    return str(installation.node.slot.directory / "volumes")


def limit_volumes(installation: Installation) -> None:
    """Give each volume that nothing uses yet a file system of its own, which can become full."""
    each = 'for at in */; do [ "$(ls -A $at)" ] || mount -t tmpfs -o size=1g tmpfs $at; done'
    installation.node.machine.run("sh", "-c", f"cd {volumes(installation)} && {each}")


FAULTS: dict[str, Fault] = {
    "every process killed": kill,
    "frozen": freeze,
    "its data deleted": delete_data,
    "all restarted": restart_all,
}
# They take minutes: FAULTS=all pytest tests/node/test_fail_over.py
SLOW_FAULTS: dict[str, Fault] = {
    "pod deleted": delete_pod,
    "synchronous standby frozen": freeze_standby,
    "all drained": drain,
    "all pods deleted by force": delete_all,
    "cut from the API server for 60 s": cut_from_api,
    "cut from its standbys for 60 s": cut_from_standbys,
    "cut from all but one client for 50 s": isolate,
    "all frozen but a stale standby for 40 s": leave_stale,
    "API server frozen for 300 s": stop_api,
    "node and volume gone": lose_node,
    "disk full": fill_disk,
}
if os.environ.get("FAULTS") == "all":
    FAULTS |= SLOW_FAULTS


@pytest.mark.parametrize("fault", FAULTS)
def test_a_lost_primary_is_replaced(database: Installation, figure: Figures, fault: str) -> None:
    """Each acknowledged row is in the primary's table afterwards, and all instances are ready again."""
    database.until("a standby has all that is acknowledged", lambda: is_synchronous(database))
    database.until("rows are written", lambda: len(acknowledged(database)) > 10)
    lost, before = primary(database, NAMESPACE), acknowledged(database)[-1]
    steps = FAULTS[fault](database, lost)
    next(steps)
    last = lambda: acknowledged(database)[-1][0]  # noqa: E731
    begun = last()
    database.until("rows after it", lambda: last() > begun + 30)
    next(steps, None)
    ready = ("readyReplicas", 3)
    status = lambda: database.cluster.get("postgresql/db", NAMESPACE)["status"]  # noqa: E731
    back = database.until("all are ready", lambda: ready in status().items())
    rows, commits = acknowledged(database), committed(database)
    times = [time for row, time in rows if row >= before[0]]
    gap = max(later - earlier for earlier, later in pairwise(times))
    now = primary(database, NAMESPACE)
    figure(f"{fault}: {gap:.1f} s without a row, {lost} -> {now}, all ready {back:.1f} s later")
    stored = sql_in(database, NAMESPACE, now, "SELECT id FROM rows").split()
    assert {row for row, _ in rows} <= set(map(int, stored))
    after = [(began, timeline, at) for began, timeline, at in commits if began >= before[1]]
    assert len(after) > 10
    older = [pair for pair in pairwise(commits) if pair[1][1] < pair[0][1]]
    assert older == [], "an earlier primary committed after its successor"
    assert len({(timeline, at) for _, timeline, at in commits}) == len(
        {each[1] for each in commits}
    )
