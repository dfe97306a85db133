"""Drills of a Backup: when there is a CronJob for them, what it runs, and what the status says."""

from typing import Any

import orjson
import pytest

from controller.reconcilers.backup import BACKUP
from controller.reconcilers.resources import CRON_JOB, JOB, POD, SECRET
from controller.runtime.plan import Apply, Delete, Observed, Plan, Problem, Reference
from kube.resource import JsonObject
from tests.controller.reconcilers.test_backup import NOW, backup, cronjob, job, made, owned, source

DRILL = {"schedule": "0 4 * * 0"}
SERVER = {"server": "postgres:16"}
DRILLS = {
    "apiVersion": "batch/v1",
    "kind": "CronJob",
    "metadata": {"name": "nightly-drill", "uid": "drill"},
}
NO_SERVER = (
    "no backup was restored yet: the next backup tells which server's image a drill needs; "
    "or set spec.drill.image"
)


def planned(
    *, status: JsonObject | None = None, jobs: Any = (), pods: Any = (), **spec: Any
) -> Plan:
    """The plan of a Backup whose CronJobs and Secrets exist."""
    found: dict[Any, Any] = {
        (SECRET, "secret", name): [{"metadata": {"name": name}}] for name in ("login", "store")
    }
    found |= {(JOB, "backup", "nightly"): jobs, (POD, "backup", "nightly"): pods}
    observed = Observed(children=[cronjob(), DRILLS], found=found)
    return BACKUP.plan(backup(status, **{"drill": DRILL} | spec), observed, NOW)


def drill_pod(day: str, code: int, message: str) -> JsonObject:
    """The pod of a day's drill."""
    terminated = {"exitCode": code, "message": message}
    return {
        "metadata": owned(f"drill-{day}-x", f"pod-{day}", f"job-{day}"),
        "status": {"containerStatuses": [{"name": "drill", "state": {"terminated": terminated}}]},
    }


def drilled(plan: Plan) -> JsonObject:
    """The CronJob of drills that a plan applies."""
    (write,) = plan.steps[-1].writes
    assert isinstance(write, Apply)
    return write.object


def restorable(plan: Plan) -> tuple[str, str, str]:
    """Its condition Restorable."""
    (condition,) = (
        candidate
        for candidate in plan.status.to_api()["conditions"]
        if candidate["type"] == "Restorable"
    )
    return condition["status"], condition["reason"], condition["message"]


def test_a_drill_runs_the_server_that_was_dumped() -> None:
    """The image has the version of the last backup; the tools come from the image of backups."""
    cronjob = drilled(planned(status=SERVER, suspend=True))
    job = cronjob["spec"]["jobTemplate"]["spec"]
    pod = job["template"]["spec"]
    (tools,), (drill,) = pod["initContainers"], pod["containers"]
    assert (cronjob["metadata"]["name"], cronjob["spec"]["schedule"]) == (
        "nightly-drill",
        "0 4 * * 0",
    )
    assert cronjob["spec"]["suspend"] is True
    assert (tools["image"], drill["image"]) == (
        "gatewright-backup-postgresql:1.1.0",
        "postgres:16",
    )
    assert job["ttlSecondsAfterFinished"] == 3600  # the volume goes with the pod
    assert pod["volumes"][1]["ephemeral"]["volumeClaimTemplate"]["spec"]["resources"] == {
        "requests": {"storage": "10Gi"}
    }
    names = {each["name"] for each in drill["env"]}
    assert {"SOURCE_TYPE", "DESTINATION_PATH", "DRILL_DATA"} <= names
    assert not names & {"SOURCE_HOST", "SOURCE_PASSWORD", "SOURCE_DATABASE"}


