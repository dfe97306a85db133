"""Backups of the databases that the controller creates: a CronJob, or a Backup object."""

from config.api.storage import Dumps
from controller.reconcilers.resources import BACKUP, CRON_JOB
from kube.resource import JsonObject


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
                "spec": {"backoffLimit": 2, "template": {"metadata": labelled, "spec": pod}},
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
