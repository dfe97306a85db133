"""The metrics of Backups."""

from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from controller.reconcilers.backup_metrics import LastBackups

LAST = 'gatewright_backup_last_success_timestamp_seconds{name="nightly",namespace="shop"}'
DUE = 'gatewright_backup_due_timestamp_seconds{name="nightly",namespace="shop"}'
CREATED = "2026-11-20T12:00:00Z"
SUCCEEDED = {"lastSuccessfulTime": "2026-11-21T02:10:00Z"}
DAY, HOUR = 86400.0, 3600.0
MIDNIGHT = 1795219200.0  # 2026-11-21T00:00:00Z
AT = MIDNIGHT + 2 * HOUR + 600


def series(spec: dict[str, Any], status: dict[str, Any] | None = None) -> dict[str, float]:
    """The scraped series of one Backup, which was created a day earlier."""
    metadata = {"name": "nightly", "namespace": "shop", "creationTimestamp": CREATED}
    registry = CollectorRegistry()
    registry.register(
        LastBackups(lambda: [{"metadata": metadata, "spec": spec, "status": status or {}}])
    )
    lines = [
        line.rpartition(" ")
        for line in generate_latest(registry).decode().splitlines()
        if line[0] != "#"
    ]
    return {name: float(value) for name, _, value in lines}


@pytest.mark.parametrize(
    ("spec", "status", "expected"),
    [
        ({}, {}, {DUE: MIDNIGHT + 8 * HOUR}),
        ({}, SUCCEEDED, {LAST: AT, DUE: MIDNIGHT + DAY + 8 * HOUR}),
        (
            {"schedule": "0 * * * *", "activeDeadlineSeconds": 600},
            SUCCEEDED,
            {LAST: AT, DUE: MIDNIGHT + 3 * HOUR + 600},
        ),
        ({"suspend": True}, SUCCEEDED, {LAST: AT}),
        ({"schedule": "@never"}, {}, {}),
        ({"retention": 7}, SUCCEEDED, {}),
    ],
)
def test_a_backup_is_due_when_a_run_has_used_up_its_time(
    spec: dict[str, Any], status: dict[str, Any], expected: dict[str, float]
) -> None:
    """The due time is the first run after the last good backup plus its time limit.

    A Backup that cannot run has none.
    """
    assert series(spec, status) == expected