def test_a_drill_has_the_users_image_and_queries() -> None:
    """A query without a database is of the Backup's; what Kubernetes would replace is escaped."""
    queries = [{"query": "SELECT '$(HOME)' <> ''"}, {"database": "till", "query": "SELECT true"}]
    cronjob = drilled(planned(drill={"image": "postgis:16", "queries": queries}))
    (drill,) = cronjob["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    assert drill["image"] == "postgis:16"
    variables = {each["name"]: each.get("value") for each in drill["env"]}
    assert {
        name: text for name, text in variables.items() if name[:7] in ("DRILL_D", "DRILL_Q")
    } == {
        "DRILL_DATA": "/data",
        "DRILL_DATABASE_0": "shop",
        "DRILL_QUERY_0": "SELECT '$$(HOME)' <> ''",
        "DRILL_DATABASE_1": "till",
        "DRILL_QUERY_1": "SELECT true",
    }


def test_the_first_backup_is_waited_for() -> None:
    """It tells which server a drill needs; in the same pass its drill is planned."""
    plan = planned()
    assert (plan.steps[-1].writes, restorable(plan)) == ([], ("False", "NoneYet", NO_SERVER))
    word = '{"backup":"20261120T020000Z-x","bytes":20,"server":"postgres:16"}'
    pod = made("20")
    pod["status"]["containerStatuses"][0]["state"]["terminated"]["message"] = word
    after = planned(jobs=[job("20", "Complete")], pods=[pod])
    assert after.status.to_api()["server"] == "postgres:16"
    assert restorable(after) == ("False", "NoneYet", "no backup was restored yet")
    assert drilled(after)["metadata"]["name"] == "nightly-drill"


@pytest.mark.parametrize("server", ["registry.evil.com/x:1", "postgres:16; rm", 16, None, ""])
def test_only_known_servers_are_run(server: Any) -> None:
    """What a pod's message says is no image of anybody's choice."""
    pod, word = made("20"), {"backup": "20261120T020000Z-x", "bytes": 20, "server": server}
    text = orjson.dumps(word).decode()
    pod["status"]["containerStatuses"][0]["state"]["terminated"]["message"] = text
    plan = planned(jobs=[job("20", "Complete")], pods=[pod])
    assert plan.status.to_api().get("server") is None
    assert plan.status.to_api()["lastBackup"] == "20261120T020000Z-x"


def test_a_good_drill_is_in_the_status_and_stays() -> None:
    """Its time, its backup and what it counted; also once Job and pod are deleted."""
    word = '{"verified":"20261120T020000Z-x","databases":2,"tables":5,"rows":2000}'
    jobs = [job("20", "Complete", owner="drill")]
    plan = planned(status=SERVER, jobs=jobs, pods=[drill_pod("20", 0, word)])
    told = (
        "True",
        "Succeeded",
        "Job nightly-20: backup 20261120T020000Z-x was restored: 2 databases, 5 tables, 2000 rows",
    )
    status = plan.status.to_api()
    assert status["lastVerifiedTime"] == "2026-11-20T02:10:00Z"
    assert status["lastVerifiedBackup"] == "20261120T020000Z-x"
    assert restorable(plan) == told
    later = planned(status=status)
    assert later.status.to_api()["lastVerifiedTime"] == "2026-11-20T02:10:00Z"
    assert restorable(later) == told
    assert "lastSuccessfulTime" not in status  # a drill is no backup


def test_a_drill_that_finds_a_damaged_backup_says_which() -> None:
    """The last good drill stays in the status beside it."""
    message = "failed while restoring 20261120T020000Z-x: verifying shop.dump in the store: no\n"
    plan = planned(
        status={**SERVER, "lastVerifiedTime": "2026-11-13T02:10:00Z"},
        jobs=[job("20", "Failed", owner="drill")],
        pods=[drill_pod("20", 1, message)],
    )
    assert restorable(plan) == ("False", "Failed", f"Job nightly-20: {message.strip()}")
    assert plan.status.to_api()["lastVerifiedTime"] == "2026-11-13T02:10:00Z"
    assert plan.problem is None


def test_drills_end_with_their_field() -> None:
    """Without it the CronJob is deleted, and the status says nothing of drills."""
    plan = planned(status={**SERVER, "lastVerifiedTime": "2026-11-13T02:10:00Z"}, drill=None)
    assert plan.steps[-1].writes == [Delete(Reference(CRON_JOB, "nightly-drill", "drill", "shop"))]
    status = plan.status.to_api()
    assert ("lastVerifiedTime" in status, len(status["conditions"])) == (False, 1)


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        (
            {"drill": {"schedule": "0 25 * * *"}},
            Problem(
                'spec.drill.schedule: "0 25 * * *" is not a cron schedule: wrong hour', "Invalid"
            ),
        ),
        (
            {"source": source("mongodb")},
            Problem("spec.drill: MongoDB has no drills; remove it", "Invalid"),
        ),
        (
            {"source": source("mysql", database=None), "drill": {"queries": [{}]}},
            Problem(
                "spec.drill.queries[0].database, spec.drill.queries[0].query: must be set",
                "Incomplete",
            ),
        ),
    ],
)
def test_what_no_drill_can_be_made_of_is_reported(spec: JsonObject, problem: Problem) -> None:
    """Where no webhook has denied it."""
    assert planned(status=SERVER, **spec).problem == problem
