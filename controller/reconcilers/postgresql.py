"""PostgreSQL: credentials, instances, Services, users and databases, and backups, in that order."""

from datetime import datetime, timedelta
from typing import Literal

from config.api.postgresql import PostgreSQL, PostgreSQLStatus
from controller.reconcilers import postgresql_backups as backups
from controller.reconcilers import postgresql_roles as roles
from controller.reconcilers.claims import READS_CLASSES, without_class
from controller.reconcilers.indexes import by_label, by_name
from controller.reconcilers.postgresql_claims import Volumes, volumes
from controller.reconcilers.postgresql_instances import ORIGIN, SERVICE_ORIGIN, primary, services, stateful_set
from controller.reconcilers.postgresql_pods import INSTANCE, OURS, PORT, credentials, origin, scripts, selector
from controller.reconcilers.readiness import progress, ready_replicas
from controller.reconcilers.resources import (
    BACKUP,
    CLAIM,
    CONFIG_MAP,
    CRON_JOB,
    JOB,
    POD,
    SECRET,
    SERVICE,
    STATEFUL_SET,
)
from controller.runtime.plan import Apply, Event, Object, Plan, Problem, Seen, Step, incomplete
from controller.runtime.planned_kind import PlannedKind, Reads
from kube.resource import Resource

FINALIZER = "database.example.com/finalizer"
LOOK_AGAIN = timedelta(minutes=5)
PRIMARY = "PrimaryAvailable"  # the condition
Phase = Literal["Pending", "Deploying", "Running", "Degraded"]


def plan(database: PostgreSQL, seen: Seen, now: datetime) -> Plan:
    """Say what should exist for `database`, given what was `seen`."""
    del now
    there = volumes(database, seen)
    is_up = _is_ready(_primary(database, seen))
    is_lost = not is_up and _was_up(database)
    return Plan(
        steps=_steps(database, seen, there, is_up=is_up),
        status=_status(database, seen, there, is_up=is_up),
        problem=_problem(database, there),
        requeue_after=LOOK_AGAIN,
        events=[Event("PrimaryLost", _missing(database), "Warning")] if is_lost else (),
        finalized=database.spec.deletion_policy == "Retain" or not backups.kept(database, seen),
    )


def _steps(database: PostgreSQL, seen: Seen, there: Volumes, *, is_up: bool) -> tuple[Step, ...]:
    secrets, job = roles.secrets(database), roles.job(database, seen, there.version)
    instances = stateful_set(database, seen, there.version, there.template)
    leading, lacking = services(database), without_class(there.claims, seen)
    waiting = progress(ready_replicas(seen.child(STATEFUL_SET, database.name)), database.spec.replicas)
    return (
        Step(
            "credentials",
            secrets,
            holds=all(_exists(seen, SECRET, each.object) for each in secrets),
            doing="failed to create credentials",
        ),
        Step(
            "database",
            [Apply(scripts(database), origin()), Apply(instances, ORIGIN)],
            needs=("credentials",),
            holds=is_up,
            doing="failed to create database",
            condition=PRIMARY,
            note="" if is_up else lacking or _missing(database),
        ),
        Step(
            "service",
            [Apply(each, SERVICE_ORIGIN) for each in leading],
            needs=("database",),
            holds=all(_exists(seen, SERVICE, each) for each in leading),
        ),
        Step("storage", there.patches, needs=("service",), holds=there.are_grown, doing="failed to grow storage"),
        Step("instances", (), needs=("service",), holds=_are_ready(database, seen), note=lacking or waiting),
        Step(
            "users and databases",
            [*([Apply(job, roles.JOB_ORIGIN)] if job else ()), *roles.superseded(database, seen, job)],
            needs=("service",),
            holds=roles.is_done(seen, job),
            doing="failed to create users and databases",
            note=roles.failure(seen, job) or "",
        ),
        Step(
            "backups",
            backups.writes(database, seen, there.version),
            needs=("instances",),
            holds=backups.are_made(database, seen),
            doing="failed to setup backups",
            note=backups.failure(database, seen) or "",
        ),
        Step("removal of backups", backups.removal(database, seen), doing="failed to remove backups"),
    )


