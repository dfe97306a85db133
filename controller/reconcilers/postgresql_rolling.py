"""The order in which the instances of a PostgreSQL restart: the standbys, and the primary last.

The StatefulSet replaces only pods that are deleted; this module says which one is next.
"""

from config.api.postgresql import PostgreSQL
from controller.reconcilers import postgresql_members as members
from controller.reconcilers import postgresql_patroni as patroni
from controller.reconcilers.postgresql_pods import COMPONENT
from controller.reconcilers.readiness import is_pod_ready
from controller.reconcilers.resources import POD, STATEFUL_SET
from controller.runtime.plan import Delete, Observed, Reference
from kube.resource import JsonObject

ON_DELETE: JsonObject = {"type": "OnDelete"}
HOLD: JsonObject = {
    "type": "RollingUpdate",
    "rollingUpdate": {"partition": patroni.MAX_INSTANCES},
}
REVISION = "controller-revision-hash"  # the label of a StatefulSet's pods


def update_strategy(database: PostgreSQL, observed: Observed) -> JsonObject:
    """Return the StatefulSet's strategy: OnDelete.

    It allows no `rollingUpdate`, which earlier releases left to its default, and server-side apply
    removes only what it applied: so a partition that updates no instance comes before it.
    """
    stored = observed.child(STATEFUL_SET, database.name)
    return ON_DELETE if stored is None or _strategy(stored) in (ON_DELETE, HOLD) else HOLD


def restart(database: PostgreSQL, observed: Observed) -> list[Delete]:
    """Return the deletion of the next pod that is not as the StatefulSet's template says."""
    stored = observed.child(STATEFUL_SET, database.name)
    if stored is None or _strategy(stored) != ON_DELETE:
        return []
    status = stored.get("status", {})
    if status.get("observedGeneration") != stored["metadata"]["generation"]:
        return []
    pods = [
        pod
        for pod in observed.find(POD, "instance", database.name)
        if (pod["metadata"].get("labels") or {}).get(COMPONENT) == "database"
    ]
    if any("deletionTimestamp" in pod["metadata"] for pod in pods):
        return []
    revision = status.get("updateRevision")
    outdated = {
        pod["metadata"]["name"]: pod
        for pod in pods
        if revision and pod["metadata"]["labels"].get(REVISION) != revision
    }
    next_one = _next(database, observed, stored, pods, outdated)
    return (
        [
            Delete(
                Reference(POD, next_one, outdated[next_one]["metadata"]["uid"], database.namespace)
            )
        ]
        if next_one
        else []
    )


def _next(
    database: PostgreSQL,
    observed: Observed,
    stored: JsonObject,
    pods: list[JsonObject],
    outdated: dict[str, JsonObject],
) -> str | None:
    """Return the name of the pod that restarts next; None if none may restart now."""
    primary = patroni.leader(database, observed)
    old = patroni.old_pods(database, observed)
    if old and primary is None:
        # Without a leader, a standby would make itself a second primary: the old primary is first.
        first = f"{database.name}-0"
        is_old = any(pod["metadata"]["name"] == first for pod in old)
        return first if is_old and first in outdated else None
    unready = [pod["metadata"]["name"] for pod in pods if not is_pod_ready(pod)]
    standbys = [name for name in sorted(outdated, reverse=True) if name != primary]
    for name in (*standbys, primary):
        if name in outdated and name in unready and not members.may_serve(outdated[name]):
            return name  # it serves no requests
    if primary is None:
        return None
    if late := [name for name in standbys if name in unready]:
        return late[0]
    if unready or len(pods) < stored["spec"].get("replicas", 0):
        return None
    synchronous = patroni.standbys_of(database, observed)
    if standbys:
        # Commits wait for a synchronous standby until Patroni has chosen another one.
        return min(standbys, key=synchronous.count)
    if primary in outdated and (synchronous or len(pods) == 1):
        return primary
    return None


def _strategy(stateful_set: JsonObject) -> JsonObject:
    strategy: JsonObject = stateful_set["spec"].get("updateStrategy") or {}
    return strategy
