"""Faults of a PostgreSQL of three instances.

Each is a generator: up to its first `yield` the fault begins, and afterwards it ends. It yields the seconds that the
fault lasts, or None, and then it lasts until there are writes again.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

from tests.node.clients import acknowledged_in
from tests.node.installation import Installation
from tests.node.parts import NODE
from tests.node.test_databases import PODS, primary, sql_in

NAMESPACE = "fail-over"
ALL = {"db-0", "db-1", "db-2"}
FORCE = ("--force", "--grace-period=0", "--wait=false")
Fault = Callable[[Installation, str], Iterator[float | None]]


def last_row(installation: Installation) -> int:
    """Return the newest acknowledged row."""
    return acknowledged_in(installation, NAMESPACE)[-1][0]


def wait_for_rows(installation: Installation, count: int = 30) -> None:
    """Wait until more rows are acknowledged."""
    begun = last_row(installation)
    installation.until("rows are written", lambda: last_row(installation) > begun + count)


def synchronous_standby(installation: Installation) -> str:
    """Return the standby that Patroni may promote."""
    state = installation.cluster.get("endpoints/db-sync", NAMESPACE)["metadata"]["annotations"]
    return str(state["sync_standby"])


def condition(installation: Installation, type: str) -> tuple[str, str]:
    """Return status and reason of a condition of the database; empty texts without one."""
    status: dict = installation.cluster.get("postgresql/db", NAMESPACE)["status"]
    found = (each for each in status["conditions"] if each["type"] == type)
    return next(((each["status"], each["reason"]) for each in found), ("", ""))


def patronictl(installation: Installation, pod: str, command: str) -> None:
    """Run a command of Patroni in an instance, which may outlast its patience."""
    run_in(pod, f"patronictl -c /etc/gatewright/patroni.yml {command}", installation)


def run_in(pod: str, command: str, installation: Installation) -> None:
    """Run a command in an instance's container, which may end with it."""
    inside = ("exec", "-n", NAMESPACE, pod, "-c", "postgres", "--")
    installation.plane.kubectl(*inside, "bash", "-c", command, check=False)


def kill(installation: Installation, lost: str) -> Iterator[float | None]:
    """End every process of the primary's container."""
    run_in(lost, "kill -9 -1", installation)
    yield 0


def freeze(installation: Installation, lost: str) -> Iterator[float | None]:
    """Stop every process of the primary, until there are writes again."""
    run_in(lost, "kill -STOP -1", installation)
    yield None
    run_in(lost, "kill -CONT -1", installation)


def freeze_for_a_minute(installation: Installation, lost: str) -> Iterator[float | None]:
    """Stop every process of the primary for 60 s."""
    run_in(lost, "kill -STOP -1", installation)
    yield 60
    run_in(lost, "kill -CONT -1", installation)


def delete_data(installation: Installation, lost: str) -> Iterator[float | None]:
    """Delete the primary's data."""
    run_in(lost, "rm -rf $PGDATA", installation)
    yield 0


def delete_volume(installation: Installation, lost: str) -> Iterator[float | None]:
    """Delete the primary's claim and its pod: the next one has an empty volume."""
    kubectl = installation.cluster.kubectl
    kubectl("delete", "pvc", f"data-{lost}", "-n", NAMESPACE, "--wait=false")
    kubectl("delete", "pod", lost, "-n", NAMESPACE, "--wait=false")
    yield 0


def delete_pod(installation: Installation, lost: str) -> Iterator[float | None]:
    """Delete the primary's pod."""
    installation.cluster.kubectl("delete", "pod", lost, "-n", NAMESPACE, "--wait=false")
    yield 0


def restart_all(installation: Installation, lost: str) -> Iterator[float | None]:
    """Restart the instances one by one for a parameter that PostgreSQL reads at its start."""
    kubectl = installation.cluster.kubectl
    wanted = int(sql_in(installation, NAMESPACE, lost, "SHOW max_connections")) + 20
    parameters = json.dumps({"spec": {"parameters": {"max_connections": wanted}}})
    kubectl("patch", "postgresql/db", "--type=merge", "-p", parameters, "-n", NAMESPACE)
    waits = lambda: condition(installation, "RestartPending")[0] == "True"  # noqa: E731
    installation.until("a restart is pending", waits)
    kubectl("rollout", "restart", "statefulset/db", "-n", NAMESPACE)
    waits = lambda: condition(installation, "RestartPending")[0] == ""  # noqa: E731
    installation.until("no restart is pending", waits, within=300.0)
    yield None  # the last one may still be starting
    now = primary(installation, NAMESPACE)
    assert sql_in(installation, NAMESPACE, now, "SHOW max_connections") == str(wanted)