def _problem(database: PostgreSQL, there: Volumes) -> Problem | None:
    """Return what only a change of the spec can mend; what there is already is kept as it is."""
    if missing := list(backups.missing(database)):
        return incomplete(*missing)
    if wrong := roles.wrong(database):
        return Problem("; ".join(f"{each.path}: {each.found}; {each.rule}" for each in wrong), "Invalid")
    return Problem("; ".join(there.refused), "Refused") if there.refused else None


def _status(database: PostgreSQL, seen: Seen, there: Volumes, *, is_up: bool) -> PostgreSQLStatus:
    child = seen.child(STATEFUL_SET, database.name)
    return PostgreSQLStatus(
        phase=_phase(database, seen, is_up=is_up),
        replicas=(child or {}).get("status", {}).get("replicas", 0),
        ready_replicas=ready_replicas(child),
        version=there.version,
        storage=there.smallest,
        endpoint=f"{database.name}.{database.namespace}.svc:{PORT}",
        secret=credentials(database),
        selector=",".join(f"{key}={value}" for key, value in selector(database, "database").items()),
        last_backup_time=backups.last_time(database, seen),
    )


def _phase(database: PostgreSQL, seen: Seen, *, is_up: bool) -> Phase:
    if seen.child(STATEFUL_SET, database.name) is None:
        return "Pending"
    if is_up and _are_ready(database, seen):
        return "Running"
    status = database.status
    is_new = status.observed_generation != database.generation
    return "Degraded" if status.phase in ("Running", "Degraded") and not is_new else "Deploying"


def _are_ready(database: PostgreSQL, seen: Seen) -> bool:
    """Tell whether as many instances as asked for are ready, each as it should be now."""
    stored = seen.child(STATEFUL_SET, database.name) or {"metadata": {}}
    status, wanted = stored.get("status", {}), database.spec.replicas
    is_current = status.get("observedGeneration") == stored["metadata"].get("generation")
    return bool(is_current and status.get("readyReplicas", 0) == status.get("updatedReplicas", 0) == wanted)


def _primary(database: PostgreSQL, seen: Seen) -> Object | None:
    pods = seen.find(POD, "instance", database.name)
    return next((pod for pod in pods if pod["metadata"]["name"] == primary(database)), None)


def _is_ready(pod: Object | None) -> bool:
    conditions = (pod or {}).get("status", {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _was_up(database: PostgreSQL) -> bool:
    return any(each.type == PRIMARY and each.status == "True" for each in database.status.conditions or ())


def _missing(database: PostgreSQL) -> str:
    return f"pod {primary(database)} is not ready: nothing can be written, and no other instance takes its place"


def _exists(seen: Seen, resource: Resource, object: Object) -> bool:
    return seen.child(resource, object["metadata"]["name"]) is not None


OF_OURS = ",".join(f"{key}={value}" for key, value in OURS.items())
POSTGRESQL = PlannedKind(
    PostgreSQL,
    plan=plan,
    owns=(
        CONFIG_MAP,
        STATEFUL_SET,
        SERVICE,
        JOB,
        CLAIM,
        CRON_JOB,
        BACKUP,
    ),
    once=(SECRET,),
    reads=(
        Reads(POD, {"instance": by_label(INSTANCE)}, OF_OURS),
        Reads(CLAIM, {"instance": by_label(INSTANCE)}, OF_OURS),
        Reads(JOB, {"instance": by_label(INSTANCE)}, OF_OURS),
        READS_CLASSES,
    ),
    patches=(CLAIM,),
    deletes=(JOB, CLAIM, CRON_JOB, BACKUP),
    optional=(BACKUP,),
    indexes={"instance": by_name},
    finalizer=FINALIZER,
)
