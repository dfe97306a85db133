"""Backup: a CronJob that dumps a database to an object store, and the results of its Jobs."""

from collections.abc import Iterator
from datetime import datetime

from config.api.backup import Backup
from config.cron import CronError, upcoming
from controller.reconcilers.backup_cronjob import LABEL, ORIGIN, desired, name_of
from controller.reconcilers.backup_env import missing, secrets
from controller.reconcilers.backup_runs import jobs_of, runs, status, without_a_pod
from controller.reconcilers.indexes import by_label, by_name, nothing
from controller.reconcilers.resources import CRON_JOB, JOB, POD, SECRET
from controller.runtime.kind import PlannedKind, Reads
from controller.runtime.plan import Apply, Observed, Plan, Problem, Step, incomplete
from kube.resource import JsonObject


def plan(backup: Backup, observed: Observed, now: datetime) -> Plan:
    """Plan what should exist for `backup`, given what was `observed`."""
    cronjob = observed.child(CRON_JOB, name_of(backup))
    jobs = jobs_of(cronjob, observed.find(JOB, "backup", backup.name))
    found = runs(cronjob, jobs, observed.find(POD, "backup", backup.name), observed.obstacles)
    problem, next_time = None, None
    try:
        next_time = upcoming(backup.spec.schedule, now)
    except CronError as error:
        problem = Problem(
            f'spec.schedule: "{backup.spec.schedule}" is not a cron schedule: {error}', "Invalid"
        )
    if fields := list(missing(backup)):
        problem = incomplete(*fields)
    if problem:
        return Plan(steps=(), status=status(backup, found, None, now), problem=problem)
    if cronjob is None or backup.spec.suspend:
        next_time = None
    credentials = [
        Step(f"Secret {name}", (), ready=bool(observed.find(SECRET, "secret", name)))
        for name in secrets(backup)
    ]
    write = Apply(desired(backup, observed.settings), origin=ORIGIN)
    names = [step.name for step in credentials]
    return Plan(
        steps=(
            *credentials,
            Step("cronjob", (write,), depends_on=names, ready=cronjob is not None),
        ),
        status=status(backup, found, next_time, now),
        requeue_after=next_time - now if next_time else None,
        unexplained=without_a_pod(jobs),
    )


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
        Reads(JOB, {"backup": by_label(LABEL)}, labels=LABEL),
        Reads(POD, {"backup": by_label(LABEL)}, labels=LABEL),
        Reads(SECRET, {"secret": by_name}, fields=nothing),
    ),
    indexes={"backup": by_name, "secret": by_secret},
)