def scale(installation: Installation, lost: str) -> Iterator[float | None]:
    """Change the number of instances from three to one, to five, to one, and to three again."""
    for count in (1, 5, 1, 3):
        installation.cluster.kubectl(
            "scale", "postgresql/db", f"--replicas={count}", "-n", NAMESPACE
        )
        installation.until(f"{count} are ready", lambda of=count: has_ready(installation, of))
    yield 0


def has_ready(installation: Installation, count: int) -> bool:
    """Return whether the database has exactly this number of instances, and all are ready."""
    object = installation.cluster.get("postgresql/db", NAMESPACE)
    status = object["status"]
    is_current = status["observedGeneration"] == object["metadata"]["generation"]
    return is_current and status["replicas"] == status["readyReplicas"] == count


def upgrade(installation: Installation, lost: str) -> Iterator[float | None]:
    """Upgrade from PostgreSQL 15 to 17."""
    change = json.dumps({"spec": {"version": "17", "majorUpgrade": "Reversible"}})
    patch = ("patch", "postgresql/db", "--type=merge", "-p", change, "-n", NAMESPACE)
    installation.cluster.kubectl(*patch)
    done = ("wait", "postgresql/db", "--for=condition=Upgraded", "-n", NAMESPACE, "--timeout=400s")
    installation.plane.kubectl(*done, timeout=410)
    yield 0


def drain(installation: Installation, lost: str) -> Iterator[float | None]:
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
    yield 0


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


@contextmanager
def separated(installation: Installation, one: str, others: set[str]) -> Iterator[None]:
    """Drop what one pod and others send to each other."""
    known = addresses(installation)
    with ExitStack() as stack:
        for name in others:
            for source, target in ((one, name), (name, one)):
                match = ("-s", known[source], "-d", known[target])
                stack.enter_context(dropped(installation, "FORWARD", *match))
        yield


def cut_from_api(installation: Installation, lost: str) -> Iterator[float | None]:
    """Drop what the primary sends to the API server, for 60 s."""
    port, source = urlsplit(installation.plane.url).port, addresses(installation)[lost]
    with dropped(installation, "INPUT", "-s", source, "-p", "tcp", "--dport", str(port)):
        yield 60


def cut_from_standbys(installation: Installation, lost: str) -> Iterator[float | None]:
    """Drop what the primary and its standbys send to each other, for 60 s."""
    with separated(installation, lost, ALL - {lost}):
        yield 60


def isolate(installation: Installation, lost: str) -> Iterator[float | None]:
    """Drop all that the primary sends, except to the reader, for 50 s."""
    known = addresses(installation)
    port = str(urlsplit(installation.plane.url).port)
    with ExitStack() as stack:
        api = ("-s", known[lost], "-p", "tcp", "--dport", port)
        stack.enter_context(dropped(installation, "INPUT", *api))
        for name in {*ALL, "writer"} - {lost}:
            match = ("-s", known[lost], "-d", known[name])
            stack.enter_context(dropped(installation, "FORWARD", *match))
        yield 50


def stop_api(installation: Installation, lost: str) -> Iterator[float | None]:
    """Freeze the API server for 300 s: it answers nothing."""
    installation.plane.stop("kube-apiserver")
    yield 300
    installation.plane.cont("kube-apiserver")
    alive = lambda: installation.plane.kubectl("get", "--raw=/readyz", check=False).returncode == 0  # noqa: E731
    installation.until("the API server answers", alive)


def freeze_standby(installation: Installation, lost: str) -> Iterator[float | None]:
    """Stop every process of the synchronous standby, until there are writes again."""
    frozen = synchronous_standby(installation)
    run_in(frozen, "kill -STOP -1", installation)
    yield None
    run_in(frozen, "kill -CONT -1", installation)


def delete_all(installation: Installation, lost: str) -> Iterator[float | None]:
    """Delete all pods at once, without time to end."""
    installation.cluster.kubectl("delete", "pods", "-l", PODS, "-n", NAMESPACE, *FORCE)
    yield 0


def return_stale(installation: Installation, lost: str) -> Iterator[float | None]:
    """Kill all pods at once; for 60 s only the standby returns that misses rows, and it stays one."""
    with only_stale(installation, lost) as stale:
        yield 60
        assert sql_in(installation, NAMESPACE, stale, "SELECT pg_is_in_recovery()") == "t"


def promote_stale(installation: Installation, lost: str) -> Iterator[float | None]:
    """Kill all pods at once; the only standby that returns misses rows, and a person promotes it."""
    with only_stale(installation, lost) as stale:
        patronictl(installation, stale, f"failover --candidate {stale} --force")
        yield None


