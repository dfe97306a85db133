"""The plan of a PostgreSQL whose major version changes: tables of what is observed -> what runs."""

from collections.abc import Sequence
from typing import Any

import pytest

from controller.reconcilers.postgresql_members import keep_pod
from controller.runtime.plan import ApplyFields, Delete, Plan
from kube.resource import JsonObject
from tests.controller.reconcilers.test_postgresql import (
    LABELS,
    child,
    endpoints,
    made,
    planned,
    pod,
    reported,
    stateful_set,
    step_of,
    writes,
)

UP = {"version": "17", "majorUpgrade": "Reversible", "replicas": 2, "storage": "1Gi"}
CHECK, UPGRADE = "shop-check-17", "shop-upgrade-17"
SYNC = endpoints("shop-sync", leader="shop-0", sync_standby="shop-1")
LED = endpoints(leader="shop-0")
REFUSED = "reg* data types"


def instances(
    replicas: int, *, version: str = "14", existing: int | None = None, ready: int | None = None
) -> JsonObject:
    """The StatefulSet with this many desired, existing and ready instances."""
    count = replicas if existing is None else existing
    stored = stateful_set(count if ready is None else ready)
    stored["metadata"]["labels"] = {"app.kubernetes.io/version": version}
    stored["spec"]["replicas"] = replicas
    stored["status"]["replicas"] = count
    return stored


def job(name: str, end: str = "Complete") -> JsonObject:
    """A Job that ended, or that runs with an empty `end`."""
    moment = "2026-01-01T00:00:00Z"
    ended = [{"type": end, "status": "True", "lastTransitionTime": moment}] if end else []
    stored = child("Job", name, status={"conditions": ended})
    stored["metadata"]["labels"] = {**LABELS, "app.kubernetes.io/component": "upgrade"}
    return stored


def failed_pod(job: str) -> JsonObject:
    """The pod of a Job that failed, as the cache keeps it."""
    terminated = {"exitCode": 1, "message": f"log\n{REFUSED}"}
    status = {"containerStatuses": [{"name": "upgrade", "state": {"terminated": terminated}}]}
    stored = child("Pod", f"{job}-x", spec={}, status=status)
    stored["metadata"]["labels"] = {"job-name": job}
    kept = keep_pod(stored)
    return stored | kept | {"metadata": {**stored["metadata"], **kept["metadata"]}}


def recorded(version: str, previous: str = "") -> JsonObject:
    """The versions that the first instance recorded."""
    about = "database.example.com"
    versions = {f"{about}/version": version, f"{about}/previous-version": previous}
    return endpoints("shop-config", **versions)


def running(plan: Plan) -> tuple[str, int]:
    """The version and the number of instances that a plan runs."""
    (stored,) = made(plan, "StatefulSet")
    image = stored["spec"]["template"]["spec"]["containers"][0]["image"]
    return image.rpartition(":")[2], stored["spec"]["replicas"]


def condition(plan: Plan) -> tuple[str, str]:
    """Status and reason of the condition `Upgraded`."""
    ((status, reason, _),) = reported(plan, "Upgraded")
    return status, reason


@pytest.mark.parametrize(
    ("children", "found", "runs", "reason", "jobs"),
    [
        ([instances(2)], [LED, SYNC], ("14", 2), "Checking", [CHECK]),
        ([instances(2), job(CHECK, "")], [LED, SYNC], ("14", 2), "Checking", [CHECK]),
        (
            [instances(2), job(CHECK, "Failed")],
            [LED, SYNC, failed_pod(CHECK)],
            ("14", 2),
            "CheckFailed",
            [CHECK],
        ),
        ([instances(2), job(CHECK)], [LED, SYNC], ("14", 1), "Stopping", [CHECK]),
        # no synchronous standby: the primary could not hand over
        ([instances(2), job(CHECK)], [LED], ("14", 2), "Stopping", [CHECK]),
        ([instances(1, existing=2), job(CHECK)], [LED, SYNC], ("14", 1), "Stopping", [CHECK]),
        # the last instance is the first one, and it is the primary
        ([instances(1), job(CHECK)], [LED], ("14", 0), "Stopping", [CHECK]),
        ([instances(1), job(CHECK)], [endpoints(leader="shop-1")], ("14", 1), "Stopping", [CHECK]),
        ([instances(0, existing=1), job(CHECK)], [LED], ("14", 0), "Stopping", [CHECK]),
        ([instances(0), job(CHECK)], [], ("14", 0), "Upgrading", [CHECK, UPGRADE]),
        (
            [instances(0), job(CHECK), job(UPGRADE, "")],
            [],
            ("14", 0),
            "Upgrading",
            [CHECK, UPGRADE],
        ),
        (
            [instances(0), job(CHECK), job(UPGRADE, "Failed")],
            [failed_pod(UPGRADE)],
            ("14", 2),
            "UpgradeFailed",
            [CHECK, UPGRADE],
        ),
        (
            [instances(0), job(CHECK), job(UPGRADE)],
            [],
            ("17", 1),
            "Starting",
            [CHECK, UPGRADE],
        ),
        ([instances(1, version="17", ready=0)], [], ("17", 1), "Starting", []),
    ],
)
def test_the_steps_of_an_upgrade(
    children: list[JsonObject],
    found: list[JsonObject],
    runs: tuple[str, int],
    reason: str,
    jobs: Sequence[str],
) -> None:
    """Check, stop one by one, upgrade, start the first instance; a failure runs the old version."""
    plan = planned(children=children, found=found, **UP)
    assert (running(plan), condition(plan)) == (runs, ("False", reason))
    made_jobs = [each["metadata"]["name"] for each in made(plan, "Job")]
    assert made_jobs == jobs
    assert plan.status.to_api()["version"] == "14"
    assert plan.problem is None
    step = step_of(plan, "upgrade")
    assert not step.ready
    if reason.endswith("Failed"):
        assert step.problem.reason == reason
        assert f"{REFUSED}: PostgreSQL 14 runs on. Correct the cause" in step.problem.message
    if reason == "Starting":
        assert step.note == (
            "shop-0 starts with PostgreSQL 17; if it cannot, correct the cause, or set spec.version back to 14"
        )


