"""A PostgreSQL in pods is upgraded from 15 to 17 in place: attempts that fail, one that succeeds, and the way back."""

import json
import re
from collections.abc import Iterator

import pytest

from tests.node.clients import IMAGE
from tests.node.conftest import Figures
from tests.node.installation import Installation
from tests.node.test_databases import PODS, POSTGRESQL, primary, sql_in, wait_ready

pytestmark = [pytest.mark.node, pytest.mark.long]

NAMESPACE = "upgrades"
ROWS = "SELECT count(*) FROM orders"
PATIENT = 300.0  # seconds, for Jobs on a busy machine


@pytest.fixture(scope="module")
def database(node) -> Iterator[Installation]:
    """A PostgreSQL 15 of two instances, whose image has 17, too, on volumes that are too small for an upgrade."""
    installation = Installation(node)
    installation.have()
    installation.namespace(NAMESPACE)
    on_each_empty_volume(installation, "mount -t tmpfs -o size=300m tmpfs $at")
    spec = {**POSTGRESQL["spec"], "version": "15", "image": IMAGE}
    node.apply([{**POSTGRESQL, "metadata": {"name": "db", "namespace": NAMESPACE}, "spec": spec}])
    wait_ready(installation, "postgresql/db", NAMESPACE)
    on_each_empty_volume(installation, "umount $at")
    write(installation, "CREATE TABLE orders AS SELECT 1 AS id")
    yield installation
    installation.cluster.kubectl("delete", "postgresqls", "--all", "-n", NAMESPACE)


def test_upgrades_that_fail_leave_the_version_and_one_that_succeeds_can_be_taken_back(
    database: Installation, figure: Figures
) -> None:
    """The rows are those of before; the way back loses only what was written after the upgrade."""
    before = uids(database)
    change(database, version="17", majorUpgrade="Reversible")
    failed = lambda: upgraded(database)[1] == "CheckFailed"  # noqa: E731
    checked = database.until("the check fails", failed, within=PATIENT)
    remedy = r"the volume has \d+ MB free, and the upgrade needs \d+: increase spec.storage: "
    assert re.match(remedy + "PostgreSQL 15 runs on", message := upgraded(database)[2]), message
    assert uids(database) == before

    grow_volumes(database)
    damage_table(database, "doomed")
    try_again(database, "check")
    failed = lambda: upgraded(database)[1] == "UpgradeFailed"  # noqa: E731
    broken = database.until("the upgrade fails", failed, within=PATIENT)
    assert "public.doomed" in (message := upgraded(database)[2]), message
    assert "PostgreSQL 15 runs on" in message
    serves = lambda: all_run(database) and write(database, ROWS) == "1"  # noqa: E731
    serving = database.until("the earlier version serves again", serves, within=PATIENT)
    assert version(database) == "15"

    write(database, "DROP TABLE doomed")
    try_again(database, "upgrade")
    done = lambda: upgraded(database)[:2] == ("True", "Reversible")  # noqa: E731
    took = database.until("it is upgraded", done, within=PATIENT)
    assert version(database) == "17"
    assert write(database, f"INSERT INTO orders VALUES (2); {ROWS}") == "2"
    status = database.cluster.get("postgresql/db", NAMESPACE)["status"]
    assert (status["version"], status["previousVersion"], status["readyReplicas"]) == (
        "17",
        "15",
        2,
    )

    change(database, version="15")
    is_back = lambda: upgraded(database)[1] == "" and ready(database)  # noqa: E731
    back = database.until("it is back", is_back, within=PATIENT)
    assert (version(database), write(database, ROWS)) == ("15", "1")
    figure(
        f"check failed after {checked:.1f} s, the upgrade after {broken:.1f} s, 15 served "
        f"{serving:.1f} s later; upgraded in {took:.1f} s, back in {back:.1f} s"
    )


def on_each_empty_volume(database: Installation, command: str) -> None:
    """Run a command for each volume `$at` that is empty."""
    each = f'for at in */; do [ "$(ls -A $at)" ] || {command}; done'
    database.node.machine.run("sh", "-c", f"cd {volumes(database)} && {each}")


def grow_volumes(database: Installation) -> None:
    """Give the database's volumes space for an upgrade."""
    each = "for at in */; do mountpoint -q $at && mount -o remount,size=1g $at; done"
    database.node.machine.run("sh", "-c", f"cd {volumes(database)} && {each}; true")


def volumes(database: Installation) -> str:
    """Return the directory of the volumes."""
    return str(database.node.slot.directory / "volumes")


def damage_table(database: Installation, table: str) -> None:
    """Create a table, and remove its file of the first instance: no check of the schema finds that."""
    write(database, f"CREATE TABLE {table} AS SELECT 1 AS id; CHECKPOINT")
    on_first = lambda statement: sql_in(database, NAMESPACE, "db-0", statement)  # noqa: E731
    exists = f"SELECT count(*) FROM pg_class WHERE relname = '{table}'"
    database.until("the first instance has the table", lambda: on_first(exists) == "1")
    on_first("CHECKPOINT")  # it writes the file no more
    path = on_first(f"SELECT pg_relation_filepath('{table}')")
    remove = ("exec", "-n", NAMESPACE, "db-0", "-c", "postgres", "--", "rm")
    database.cluster.kubectl(*remove, f"/var/lib/postgresql/data/pgdata/{path}")


def try_again(database: Installation, action: str) -> None:
    """Delete the Job that failed."""
    database.cluster.kubectl("delete", f"job/db-{action}-17", "-n", NAMESPACE)


def change(database: Installation, **spec: str) -> None:
    """Change fields of the spec."""
    patch = ("patch", "postgresql/db", "-n", NAMESPACE, "--type=merge")
    database.cluster.kubectl(*patch, "-p", json.dumps({"spec": spec}))


def write(database: Installation, statement: str) -> str:
    """Run SQL in the primary."""
    return sql_in(database, NAMESPACE, primary(database, NAMESPACE), statement)


def version(database: Installation) -> str:
    """Return the major version of the primary's server."""
    return write(database, "SHOW server_version").split(".")[0]


def upgraded(database: Installation) -> tuple[str, str, str]:
    """Return status, reason and message of the condition `Upgraded`; empty texts without one."""
    return condition(database, "Upgraded")


def ready(database: Installation) -> bool:
    """Return whether the database is ready."""
    return condition(database, "Ready")[0] == "True"


def condition(database: Installation, type: str) -> tuple[str, str, str]:
    """Return status, reason and message of a condition; empty texts without one."""
    status = database.cluster.get("postgresql/db", NAMESPACE)["status"]
    found = [each for each in status["conditions"] if each["type"] == type]
    return next(((each["status"], each["reason"], each["message"]) for each in found), ("", "", ""))


def all_run(database: Installation) -> bool:
    """Return whether both instances are ready."""
    status = database.cluster.get("postgresql/db", NAMESPACE)["status"]
    return status["readyReplicas"] == status["replicas"] == 2


def uids(database: Installation) -> str:
    """Return the uids of the instances' pods."""
    listed = ("get", "pods", "-n", NAMESPACE, "-l", PODS, "-o", "jsonpath={.items[*].metadata.uid}")
    return database.cluster.kubectl(*listed)
