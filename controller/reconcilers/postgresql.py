"""PostgreSQL: credentials, instances, Services, users and databases, and backups, in that order."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Literal

from config.api.meta import Condition
from config.api.postgresql import PostgreSQL, PostgreSQLStatus
from config.postgresql_names import FieldFault
from controller.reconcilers import postgresql_backups as backups
from controller.reconcilers import postgresql_members as members
from controller.reconcilers import postgresql_patroni as patroni
from controller.reconcilers import postgresql_restore as restore
from controller.reconcilers import postgresql_roles as roles
from controller.reconcilers import postgresql_rolling as rolling
from controller.reconcilers import postgresql_upgrade as upgrades
from controller.reconcilers.backup_runs import keep_job
from controller.reconcilers.claims import READS_CLASSES, Volumes, keep_claim, without_class
from controller.reconcilers.indexes import by_label, by_name
from controller.reconcilers.postgresql_instances import (
    SERVICE_ORIGIN,
    budget,
    origin_of_instances,
    services,
    stateful_set,
)
from controller.reconcilers.postgresql_pods import (
    INSTANCE,
    PORT,
    POSTGRESQL_LABELS,
    credentials,
    origin,
    scripts,
    selector,
)
from controller.reconcilers.postgresql_upgrade import Upgrade
from controller.reconcilers.postgresql_volumes import claims_of, problems, volumes
from controller.reconcilers.readiness import is_pod_ready, progress, ready_replicas
from controller.reconcilers.removal import Removal, removal
from controller.reconcilers.resources import (
    BACKUP,
    BUDGET,
    CLAIM,
    CONFIG_MAP,
    CRON_JOB,
    ENDPOINT_SLICE,
    ENDPOINTS,
    JOB,
    POD,
    ROLE,
    ROLE_BINDING,
    SECRET,
    SERVICE,
    SERVICE_ACCOUNT,
    STATEFUL_SET,
    STORAGE_CLASS,
)
from controller.runtime.kind import PlannedKind, Reads
from controller.runtime.plan import Apply, Event, Observed, Plan, Problem, Step, incomplete
from kube.resource import JsonObject, Resource

FINALIZER = "database.example.com/finalizer"
LOOK_AGAIN = timedelta(minutes=5)
PRIMARY = "PrimaryAvailable"  # the condition
Phase = Literal["Pending", "Deploying", "Running", "Degraded"]


def plan(database: PostgreSQL, observed: Observed, now: datetime) -> Plan:
    """Plan what should exist for `database`, given what was `observed`."""
    stored = volumes(database, observed)
    upgrade = upgrades.upgrade_of(database, observed, stored)
    is_up = is_pod_ready(_primary(database, observed))
    missing = "" if is_up else members.missing_primary(database, observed)
    is_lost = not is_up and _was_up(database) and upgrade.is_done
    removed, dumps = _removal(database, observed, stored), backups.state(database, observed, now)
    wrong = _problem_of_instances(database, observed)
    steps = _steps(database, observed, stored, upgrade, removed, missing=missing)
    return Plan(
        steps=_hold(steps) if wrong else steps,
        status=_status(
            database,
            observed,
            stored,
            upgrade,
            [
                *upgrade.conditions(now),
                *dumps.conditions,
                *members.conditions(database, observed, now),
            ],
            is_up=is_up,
        ),
        problem=_problem(database, observed, stored) or wrong,
        requeue_after=LOOK_AGAIN,
        events=[Event("PrimaryLost", missing, "Warning")] if is_lost else (),
        finalized=removed.finalized,
        unexplained=dumps.unexplained,
    )


def _steps(
    database: PostgreSQL,
    observed: Observed,
    stored: Volumes,
    upgrade: Upgrade,
    removed: Removal,
    *,
    missing: str,
) -> tuple[Step, ...]:
    version, is_final = upgrade.version, upgrades.is_final(database, observed)
    secrets, job = roles.secrets(database), roles.job(database, observed, version)
    instances = stateful_set(database, observed, version, upgrade.replicas, stored.template)
    leading, class_problem = services(database), without_class(stored.claims, observed)
    restoring = restore.restore_of(database, observed)
    full = members.full_volumes(database, observed)
    return (
        Step(
            "credentials",
            secrets,
            ready=all(_exists(observed, SECRET, each.object) for each in secrets),
            doing="failed to create credentials",
        ),
        Step(
            "upgrade",
            upgrade.writes,
            depends_on=("credentials",),
            ready=upgrade.is_done,
            doing="failed to upgrade",
            note=upgrade.note,
        ),
        Step(
            "database",
            [
                Apply(scripts(database), origin()),
                *patroni.access(database),
                *patroni.state(database, observed, is_upgrade_final=is_final),
                Apply(instances, origin_of_instances(database)),
                Apply(budget(database), origin()),
                *rolling.restart(database, observed),
            ],
            depends_on=("credentials",),
            ready=not missing,
            doing="failed to create database",
            condition=PRIMARY,
            note=missing and (class_problem or upgrade.stopped or missing),
        ),
        Step(
            "service",
            [
                *(Apply(each, SERVICE_ORIGIN) for each in leading),
                *patroni.stale_slices(database, observed),
            ],
            depends_on=("database",),
            ready=all(_exists(observed, SERVICE, each) for each in leading),
        ),
        Step(
            "storage",
            stored.patches,
            depends_on=("service",),
            ready=stored.are_grown and not full,
            doing="no space for writes" if full else "failed to grow storage",
            note=Problem(full, "VolumeFull") if full else "",
        ),
        Step(
            "instances",
            (),
            depends_on=("service",),
            ready=_are_ready(database, observed),
            note=class_problem or _waiting(database, observed),
        ),
        Step(
            "restore",
            restoring.writes,
            depends_on=("service",),
            ready=restoring.is_done,
            doing="failed to restore",
            note=restoring.note,
        ),
        Step(
            "users and databases",
            roles.writes(database, observed, job),
            depends_on=("service", "restore"),
            ready=roles.is_done(database, observed, job),
            doing="failed to create users and databases",
            note=roles.failure(observed, job) or "",
        ),
        Step(
            "backups",
            backups.writes(database, observed, version),
            depends_on=("instances", "restore"),
            ready=backups.are_complete(database, observed),
            doing="failed to setup backups",
            note=backups.note(database, observed),
        ),
        Step("removal of volumes", removed.writes, doing="failed to remove volumes"),
    )


def _hold(steps: Sequence[Step]) -> list[Step]:
    """Return the steps without their writes, except the removal of volumes."""
    *others, removing = steps
    return [*(replace(step, writes=()) for step in others), removing]


def _removal(database: PostgreSQL, observed: Observed, stored: Volumes) -> Removal:
    """Return what the deletion of the object still has to do: instances, volumes and dumps."""
    return removal(
        database.spec.deletion_policy,
        observed.child(STATEFUL_SET, database.name),
        [*stored.claims, *claims_of(database, observed, "backup")],
        is_deleting=database.metadata.deletion_timestamp is not None,
        others=patroni.leftovers(database, observed),
    )


def _problem(database: PostgreSQL, observed: Observed, stored: Volumes) -> Problem | None:
    """Return a problem that only a change of the spec can solve, and that the plan works around."""
    if missing := list(backups.missing(database)):
        return incomplete(*missing)
    if wrong := roles.wrong(database):
        return _invalid(wrong)
    refused = "; ".join(each.message for each in problems(database, observed, stored))
    return Problem(refused, "Refused") if refused else None


def _problem_of_instances(database: PostgreSQL, observed: Observed) -> Problem | None:
    """Return a problem for which nothing is created or changed until the spec changes."""
    if wrong := list(patroni.wrong(database)):
        return _invalid(wrong)
    return restore.problem(database, observed)


def _invalid(wrong: Sequence[FieldFault]) -> Problem:
    return Problem(
        "; ".join(f"{each.path}: {each.found}; {each.rule}" for each in wrong), "Invalid"
    )


def _status(
    database: PostgreSQL,
    observed: Observed,
    stored: Volumes,
    upgrade: Upgrade,
    conditions: Sequence[Condition],
    *,
    is_up: bool,
) -> PostgreSQLStatus:
    child = observed.child(STATEFUL_SET, database.name)
    return PostgreSQLStatus(
        phase=_phase(database, observed, is_up=is_up),
        replicas=(child or {}).get("status", {}).get("replicas", 0),
        ready_replicas=ready_replicas(child),
        version=upgrades.data_version(database, observed, stored),
        previous_version=upgrades.previous_version(database, observed),
        storage=stored.smallest,
        primary=patroni.leader(database, observed),
        endpoint=f"{database.name}.{database.namespace}.svc:{PORT}",
        secret=credentials(database),
        selector=",".join(
            f"{key}={value}" for key, value in selector(database, "database").items()
        ),
        last_backup_time=backups.last_time(database, observed),
        conditions=list(conditions) or None,
        restored_from=restore.restore_of(database, observed).done,
        roles_job=roles.expiring(
            database, observed, roles.job(database, observed, upgrade.version)
        ),
    )


def _phase(database: PostgreSQL, observed: Observed, *, is_up: bool) -> Phase:
    if observed.child(STATEFUL_SET, database.name) is None:
        return "Pending"
    is_restored = restore.restore_of(database, observed).is_done
    has_space = not members.full_volumes(database, observed)
    if is_up and _are_ready(database, observed) and is_restored and has_space:
        return "Running"
    status = database.status
    is_new = status.observed_generation != database.generation
    return "Degraded" if status.phase in ("Running", "Degraded") and not is_new else "Deploying"


def _are_ready(database: PostgreSQL, observed: Observed) -> bool:
    """Return whether the requested number of instances is ready and up to date."""
    stored = observed.child(STATEFUL_SET, database.name) or {"metadata": {}}
    status, desired = stored.get("status", {}), database.spec.replicas
    is_current = status.get("observedGeneration") == stored["metadata"].get("generation")
    return bool(
        is_current and status.get("readyReplicas", 0) == status.get("updatedReplicas", 0) == desired
    )


def _waiting(database: PostgreSQL, observed: Observed) -> str:
    """Return the number of ready instances, and what those that do not run are doing."""
    ready = ready_replicas(observed.child(STATEFUL_SET, database.name))
    count = progress(ready, database.spec.replicas)
    states = members.not_running(database, observed)
    return f"{count}; {states}" if states else count


def _primary(database: PostgreSQL, observed: Observed) -> JsonObject | None:
    pods = observed.find(POD, "instance", database.name)
    name = patroni.leader(database, observed)
    return next((pod for pod in pods if pod["metadata"]["name"] == name), None)


def _was_up(database: PostgreSQL) -> bool:
    return any(
        condition.type == PRIMARY and condition.status == "True"
        for condition in database.status.conditions or ()
    )


def _exists(observed: Observed, resource: Resource, object: JsonObject) -> bool:
    return observed.child(resource, object["metadata"]["name"]) is not None


OF_OURS = ",".join(f"{key}={value}" for key, value in POSTGRESQL_LABELS.items())
POSTGRESQL = PlannedKind(
    PostgreSQL,
    plan=plan,
    owns=(
        CONFIG_MAP,
        STATEFUL_SET,
        BUDGET,
        SERVICE,
        SERVICE_ACCOUNT,
        ROLE,
        ROLE_BINDING,
        JOB,
        CLAIM,
        CRON_JOB,
        BACKUP,
    ),
    creates_only=(SECRET, ENDPOINTS),
    reads=(
        Reads(POD, {"instance": by_label(INSTANCE)}, OF_OURS, members.keep_pod),
        Reads(ENDPOINTS, {"instance": by_label(INSTANCE)}, OF_OURS, patroni.keep_annotations),
        Reads(ENDPOINT_SLICE, {"instance": by_label(INSTANCE)}, OF_OURS, patroni.keep_labels),
        Reads(SERVICE, {"instance": by_label(INSTANCE)}, OF_OURS, patroni.keep_labels),
        Reads(CLAIM, {"instance": by_label(INSTANCE)}, OF_OURS, keep_claim),
        Reads(JOB, {"instance": by_label(INSTANCE)}, OF_OURS, keep_job),
        Reads(BACKUP, {restore.INDEX: by_name}),
        READS_CLASSES,
    ),
    # The right to patch pods is only passed on to Patroni: an account may grant only what it has.
    patches=(CLAIM, ENDPOINTS, POD),
    deletes=(JOB, CLAIM, CRON_JOB, BACKUP, POD, ENDPOINTS, ENDPOINT_SLICE, SERVICE),
    optional=(STORAGE_CLASS, BACKUP),
    indexes={"instance": by_name, restore.INDEX: restore.by_restored},
    finalizer=FINALIZER,
)