def test_a_recorded_upgrade_is_done() -> None:
    """All instances run; the way back is open until it is given up or taken."""
    some, all_ready = instances(2, version="17", ready=1), instances(2, version="17")
    found = [endpoints(leader="shop-0"), recorded("17", "14"), job(CHECK), pod()]
    plan = planned(children=[some], found=found, **UP)
    assert (running(plan), condition(plan)) == (("17", 2), ("True", "CloningStandbys"))
    assert [write.reference.name for write in writes(plan, "upgrade")] == [CHECK]
    assert all(isinstance(write, Delete) for write in writes(plan, "upgrade"))

    plan = planned(children=[all_ready], found=found, **UP)
    assert condition(plan) == ("True", "Reversible")
    status = plan.status.to_api()
    assert (status["version"], status["previousVersion"]) == ("17", "14")
    assert given_up(plan) is None
    assert given_up(planned(children=[some], found=found, **UP | {"majorUpgrade": "Final"})) is None
    final = planned(children=[all_ready], found=found, **UP | {"majorUpgrade": "Final"})
    assert given_up(final) == ""


def given_up(plan: Plan) -> str | None:
    """What a plan writes as the previous version."""
    (fields,) = (
        write.fields["metadata"]["annotations"]
        for write in writes(plan, "database")
        if isinstance(write, ApplyFields)
    )
    return fields.get("database.example.com/previous-version")


@pytest.mark.parametrize(
    ("stored", "runs"),
    [
        (instances(2, version="17"), ("17", 0)),
        (instances(0, version="17", existing=1), ("17", 0)),
        (instances(0, version="17"), ("14", 1)),
        (instances(1, version="14", ready=0), ("14", 1)),
    ],
)
def test_the_way_back_stops_all_and_starts_the_first(
    stored: JsonObject, runs: tuple[str, int]
) -> None:
    """It needs no `majorUpgrade`; it is the version that the upgrade left."""
    back: dict[str, Any] = {"version": "14", "replicas": 2, "storage": "1Gi"}
    plan = planned(children=[stored], found=[LED, recorded("17", "14")], **back)
    assert (running(plan), condition(plan)) == (runs, ("False", "GoingBack"))
    assert plan.problem is None
    assert plan.status.to_api()["previousVersion"] == "14"  # which admission allows


@pytest.mark.parametrize(
    ("found", "spec"),
    [
        ([recorded("17", "14")], {"version": "15"}),
        ([recorded("17")], {"version": "14"}),
        ([], {"version": "17"}),
    ],
)
def test_other_changes_of_the_version_are_refused(
    found: list[JsonObject], spec: dict[str, str]
) -> None:
    """An earlier version, and a later one without `majorUpgrade`; what runs stays."""
    plan = planned(children=[instances(2)], found=found, storage="1Gi", **spec)
    assert plan.problem is not None
    assert plan.problem.reason == "Refused"


def test_the_image_of_a_user_waits_for_the_upgrade() -> None:
    """Until then the instances keep theirs; the Jobs have the new one."""
    stored = instances(2)
    stored["spec"]["template"] = {"spec": {"containers": [{"name": "postgres", "image": "own:14"}]}}
    plan = planned(children=[stored], found=[LED, SYNC], image="own:17", **UP)
    (instance_set,), (check,) = made(plan, "StatefulSet"), made(plan, "Job")
    images = [
        object["spec"]["template"]["spec"]["containers"][0]["image"]
        for object in (instance_set, check)
    ]
    assert images == ["own:14", "own:17"]
