"""Backups of the databases that the controller creates: a CronJob, or a Backup object."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from config.api.meta import Condition
from config.api.storage import Dumps
from controller.reconcilers.backup_runs import (
    BACKED_UP,
    jobs_of,
    outcome_of,
    parse_backup,
    runs,
    without_a_pod,
)
from controller.reconcilers.resources import BACKUP, CRON_JOB
from controller.runtime.plan import Observed
from controller.runtime.status import of_type
from kube.resource import JsonObject

# Seconds that one dump may take, retries included, as by default for a Backup. A Job that never
# ends would block all later ones.
ACTIVE_DEADLINE = 21600


class DumpState(NamedTuple):
    """The condition BackedUp of a database, and the Jobs whose pods and events say more."""

    conditions: Sequence[Condition] = ()
    unexplained: Sequence[JsonObject] = ()


def state_of(
    name: str,
    observed: Observed,
    jobs: Iterable[JsonObject],
    before: Sequence[Condition] | None,
    now: datetime,
) -> DumpState:
    """Return the state of the CronJob `name`, or of the Backup object of that name.

    `before` are the conditions of the status; without a CronJob and a Backup, there is no state.
    """
    if (cron_job := observed.child(CRON_JOB, name)) is not None:
        own = jobs_of(cron_job, jobs)
        condition = outcome_of(runs(own, (), observed.obstacles, parse_backup), before, now)
        if cron_job.get("spec", {}).get("suspend"):
            condition = _suspended_condition(name, now)
        return DumpState([condition], without_a_pod(own))
    backup = observed.child(BACKUP, name) or {}
    backed_up = of_type(BACKED_UP, backup.get("status", {}).get("conditions") or ())
    if backed_up is None:
        return DumpState()
    message = f"Backup {name}: {backed_up.get('message', '')}"
    return DumpState([Condition.model_validate({**backed_up, "message": message})])


def _suspended_condition(name: str, now: datetime) -> Condition:
    """Return the condition of a CronJob that somebody suspended."""
    resume = f'kubectl patch cronjob/{name} -p \'{{"spec":{{"suspend":false}}}}\''
    message = f"CronJob {name} is suspended, and no dump is made; {resume}"
    return Condition.of(BACKED_UP, False, "Suspended", now, message)


def cron_job(metadata: JsonObject, schedule: str, pod: JsonObject) -> JsonObject:
    """Return the CronJob that runs a pod on a schedule; its Jobs and pods have its labels."""
    labelled = {"labels": metadata["labels"]}
    return {
        "apiVersion": CRON_JOB.api_version,
        "kind": CRON_JOB.kind,
        "metadata": metadata,
        "spec": {
            "schedule": schedule,
            "timeZone": "Etc/UTC",
            "concurrencyPolicy": "Forbid",
            "startingDeadlineSeconds": 3600,
            "successfulJobsHistoryLimit": 1,
            "failedJobsHistoryLimit": 1,
            "jobTemplate": {
                "metadata": labelled,
                "spec": {
                    "backoffLimit": 2,
                    "activeDeadlineSeconds": ACTIVE_DEADLINE,
                    "template": {"metadata": labelled, "spec": pod},
                },
            },
        },
    }


def backup(metadata: JsonObject, type: str, connection: JsonObject, dumps: Dumps) -> JsonObject:
    """Return the Backup object of a server.

    Its destination is unset where the server names none.
    """
    return {
        "apiVersion": BACKUP.api_version,
        "kind": BACKUP.kind,
        "metadata": metadata,
        "spec": {
            "source": {"type": type, "connection": connection},
            "destination": dumps.destination.to_api() if dumps.destination else {},
            "schedule": dumps.schedule,
            "retention": dumps.retention,
        },
    }