@contextmanager
def only_stale(installation: Installation, lost: str) -> Iterator[str]:
    """Kill all pods at once; only the standby returns that misses rows, on the node that has no room for others."""
    kubectl = installation.cluster.kubectl
    current = synchronous_standby(installation)
    (stale,) = ALL - {lost, current}
    with separated(installation, stale, {lost, current}):
        wait_for_rows(installation)
        before = set(uids(installation))
        kubectl("cordon", NODE)
        kill_tasks(installation)
        kubectl("delete", "pods", "-l", PODS, "-n", NAMESPACE, *FORCE)
        renewed = lambda: len(set(uids(installation)) - before) == len(ALL)  # noqa: E731
        installation.until("the pods wait for a node", renewed)
    target = {"apiVersion": "v1", "kind": "Node", "name": NODE}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": stale}, "target": target}
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/{stale}/binding"
    assert installation.cluster.api.request("POST", path, binding)[0] == 201
    answers = lambda: runs(installation, stale)  # noqa: E731
    installation.until("the stale standby runs", answers)
    yield stale
    kubectl("uncordon", NODE)


def runs(installation: Installation, pod: str) -> bool:
    """Return whether the server of an instance answers."""
    inside = ("exec", "-n", NAMESPACE, pod, "-c", "postgres", "--", "pg_isready", "-q")
    return installation.plane.kubectl(*inside, check=False).returncode == 0


def kill_tasks(installation: Installation) -> None:
    """End the first process of each instance's container at once."""
    listed = installation.cluster.kubectl("get", "pods", "-l", PODS, "-n", NAMESPACE, "-o", "json")
    containers = {
        status["containerID"].removeprefix("containerd://")
        for pod in json.loads(listed)["items"]
        for status in pod["status"]["containerStatuses"]
    }
    run = installation.node.machine.run
    tasks = [
        line.split() for line in run("ctr", "--namespace", "k8s.io", "tasks", "list").splitlines()
    ]
    run("kill", "-9", *(task[1] for task in tasks if task[0] in containers))


def lose_node(installation: Installation, lost: str) -> Iterator[float | None]:
    """Silence the primary for good, as if its node were gone; its volume does not come back."""
    source = addresses(installation)[lost]
    run_in(lost, "kill -STOP -1", installation)
    with ExitStack() as stack:
        for chain, side in (("INPUT", "-s"), ("FORWARD", "-s"), ("FORWARD", "-d")):
            stack.enter_context(dropped(installation, chain, side, source))
        yield None
        kubectl = installation.cluster.kubectl
        kubectl("delete", "pvc", f"data-{lost}", "-n", NAMESPACE, "--wait=false")
        kubectl("delete", "pod", lost, "-n", NAMESPACE, *FORCE)


def fill_disk(installation: Installation, lost: str) -> Iterator[float | None]:
    """Fill the primary's volume; once it is reported, move the primary. The volume stays full for a minute."""
    claim = ("get", "pvc", f"data-{lost}", "-n", NAMESPACE, "-o", "jsonpath={.spec.volumeName}")
    number = installation.cluster.kubectl(*claim).removeprefix("local-")
    run, file = installation.node.machine.run, f"{volumes(installation)}/{number}/full"
    run("sh", "-c", f"cat /dev/zero >{file} || true")
    installation.until(
        "it is reported", lambda: condition(installation, "Ready")[1] == "VolumeFull"
    )
    patronictl(installation, lost, "switchover --force")
    yield 60
    run("rm", file)


def volumes(installation: Installation) -> str:
    """Return the directory of the volumes."""
    return str(installation.node.slot.directory / "volumes")


# A file system of its own for each volume that nothing uses yet.
LIMIT = """
for at in */; do
  [ "$(ls -A "$at")" ] && continue
  truncate -s 1G "${at%/}.image"
  mkfs.ext4 -q -F "${at%/}.image"
  mount -o loop "${at%/}.image" "$at"
done
"""


def limit_volumes(installation: Installation) -> None:
    """Give each volume that nothing uses yet a file system of 1 GiB, which can become full."""
    installation.node.machine.run("sh", "-c", f"set -e; cd {volumes(installation)}; {LIMIT}")


FAULTS: dict[str, Fault] = {
    "every process killed": kill,
    "frozen": freeze,
    "its data deleted": delete_data,
    "all restarted": restart_all,
}
UPGRADED = "upgraded from 15 to 17"
PROMOTED = "a stale standby promoted by hand"  # it loses rows
# They take minutes: FAULTS=all pytest tests/node/test_fail_over.py
SLOW_FAULTS: dict[str, Fault] = {
    UPGRADED: upgrade,
    "API server frozen for 300 s": stop_api,
    "frozen for 60 s": freeze_for_a_minute,
    "pod deleted": delete_pod,
    "volume deleted": delete_volume,
    "node and volume gone": lose_node,
    "disk full": fill_disk,
    "synchronous standby frozen": freeze_standby,
    "all drained": drain,
    "scaled to 1, 5, 1, 3": scale,
    "all pods deleted by force": delete_all,
    "cut from the API server for 60 s": cut_from_api,
    "cut from its standbys for 60 s": cut_from_standbys,
    "cut from all but one client for 50 s": isolate,
    "all killed, only a stale standby back for 60 s": return_stale,
    PROMOTED: promote_stale,
}
