"""`restoreFrom` of a PostgreSQL: the Job that restores, and why there is none."""

from typing import Any

import pytest

from config.api.postgresql import PostgreSQL
from controller.reconcilers.postgresql import POSTGRESQL
from controller.reconcilers.postgresql_members import keep_pod
from controller.reconcilers.resources import BACKUP, ENDPOINTS, POD
from controller.runtime.plan import CreateOnly, Observed, Plan, Problem
from kube.resource import JsonObject
from tests.controller.reconcilers.test_postgresql import LED, NOW, child, stateful_set, step_of
from tests.controller.reconcilers.test_postgresql import pod as instance

NAME = "20261120T020000Z-x"
FROM = {"backup": "nightly"}
FAILED = {"type": "Failed", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
COMPLETE = {**FAILED, "type": "Complete"}


def backup(type: str = "postgresql", server: str | None = "postgres:16", **spec: Any) -> JsonObject:
    """A stored Backup."""
    connection = {"host": "old-db", "secretRef": {"name": "login"}}
    return {
        "metadata": {"name": "nightly", "namespace": "default"},
        "spec": {
            "source": {"type": type, "connection": connection},
            "destination": {"bucket": "backups", "secretRef": {"name": "store"}},
            "serviceAccountName": "saver",
            **spec,
        },
        "status": {"server": server},
    }


def planned(
    stored: JsonObject | None,
    *children: JsonObject,
    pods: list[JsonObject] | None = None,
    status: JsonObject | None = None,
    version: str = "16",
    restore_from: JsonObject = FROM,
) -> Plan:
    """The plan of a PostgreSQL that restores a Backup."""
    spec = {"version": version, "restoreFrom": restore_from, "users": [{"name": "app"}]}
    about = {"name": "shop", "namespace": "default", "uid": "1", "generation": 1}
    found: dict[Any, Any] = {(BACKUP, "restore", "nightly"): [stored] if stored else []}
    found[POD, "instance", "shop"] = pods or []
    found[ENDPOINTS, "instance", "shop"] = [LED]
    database = PostgreSQL.model_validate({"metadata": about, "spec": spec, "status": status or {}})
    return POSTGRESQL.plan(database, Observed(children=children, found=found), NOW)


def job(*conditions: JsonObject) -> JsonObject:
    """The Job in its stored form."""
    return child("Job", "shop-restore", status={"conditions": list(conditions)})


def pod(code: int, message: str) -> JsonObject:
    """The pod of the Job, which ended, as the cache keeps it."""
    terminated = {"exitCode": code, "message": message}
    owners = [{"uid": "shop-restore-uid", "controller": True}]
    status = {"containerStatuses": [{"name": "backup", "state": {"terminated": terminated}}]}
    about = {"labels": {"job-name": "shop-restore"}, "ownerReferences": owners}
    kept = keep_pod({"metadata": about, "status": status})
    return {**kept, "metadata": {**kept["metadata"], "name": "shop-restore-x"}}


@pytest.mark.parametrize(
    ("restore_from", "argument"),
    [(FROM, "latest"), ({**FROM, "at": "2026-11-20T04:00:00+02:00"}, "20261120T020000Z")],
)
def test_a_job_restores_into_the_new_server(restore_from: JsonObject, argument: str) -> None:
    """It reads the Backup's store, and writes as the superuser, before users are created."""
    step = step_of(planned(backup(), restore_from=restore_from), "restore")
    (write,) = step.writes
    assert isinstance(write, CreateOnly)
    pod = write.object["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    environment = {each["name"]: each.get("value") for each in container["env"]}
    assert (container["command"], container["image"]) == (
        ["/restore.sh", argument],
        "gatewright-backup-postgresql:1.1.0",
    )
    assert pod["serviceAccountName"] == "saver"
    assert (environment["SOURCE_HOST"], environment["RESTORE_INTO"]) == ("shop", "empty")
    assert environment["DESTINATION_PATH"] == "backups/default/nightly"
    assert (step.ready, step.depends_on) == (False, ("service",))
    assert "restore" in step_of(planned(backup()), "users and databases").depends_on


@pytest.mark.parametrize(
    ("stored", "more", "reason", "message"),
    [
        (backup("mysql"), {}, "Invalid", "it is of mysql, not of postgresql"),
        (backup(destination={}), {}, "Invalid", "its spec.destination.bucket must be set"),
        (
            backup(),
            {"version": "15"},
            "Invalid",
            "spec.version: 15; Backup nightly is of PostgreSQL 16; write 16 or later",
        ),
        (backup(), {"restore_from": {}}, "Incomplete", "spec.restoreFrom.backup: must be set"),
    ],
)
def test_what_cannot_be_restored_creates_nothing(
    stored: JsonObject, more: JsonObject, reason: str, message: str
) -> None:
    """The message names the field and the remedy; an empty database would have to be deleted first."""
    plan = planned(stored, **more)
    assert plan.problem is not None
    assert (plan.problem.reason, message in plan.problem.message) == (reason, True), plan.problem
    assert [write for step in plan.steps for write in step.writes] == []


def test_a_backup_that_does_not_exist_is_waited_for() -> None:
    """The condition names the field and the remedy; users and backups wait."""
    plan = planned(None)
    step = step_of(plan, "restore")
    assert (plan.problem, step.ready, len(step.writes)) == (None, False, 0)
    assert step.note.reason == "BackupNotFound"
    assert step.note.message.startswith(
        'spec.restoreFrom.backup: "nightly": there is no Backup of that name in namespace default'
    )


def test_a_backup_of_an_older_or_unknown_server_is_restored() -> None:
    """An older one is an upgrade; of a Backup applied in a new cluster nothing is known yet."""
    for server in ("postgres:14", None):
        plan = planned(backup(server=server))
        assert (plan.problem, len(step_of(plan, "restore").writes)) == (None, 1)


def test_what_was_restored_stays_in_the_status() -> None:
    """The Job succeeded; then it may be deleted, and the Backup, and it does not run again."""
    plan = planned(backup(), job(COMPLETE), pods=[pod(0, f'{{"restored":"{NAME}"}}')])
    assert plan.status.to_api()["restoredFrom"] == NAME
    assert step_of(plan, "restore").ready
    later = planned(None, status={"restoredFrom": NAME})
    assert (later.problem, later.status.to_api()["restoredFrom"]) == (None, NAME)
    assert (step_of(later, "restore").writes, step_of(later, "restore").ready) == ((), True)


def test_a_database_without_its_rows_does_not_run() -> None:
    """The phase is that of a database which is being made, also once all instances are ready."""

    def phase(stored: JsonObject | None, *children: JsonObject) -> str:
        plan = planned(stored, stateful_set(), *children, pods=[instance()])
        return str(plan.status.to_api()["phase"])

    assert [phase(None), phase(backup()), phase(backup(), job(FAILED))] == ["Deploying"] * 3
    assert phase(backup(), job(COMPLETE)) == "Running"


def test_a_failed_restore_says_why() -> None:
    """The database stays, without users, until the Job is deleted."""
    said = "failed while looking at what the server has: the server is not empty"
    step = step_of(planned(backup(), job(FAILED), pods=[pod(1, f"{said}\n")]), "restore")
    again = "see the log of job/shop-restore, and delete it to try again"
    assert (step.ready, step.note) == (False, Problem(f"{said}: {again}", "JobFailed"))


def test_without_the_field_there_is_no_job() -> None:
    """The step is done."""
    plan = POSTGRESQL.plan(
        PostgreSQL.model_validate({"metadata": {"name": "shop", "namespace": "d"}, "spec": {}}),
        Observed(),
        NOW,
    )
    step = step_of(plan, "restore")
    assert (step.ready, list(step.writes)) == (True, [])
