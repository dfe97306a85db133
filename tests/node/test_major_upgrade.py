"""A PostgreSQL in pods is upgraded from 15 to 17 in place: an attempt that fails, one that succeeds, and the way back."""

import json
from collections.abc import Iterator

import pytest

from tests.node.clients import IMAGE
from tests.node.conftest import Figures
from tests.node.installation import Installation
from tests.node.test_databases import PODS, POSTGRESQL, primary, sql_in, wait_ready

pytestmark = [pytest.mark.node, pytest.mark.long]

NAMESPACE = "upgrades"
ROWS = "SELECT count(*) FROM orders"
JOB = "job/db-check-17"
PATIENT = 300.0  # seconds, for Jobs on a busy machine


@pytest.fixture(scope="module")
def database(node) -> Iterator[Installation]:
    """A PostgreSQL 15 of two instances, whose image has 17, too, with a table that cannot be upgraded."""
    installation = Installation(node)
    installation.have()
    installation.namespace(NAMESPACE)
    spec = {**POSTGRESQL["spec"], "version": "15", "image": IMAGE}
    node.apply([{**POSTGRESQL, "metadata": {"name": "db", "namespace": NAMESPACE}, "spec": spec}])
    wait_ready(installation, "postgresql/db", NAMESPACE)
    write(
        installation, "CREATE TABLE orders AS SELECT 1 AS id; CREATE TABLE odd (function regproc)"
    )
    yield installation
    installation.cluster.kubectl("delete", "postgresqls", "--all", "-n", NAMESPACE)


def test_an_upgrade_that_fails_leaves_the_version_and_one_that_succeeds_can_be_taken_back(
    database: Installation, figure: Figures
) -> None:
    """The rows are those of before; the way back loses only what was written after the upgrade."""
    before = uids(database)
    change(database, version="17", majorUpgrade="Reversible")
    failed = lambda: upgraded(database)[1] == "CheckFailed"  # noqa: E731
    checked = database.until("the check fails", failed, within=PATIENT)
    assert "reg* data types in user tables" in (message := upgraded(database)[2]), message
    assert "PostgreSQL 15 runs on" in message
    assert uids(database) == before

    write(database, "DROP TABLE odd")
    database.cluster.kubectl("delete", JOB, "-n", NAMESPACE)
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
    figure(f"check failed after {checked:.1f} s, upgraded in {took:.1f} s, back in {back:.1f} s")


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


def uids(database: Installation) -> str:
    """Return the uids of the instances' pods."""
    listed = ("get", "pods", "-n", NAMESPACE, "-l", PODS, "-o", "jsonpath={.items[*].metadata.uid}")
    return database.cluster.kubectl(*listed)
