"""The metrics of Backups."""

from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from controller.reconcilers.backup_metrics import LastBackups, dumps_a_database

LAST = 'gatewright_backup_last_success_timestamp_seconds{name="nightly",namespace="shop"}'
VERIFIED = 'gatewright_backup_last_verified_timestamp_seconds{name="nightly",namespace="shop"}'
DRILL_DUE = 'gatewright_backup_drill_due_timestamp_seconds{name="nightly",namespace="shop"}'
DUE = 'gatewright_backup_due_timestamp_seconds{name="nightly",namespace="shop"}'
CREATED = "2026-11-20T12:00:00Z"
SUCCEEDED = {"lastSuccessfulTime": "2026-11-21T02:10:00Z"}
BEGAN = {
    "type": "Restorable",
    "status": "False",
    "reason": "NoneYet",
    "message": "no backup was restored yet",
    "lastTransitionTime": "2026-11-21T12:00:00Z",
}
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
    return scraped(registry)


def scraped(registry: CollectorRegistry) -> dict[str, float]:
    """The series of a registry, by name and labels."""
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


@pytest.mark.parametrize(
    ("spec", "status", "expected"),
    [
        ({"drill": {}}, {}, {}),
        ({"drill": {}}, {"conditions": [BEGAN]}, {DRILL_DUE: MIDNIGHT + DAY + 10 * HOUR}),
        (
            {"drill": {"schedule": "@daily"}},
            {"conditions": [BEGAN], "lastVerifiedTime": "2026-11-21T02:10:00Z"},
            {VERIFIED: AT, DRILL_DUE: MIDNIGHT + DAY + 6 * HOUR},
        ),
        ({}, {"conditions": [BEGAN]}, {}),
        ({"drill": {}, "suspend": True}, {"conditions": [BEGAN]}, {}),
    ],
)
def test_a_drill_is_due_when_one_has_used_up_its_time(
    spec: dict[str, Any], status: dict[str, Any], expected: dict[str, float]
) -> None:
    """Counted from the last good drill, or from when the Backup got drills: not from its creation."""
    found = series(spec, status)
    assert {name: value for name, value in found.items() if name != DUE} == expected


@pytest.mark.parametrize(
    ("owner", "status", "suspend", "expected"),
    [
        ("PostgreSQL", {}, False, {DUE: MIDNIGHT + 8 * HOUR}),
        ("AppStack", SUCCEEDED, False, {LAST: AT, DUE: MIDNIGHT + DAY + 8 * HOUR}),
        ("AppStack", SUCCEEDED, True, {LAST: AT, DUE: MIDNIGHT + DAY + 8 * HOUR}),
        ("Backup", SUCCEEDED, False, {}),
        (None, SUCCEEDED, False, {}),
    ],
)
def test_dumps_of_databases_have_the_same_metrics(
    owner: str | None, status: dict[str, Any], suspend: bool, expected: dict[str, float]
) -> None:
    """They come from the CronJob of a database; one that somebody suspended is due."""
    reference = {
        "apiVersion": "a/v1",
        "kind": owner,
        "name": "shop",
        "uid": "1",
        "controller": True,
    }
    metadata = {
        "name": "nightly",
        "namespace": "shop",
        "creationTimestamp": CREATED,
        "ownerReferences": [reference] if owner else [],
    }
    spec = {"schedule": "0 2 * * *", "suspend": suspend, "jobTemplate": {"spec": {}}}
    stored = [{"metadata": metadata, "spec": spec, "status": status}]
    registry = CollectorRegistry()
    registry.register(LastBackups(list, lambda: filter(dumps_a_database, stored)))
    assert scraped(registry) == expected
