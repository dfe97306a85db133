"""What Patroni reports about the instances of a PostgreSQL, for conditions and messages.

Each instance writes it into the annotation `status` of its pod. A superuser of the database may
write anything there, so only known words and names of parameters are read.
"""

import json
from datetime import datetime

from config.api.meta import Condition
from config.api.postgresql import PostgreSQL
from config.postgresql_parameters import NAME
from controller.reconcilers.postgresql_patroni import (
    FULL,
    complete_instances,
    find_endpoints,
    leader,
    standbys_of,
    stores,
)
from controller.reconcilers.resources import POD
from controller.runtime.plan import Observed
from kube.resource import JsonObject

STATUS = "status"
MEMBER = "patroni"  # what is kept of the annotation:
STATE, PENDING = "state", "pendingRestart"
REPORTED, FOLLOWS = "reported", "follows"
MAX_NAMES = 20  # parameters in a message
# Patroni's states of an instance that does not run. (class PostgresqlState of Patroni 4)
STOPPED = {
    "initializing new cluster",
    "initdb failed",
    "creating replica",
    "starting",
    "start failed",
    "restarting",
    "restart failed",
    "stopping",
    "stopped",
    "stop failed",
    "crashed",
}


def conditions(database: PostgreSQL, observed: Observed, now: datetime) -> list[Condition]:
    """Return whether a standby is synchronous, and whether instances must restart."""
    return [
        *_synchronous(database, observed, now),
        *_restart_pending(database, observed, now),
    ]


def not_running(database: PostgreSQL, observed: Observed) -> str:
    """Return the instances that do not run, or do not stream, with their states; empty: all do."""
    states = {}
    for pod in observed.find(POD, "instance", database.name):
        member = pod.get(MEMBER, {})
        name, follows = pod["metadata"]["name"], member.get(FOLLOWS, True)
        is_late = not follows and name != leader(database, observed)
        if state := member.get(STATE) or ("not streaming" if is_late else ""):
            states[name] = state
    return ", ".join(f"{name}: {state}" for name, state in sorted(states.items()))


def may_serve(pod: JsonObject) -> bool:
    """Return whether the server of an instance runs, or may run, as Patroni reports it."""
    member = pod.get(MEMBER, {})
    return bool(member.get(REPORTED)) and not member.get(STATE)


def full_volumes(database: PostgreSQL, observed: Observed) -> str:
    """Return what to do about instances whose volume is full; empty if none is."""
    stored = find_endpoints(database, observed, stores(database)[0]) or {"metadata": {}}
    reported = stored["metadata"].get("annotations") or {}
    names = [pod["metadata"]["name"] for pod in observed.find(POD, "instance", database.name)]
    if not (full := sorted(name for name in names if reported.get(f"{FULL}{name}"))):
        return ""
    return f"less than 64 MB are free on the volume of {', '.join(full)}: increase spec.storage"


def missing_primary(database: PostgreSQL, observed: Observed) -> str:
    """Return why there is no ready primary, and what has to happen until there is one."""
    name = leader(database, observed)
    pods = {pod["metadata"]["name"]: pod for pod in observed.find(POD, "instance", database.name)}
    if name is None:
        state = "no instance is the primary"
    else:
        is_there = "is not ready" if name in pods else "does not exist"
        state = f"pod {name}, the primary, {is_there}"
    complete = complete_instances(database, observed)
    for standby in complete:
        if standby != name and may_serve(pods.get(standby, {})):
            return f"{state}: {standby} becomes the primary within 25 s"
    if complete:
        names = " or ".join(complete)
        has_others = len(complete) < database.spec.replicas
        others = ", as all others miss transactions" if has_others else ""
        return f"{state}: nothing can be written until {names} runs{others}"
    if name is None:
        return f"{state}: nothing can be written until Patroni has chosen one"
    return f"{state}: nothing can be written until it is ready, or another is the primary"


def _synchronous(database: PostgreSQL, observed: Observed, now: datetime) -> list[Condition]:
    """Return the condition Synchronous of a database with standbys and a primary."""
    primary = leader(database, observed)
    if primary is None or database.spec.replicas == 1:
        return []
    if standbys := standbys_of(database, observed):
        message = f"{', '.join(standbys)} has every acknowledged transaction"
        return [Condition.of("Synchronous", True, "StandbySynchronous", now, message)]
    lost = f"{primary} commits alone, and its loss stops writes until it is back"
    waits = "commits wait for a standby"
    is_strict = database.spec.synchronous == "Required"
    message = f"no standby has every acknowledged transaction: {waits if is_strict else lost}"
    return [Condition.of("Synchronous", False, "NoSynchronousStandby", now, message)]


def _restart_pending(database: PostgreSQL, observed: Observed, now: datetime) -> list[Condition]:
    """Return the condition RestartPending, if instances run with earlier values of parameters."""
    waiting = {
        pod["metadata"]["name"]: pod[MEMBER][PENDING]
        for pod in observed.find(POD, "instance", database.name)
        if pod.get(MEMBER, {}).get(PENDING)
    }
    if not waiting:
        return []
    names = ", ".join(sorted({name for names in waiting.values() for name in names}))
    restart = f"kubectl rollout restart statefulset/{database.name}"
    message = f"{', '.join(sorted(waiting))} must restart for {names}: {restart}"
    return [Condition.of("RestartPending", True, "ParametersChanged", now, message)]


def keep_pod(pod: JsonObject) -> JsonObject:
    """Return what plans read of a Pod; Patroni writes its annotations every few seconds."""
    about = pod["metadata"]
    kept = {key: about[key] for key in ("labels", "ownerReferences") if key in about}
    status = pod.get("status", {})
    account = pod.get("spec", {}).get("serviceAccountName")
    is_of_job = "job-name" in about.get("labels", {})
    read = ("conditions", "containerStatuses") if is_of_job else ("conditions",)
    return {
        "metadata": kept,
        "spec": {"serviceAccountName": account},
        "status": {key: status[key] for key in read if key in status},
        MEMBER: _member((about.get("annotations") or {}).get(STATUS)),
    }


def _member(text: str | None) -> JsonObject:
    """Return the state of an instance, and the parameters that wait for its restart."""
    if text is None:
        return {}
    try:
        status = json.loads(text)
    except ValueError:
        return {}
    if not isinstance(status, dict):
        return {}
    state, reason = status.get("state"), status.get("pending_restart_reason")
    names = sorted(reason) if isinstance(reason, dict) else []
    is_standby = status.get("role") == "replica"
    return {
        STATE: state if isinstance(state, str) and state in STOPPED else None,
        REPORTED: True,
        FOLLOWS: not is_standby or status.get("replication_state") == "streaming",
        PENDING: [name for name in names if NAME.fullmatch(name)][:MAX_NAMES],
    }
