"""Prometheus metrics of Backups: the time of the last success, and when the next one is due."""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from pydantic import ValidationError

from config.api.backup import Backup
from config.cron import CronError, upcoming
from kube.resource import JsonObject

LABELS = ("namespace", "name")


class LastBackups(Collector):
    """Computes the metrics at each scrape from the Backups' statuses.

    A deleted Backup has no series.
    """

    def __init__(self, stored: Callable[[], Iterable[JsonObject]]) -> None:
        """Take a function that returns the stored Backups."""
        self._stored = stored

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
        )

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the metrics with a value for each Backup that has one."""
        last, next = self.describe()
        for backup in readable(self._stored()):
            labels = (backup.namespace, backup.name)
            if succeeded := backup.status.last_successful_time:
                last.add_metric(labels, succeeded.timestamp())
            if moment := due(backup):
                next.add_metric(labels, moment.timestamp())
        yield from (last, next)


def readable(stored: Iterable[JsonObject]) -> Iterator[Backup]:
    """Yield the valid Backups; an invalid one has the reason in its status."""
    for each in stored:
        try:
            yield Backup.model_validate(each)
        except ValidationError:
            continue


def due(backup: Backup) -> datetime | None:
    """Return the deadline of the first run after the last success, or after creation."""
    since = backup.status.last_successful_time or backup.metadata.creation_timestamp
    if since is None or backup.spec.suspend:
        return None
    try:
        return upcoming(backup.spec.schedule, since) + timedelta(
            seconds=backup.spec.active_deadline_seconds
        )
    except CronError:
        return None
