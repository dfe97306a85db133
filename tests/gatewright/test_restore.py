"""`gatewright restore`: the Job that it creates, and what it says before."""

from datetime import UTC, datetime

import click
import pytest

from config.api.appstack import AppStack
from config.api.backup import Backup
from config.api.postgresql import PostgreSQL
from controller.reconcilers.appstack import APP_STACK
from controller.reconcilers.backup_cronjob import plan_cronjob
from controller.reconcilers.mysql_backups import RESTORE
from controller.reconcilers.postgresql import POSTGRESQL
from controller.reconcilers.resources import CRON_JOB
from controller.runtime.plan import Apply, Observed, Plan
from gatewright.cli import main
from gatewright.commands.restore import describe_replaced, find_backups, restore_job
from gatewright.testing import ApiServer
from kube.client import Client
from kube.resource import JsonObject

NOW = datetime(2026, 11, 21, 17, 0, 30, tzinfo=UTC)
SPEC = {
    "source": {
        "type": "postgresql",
        "connection": {"host": "shop-db", "database": "shop", "secretRef": {"name": "login"}},
    },
    "destination": {"bucket": "backups", "secretRef": {"name": "store"}},
}


def cronjob() -> JsonObject:
    """The CronJob of a Backup."""
    metadata = {"name": "nightly", "namespace": "shop"}
    return plan_cronjob(Backup.model_validate({"metadata": metadata, "spec": SPEC}), {})


def cronjob_to_a_claim() -> JsonObject:
    """The CronJob that dumps a PostgreSQL to a claim."""
    spec = {"backup": {"enabled": True}}
    about = {"name": "shop-db", "namespace": "shop", "uid": "1"}
    database = PostgreSQL.model_validate({"metadata": about, "spec": spec})
    return cronjob_of(POSTGRESQL.plan(database, Observed(), NOW))


def stack() -> JsonObject:
    """A stack with a MySQL server that is dumped to a claim."""
    metadata = {"name": "shop", "namespace": "default", "uid": "1"}
    database = {"type": "mysql", "backup": {"enabled": True}}
    return {"metadata": metadata, "spec": {"database": database}}


def cronjob_of(plan: Plan) -> JsonObject:
    """The planned CronJob."""
    writes = [write for step in plan.steps for write in step.writes if isinstance(write, Apply)]
    return next(write.object for write in writes if write.object["kind"] == "CronJob")


def test_the_job_has_the_pod_of_a_backup_and_another_command() -> None:
    """It has the CronJob's credentials and no owner, so that it is no backup; it runs once."""
    job = restore_job(cronjob(), ["latest", "shop", "copy"], NOW)
    backup_pod = cronjob()["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    pod = job["spec"]["template"]["spec"]
    (container,), (made,) = pod["containers"], backup_pod["containers"]
    assert job["metadata"] == {
        "name": "nightly-cronjob-restore-1121170030",
        "namespace": "shop",
        "labels": {"gatewright.io/backup": "nightly"},
    }
    assert container == {**made, "command": ["/restore.sh", "latest", "shop", "copy"]}
    assert (job["spec"]["backoffLimit"], pod["restartPolicy"]) == (0, "Never")


def test_dumps_in_a_claim_are_restored_as_a_whole() -> None:
    """By the database's own script."""
    job = restore_job(cronjob_to_a_claim(), ["20261121T020000Z"], NOW)
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["bash", "/etc/gatewright/restore.sh"]
    assert container["env"][-1] == {"name": "BACKUP", "value": "20261121T020000Z"}
    with pytest.raises(click.UsageError, match="dumps in a claim are restored as a whole"):
        restore_job(cronjob_to_a_claim(), ["latest", "shop"], NOW)


async def test_the_backups_of_a_stack_are_found_by_its_name() -> None:
    """Those of its database; a MySQL server's are restored by a script of their own."""
    planned = cronjob_of(APP_STACK.plan(AppStack.model_validate(stack()), Observed(), NOW))
    async with ApiServer(APP_STACK) as server:
        server.create(APP_STACK.resource, stack())
        async with Client(server.endpoint) as client:
            with pytest.raises(click.ClickException, match="AppStack or EcommercePlatform shop"):
                await find_backups(client, "shop", "default")
            server.create(CRON_JOB, planned)
            found, text = await find_backups(client, "shop", "default")
    (container,) = restore_job(found, ["latest"], NOW)["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["bash", "-c", RESTORE]
    assert text == (
        "Replaces: databases of the MySQL server shop-db\nLater writes to them are lost.\n"
        "Afterwards, restart it for the passwords of its Secret: "
        "kubectl rollout restart statefulset/shop-db -n default"
    )


def test_what_is_replaced_is_said() -> None:
    """The server, the database, the newest backup, and when one was last restored by a drill."""
    status = {"lastBackup": "20261121T020000Z-x"}
    assert describe_replaced({"spec": SPEC, "status": status}) == (
        "Replaces: tables of shop in the postgresql server shop-db; "
        "tables that are not in the backup stay\n"
        "Later writes to them are lost.\n"
        "Newest good backup: 20261121T020000Z-x, verified by a drill: never"
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ("--backup", "20261121T020000Z", "--at", "2026-11-21"),
            "--backup and --at exclude each other",
        ),
        (("--as", "copy"), "--as needs --database"),
    ],
)
def test_options_that_contradict_are_an_error(
    options: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before a cluster is asked."""
    with pytest.raises(SystemExit) as ended:
        main(["restore", "nightly", *options])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err
