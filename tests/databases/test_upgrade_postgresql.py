"""The Jobs of an upgrade, run with the real programs: what their script refuses, and what it leaves.

From the machine's version to the same one, which `pg_upgrade` does as any other.
"""

import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from config.api.postgresql import PostgreSQL
from controller.reconcilers import postgresql_upgrade_job as jobs
from controller.runtime.plan import Observed
from tests.databases import binaries
from tests.databases.instances import Database, psql
from tests.databases.pods import Machine, Pod

pytestmark = pytest.mark.databases("postgresql")


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    """A database of the version that this machine has."""
    memory = Path("/dev/shm")  # pg_upgrade waits for a disk many times
    directory = Path(tempfile.mkdtemp(prefix="gw-", dir=memory if memory.is_dir() else None))
    programs = binaries.postgresql()
    try:
        machine = Machine(directory, programs)
        yield Database(machine, "test-db", {"version": programs.parent.name, "storage": "1Gi"})
    finally:
        shutil.rmtree(directory)


@pytest.fixture(scope="module")
def initialized(database: Database) -> None:
    """Its data."""
    with database.instance(0) as pod:
        database.initialize(pod)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Ends every pod that is entered."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def primary(database: Database, initialized: None, stack: ExitStack) -> Pod:
    """Its primary, serving."""
    return database.serve(stack.enter_context(database.instance(0)))


def run(database: Database, action: str, **changed: str) -> tuple[int, str]:
    """Run a Job, and return its exit code and the last line of its log, which conditions show.

    `changed` are other values of its environment.
    """
    about = {"name": database.name, "namespace": "default", "uid": "1"}
    object = PostgreSQL.model_validate({"metadata": about, "spec": database.spec})
    job = jobs.job(object, Observed(), database.spec["version"], action)
    template = job["spec"]["template"]
    (container,) = template["spec"]["containers"]
    for variable in container["env"]:
        if variable["name"] in changed:
            variable["value"] = changed[variable["name"]]
    claims = {f"data-{database.name}-0": database.machine.volume("data-0")}
    with Pod(database.machine, action, template, claims) as pod:
        code = pod.run("upgrade")
        return code, pod.logged().splitlines()[-1]


def test_a_check_names_what_pg_upgrade_would_refuse(primary: Pod, database: Database) -> None:
    """The programs that are missing, databases that allow no connection, and columns, while the database runs."""
    assert run(database, "check", FROM="9") == (
        1,
        "the image has no PostgreSQL 9 in /usr/lib/postgresql/9: build one with both "
        "(UPGRADE_FROM=9)",
    )
    psql(primary, "CREATE DATABASE frozen ALLOW_CONNECTIONS false")
    psql(primary, "ALTER DATABASE template0 ALLOW_CONNECTIONS true")
    assert run(database, "check") == (
        1,
        "pg_upgrade needs connections to each database but template0, and each must be valid; "
        "correct or drop: frozen, template0",
    )
    psql(primary, "DROP DATABASE frozen")
    psql(primary, "ALTER DATABASE template0 ALLOW_CONNECTIONS false")
    psql(primary, "CREATE TABLE odd (function regproc)")
    code, said = run(database, "check")
    psql(primary, "DROP TABLE odd")
    assert code == 1
    assert "reg* data types in user tables" in said


def test_an_upgrade_that_fails_leaves_the_data(
    primary: Pod, database: Database, stack: ExitStack
) -> None:
    """Also where it fails when all checks have passed, and files were linked already."""
    psql(primary, "CREATE TABLE rows AS SELECT generate_series(1, 1000) AS one")
    psql(primary, "CREATE TABLE doomed AS SELECT 1 AS one")
    psql(primary, "CHECKPOINT")
    path = psql(primary, "SELECT pg_relation_filepath('doomed')")
    code, said = run(database, "upgrade")
    assert code == 1
    assert 'the data of the primary is "in production", not shut down' in said
    primary.signal("postgres", signal.SIGINT)
    (database.data(0) / path).unlink()
    code, said = run(database, "upgrade")
    assert code == 1
    assert said.startswith("pg_upgrade: "), said
    assert "public.doomed" in said
    again = database.serve(stack.enter_context(database.instance(0)))
    assert psql(again, "SELECT sum(one) FROM rows") == "500500"
