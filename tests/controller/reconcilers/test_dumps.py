"""The dumps of databases that the controller creates: how they end is in the condition BackedUp."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from controller.reconcilers.appstack import APP_STACK
from controller.reconcilers.postgresql import POSTGRESQL
from controller.reconcilers.resources import JOB
from controller.runtime.kind import PlannedKind
from controller.runtime.plan import Observed, Plan, Problem
from kube.resource import JsonObject

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KINDS = {
    "PostgreSQL": (POSTGRESQL, {"backup": {"enabled": True}}, "shop-backup", ("instance", "shop")),
    "AppStack": (
        APP_STACK,
        {"database": {"type": "mysql", "backup": {"enabled": True}}},
        "shop-db-backup",
        ("server", "shop-db"),
    ),
}
LATE = "Job shop-1: Job was active longer than specified deadline"
QUOTA = "Job shop-1: exceeded quota"
RESUME = """is suspended, and no dump is made; kubectl patch cronjob/{} -p '{{"spec":{{"suspend":false}}}}'"""


def job(**status: Any) -> JsonObject:
    """A Job of the CronJob."""
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "c", "uid": "c"}
    metadata = {
        "name": "shop-1",
        "uid": "1",
        "labels": {"app.kubernetes.io/component": "backup"},
        "ownerReferences": [{**owner, "controller": True}],
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    template = {"spec": {"containers": [{"name": "backup", "command": ["bash"]}]}}
    return {"metadata": metadata, "spec": {"template": template}, "status": status}


def ended(type: str, message: str = "") -> JsonObject:
    """A Job that has ended."""
    time = {"lastTransitionTime": "2026-01-01T00:00:00Z"}
    return job(conditions=[{"type": type, "status": "True", "message": message, **time}])


def planned(
    kind: str,
    jobs: Sequence[JsonObject],
    obstacles: Mapping[str, Problem],
    *,
    suspend: bool = False,
) -> Plan:
    """The plan of a database with a CronJob and these Jobs."""
    planner: PlannedKind[Any]
    planner, spec, name, found = KINDS[kind]
    cron_job = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name, "namespace": "eu", "uid": "c"},
        "spec": {"suspend": suspend},
    }
    object = {"metadata": {"name": "shop", "namespace": "eu", "uid": "s"}, "spec": spec}
    observed = Observed([cron_job], {(JOB, *found): jobs}, obstacles=obstacles)
    return planner.plan(planner.type.model_validate(object), observed, NOW)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("jobs", "obstacles", "told", "unexplained"),
    [
        ([], {}, "False NoneYet no backup was made yet", 0),
        ([ended("Complete")], {}, "True Succeeded Job shop-1: succeeded", 0),
        ([ended("Failed", LATE.removeprefix("Job shop-1: "))], {}, f"False Failed {LATE}", 0),
        ([job(active=1, ready=1)], {}, "False NoneYet no backup was made yet", 0),
        ([job(active=0)], {}, "False NoneYet no backup was made yet", 1),
        (
            [job(active=0)],
            {"1": Problem("Job shop-1: exceeded quota", "FailedCreate")},
            f"False Failing {QUOTA}",
            1,
        ),
    ],
)
def test_how_dumps_end_is_reported(
    kind: str,
    jobs: list[JsonObject],
    obstacles: dict[str, Problem],
    told: str,
    unexplained: int,
) -> None:
    """Both databases report it alike; the runtime looks up why a Job has no pod."""
    plan = planned(kind, jobs, obstacles)
    (condition,) = plan.status.to_api()["conditions"]
    assert condition["type"] == "BackedUp"
    assert f"{condition['status']} {condition['reason']} {condition['message']}" == told
    assert len(plan.unexplained) == unexplained


@pytest.mark.parametrize("kind", KINDS)
def test_suspended_dumps_are_reported(kind: str) -> None:
    """Somebody suspended the CronJob: no dump is made, and the message has the command that resumes it."""
    (condition,) = planned(kind, [ended("Complete")], {}, suspend=True).status.to_api()[
        "conditions"
    ]
    assert (condition["status"], condition["reason"]) == ("False", "Suspended")
    name = KINDS[kind][2]
    assert condition["message"] == f"CronJob {name} {RESUME.format(name)}"
