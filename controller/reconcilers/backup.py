"""Backup: CronJobs that dump a database to an object store and try the dumps, and their results."""

from collections.abc import Iterator
from datetime import datetime

from config.api.backup import Backup, BackupStatus
from config.cron import CronError, upcoming
from controller.reconcilers import backup_drills as drills
from controller.reconcilers.backup_cronjob import LABEL, ORIGIN, name_of, plan_cronjob
from controller.reconcilers.backup_env import missing, secrets
from controller.reconcilers.backup_runs import (
    jobs_of,
    keep_job,
    keep_pod,
    parse_backup,
    parse_drill,
    runs,
    without_a_pod,
)
from controller.reconcilers.backup_status import server_of, status_of
from controller.reconcilers.indexes import by_label, by_name, nothing
from controller.reconcilers.resources import CRON_JOB, JOB, POD, SECRET
from controller.runtime.kind import PlannedKind, Reads
from controller.runtime.plan import (
    Apply,
    Delete,
    Observed,
    Plan,
    Problem,
    Reference,
    Step,
    Write,
    incomplete,
)
from kube.resource import JsonObject


def plan(backup: Backup, observed: Observed, now: datetime) -> Plan:
    """Plan what should exist for `backup`, given what was `observed`."""
    cronjob = observed.child(CRON_JOB, name_of(backup))
    drill_cronjob = observed.child(CRON_JOB, drills.name_of(backup))
    all_jobs, pods = (
        observed.find(JOB, "backup", backup.name),
        observed.find(POD, "backup", backup.name),
    )
    jobs, drill_jobs = jobs_of(cronjob, all_jobs), jobs_of(drill_cronjob, all_jobs)
    backup_runs = runs(jobs, pods, observed.obstacles, parse_backup)
    drill_runs = runs(drill_jobs, pods, observed.obstacles, parse_drill)
    problem, next_time = _problem(backup, now), None
    if problem is None and cronjob is not None and not backup.spec.suspend:
        next_time = upcoming(backup.spec.schedule, now)
    status = status_of(backup, backup_runs, drill_runs, next_time, now)
    if problem:
        return Plan(steps=(), status=status, problem=problem)
    credentials = [
        Step(f"Secret {name}", (), ready=bool(observed.find(SECRET, "secret", name)))
        for name in secrets(backup)
    ]
    write = Apply(plan_cronjob(backup, observed.settings), origin=ORIGIN)
    names = [step.name for step in credentials]
    return Plan(
        steps=(
            *credentials,
            Step("cronjob", (write,), depends_on=names, ready=cronjob is not None),
            Step("drill", _drill_writes(backup, status, observed), depends_on=names),
        ),
        status=status,
        requeue_after=next_time - now if next_time else None,
        unexplained=without_a_pod([*jobs, *drill_jobs]),
    )


def _problem(backup: Backup, now: datetime) -> Problem | None:
    """Return the problem that only a change of the spec can solve."""
    drill = backup.spec.drill
    if fields := [*missing(backup), *(drills.missing(backup, drill) if drill else ())]:
        return incomplete(*fields)
    schedules = {"spec.schedule": backup.spec.schedule}
    if drill is not None:
        schedules["spec.drill.schedule"] = drill.schedule
    for field, schedule in schedules.items():
        try:
            upcoming(schedule, now)
        except CronError as error:
            return Problem(f'{field}: "{schedule}" is not a cron schedule: {error}', "Invalid")
    if drill is not None and backup.spec.source.type == "mongodb":
        return Problem("spec.drill: MongoDB has no drills; remove it", "Invalid")
    return None


def _drill_writes(backup: Backup, status: BackupStatus, observed: Observed) -> list[Write]:
    """Return the CronJob of drills, or its deletion where there are no drills."""
    drill, server = backup.spec.drill, server_of(backup, status)
    if drill is not None and server is not None:
        cronjob = drills.plan_drill(backup, drill, server, observed.settings)
        return [Apply(cronjob, origin=drills.ORIGIN)]
    obsolete = observed.child(CRON_JOB, drills.name_of(backup))
    if drill is not None or obsolete is None:
        return []
    about = obsolete["metadata"]
    return [Delete(Reference(CRON_JOB, about["name"], about["uid"], backup.namespace))]


def by_secret(backup: JsonObject) -> Iterator[str]:
    """Yield the names of the Secrets of a stored Backup, also where its spec is invalid."""
    spec = backup.get("spec") or {}
    source, destination = spec.get("source") or {}, spec.get("destination") or {}
    for reference in (
        (source.get("connection") or {}).get("secretRef"),
        destination.get("secretRef"),
    ):
        name = reference.get("name") if isinstance(reference, dict) else reference
        if isinstance(name, str):
            yield name


BACKUP = PlannedKind(
    Backup,
    plan=plan,
    owns=(CRON_JOB,),
    reads=(
        Reads(JOB, {"backup": by_label(LABEL)}, LABEL, keep_job),
        Reads(POD, {"backup": by_label(LABEL)}, LABEL, keep_pod),
        Reads(SECRET, {"secret": by_name}, fields=nothing),
    ),
    deletes=(CRON_JOB,),
    indexes={"backup": by_name, "secret": by_secret},
)
