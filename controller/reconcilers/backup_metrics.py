"""Prometheus metrics of backups: the time of the last success, and when the next one is due.

Of Backups, and of the CronJobs that dump a database to a claim.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from pydantic import ValidationError

from config.api.backup import Backup
from config.cron import CronError, upcoming
from controller.reconcilers.backup_status import RESTORABLE
from controller.reconcilers.dumps import ACTIVE_DEADLINE
from kube.resource import JsonObject
from kube.store import controller_of

LABELS = ("namespace", "name")


class LastBackups(Collector):
    """Computes the metrics at each scrape from the statuses of Backups and of CronJobs for dumps.

    A deleted object has no series.
    """

    def __init__(
        self,
        backups: Callable[[], Iterable[JsonObject]],
        cron_jobs: Callable[[], Iterable[JsonObject]] = tuple,
    ) -> None:
        """Take functions that return the stored Backups, and the CronJobs of databases."""
        self._backups, self._cron_jobs = backups, cron_jobs

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """Return the metrics without values."""
        return (
            GaugeMetricFamily(
                "gatewright_backup_last_success_timestamp_seconds",
                "When the last good backup was complete; none where there was none yet.",
                labels=LABELS,
            ),
            GaugeMetricFamily(
                "gatewright_backup_due_timestamp_seconds",
                (
                    "When a run that was scheduled after the last good backup has used up its "
                    "time; "
                    "none while suspended."
                ),
                labels=LABELS,
            ),
            GaugeMetricFamily(
                "gatewright_backup_last_verified_timestamp_seconds",
                "When a drill last restored a backup; none where there was none yet.",
                labels=LABELS,
            ),
            GaugeMetricFamily(
                "gatewright_backup_drill_due_timestamp_seconds",
                (
                    "When a drill that was scheduled after the last good one has used up its "
                    "time; none without drills or while suspended."
                ),
                labels=LABELS,
            ),
        )

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the metrics with a value for each Backup that has one."""
        last, next, verified, drill_due = self.describe()
        for backup in readable(self._backups()):
            labels = (backup.namespace, backup.name)
            if succeeded := backup.status.last_successful_time:
                last.add_metric(labels, succeeded.timestamp())
            if moment := due(backup):
                next.add_metric(labels, moment.timestamp())
            if tried := backup.status.last_verified_time:
                verified.add_metric(labels, tried.timestamp())
            if moment := due_of_drills(backup):
                drill_due.add_metric(labels, moment.timestamp())
        for cron_job in self._cron_jobs():
            metadata = cron_job["metadata"]
            labels = (metadata["namespace"], metadata["name"])
            if time := cron_job.get("status", {}).get("lastSuccessfulTime"):
                last.add_metric(labels, datetime.fromisoformat(time).timestamp())
            next.add_metric(labels, due_of_dumps(cron_job).timestamp())
        yield from (last, next, verified, drill_due)


def readable(stored: Iterable[JsonObject]) -> Iterator[Backup]:
    """Yield the valid Backups; an invalid one has the reason in its status."""
    for backup in stored:
        try:
            yield Backup.model_validate(backup)
        except ValidationError:
            continue


def dumps_a_database(cron_job: JsonObject) -> bool:
    """Return whether a CronJob belongs to a database; that of a Backup has another owner."""
    owner = controller_of(cron_job["metadata"])
    return owner is not None and owner.kind != Backup.definition.kind


def due_of_dumps(cron_job: JsonObject) -> datetime:
    """Return the deadline of the first dump after the last success, or after creation.

    A CronJob that somebody suspended is due, too.
    """
    spec, metadata = cron_job["spec"], cron_job["metadata"]
    last = cron_job.get("status", {}).get("lastSuccessfulTime")
    since = datetime.fromisoformat(last or metadata["creationTimestamp"])
    deadline = spec["jobTemplate"]["spec"].get("activeDeadlineSeconds", ACTIVE_DEADLINE)
    return upcoming(spec["schedule"], since) + timedelta(seconds=deadline)


def due(backup: Backup) -> datetime | None:
    """Return the deadline of the first run after the last success, or after creation."""
    since = backup.status.last_successful_time or backup.metadata.creation_timestamp
    return _due(backup, backup.spec.schedule, since)


def due_of_drills(backup: Backup) -> datetime | None:
    """Return the deadline of the first drill after the last good one, or after drills began."""
    if backup.spec.drill is None:
        return None
    conditions = backup.status.conditions or ()
    began = (each.last_transition_time for each in conditions if each.type == RESTORABLE)
    since = backup.status.last_verified_time or next(began, None)
    return _due(backup, backup.spec.drill.schedule, since)


def _due(backup: Backup, schedule: str, since: datetime | None) -> datetime | None:
    if since is None or backup.spec.suspend:
        return None
    try:
        return upcoming(schedule, since) + timedelta(seconds=backup.spec.active_deadline_seconds)
    except CronError:
        return None
