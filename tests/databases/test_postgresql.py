"""The pods of a PostgreSQL, run with the real programs: what their scripts do, also after failures."""

import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.databases import binaries
from tests.databases.instances import PASSWORDS, Database, psql
from tests.databases.pods import SECONDS, Machine, Pod
from tests.waiting import until

pytestmark = pytest.mark.databases("postgresql")

TEST_DB = {"version": "14", "storage": "1Gi"}


@contextmanager
def a_machine() -> Iterator[Machine]:
    """Yield a machine with only PostgreSQL."""
    programs = binaries.postgresql()
    memory = Path("/dev/shm")  # each start waits for a disk several times
    directory = Path(tempfile.mkdtemp(prefix="gw-", dir=memory if memory.is_dir() else None))
    try:
        yield Machine(directory, programs)
    finally:
        shutil.rmtree(directory)


@pytest.fixture
def machine() -> Iterator[Machine]:
    """A machine of the test's own."""
    with a_machine() as machine:
        yield machine


@pytest.fixture(scope="module")
def initialized() -> Iterator[Path]:
    """A new data directory, to be copied."""
    with a_machine() as machine:
        database = Database(machine, "test-db", TEST_DB)
        with database.instance(0) as pod:
            database.initialize(pod)
            yield database.data(0)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Ends every pod that is entered."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def database(machine: Machine) -> Database:
    """The sample test-db, with everything that it can have."""
    users, databases = [{"name": "app"}, {"name": "read_only"}], [{"name": "shop", "owner": "app"}]
    backup = {"enabled": True, "retention": "2d"}
    return Database(
        machine, "test-db", {**TEST_DB, "users": users, "databases": databases, "backup": backup}
    )


@pytest.fixture
def primary(database: Database, stack: ExitStack, initialized: Path) -> Pod:
    """Its primary, serving."""
    database.machine.volume("data-0")
    subprocess.run(["cp", "--archive", initialized, database.data(0)], check=True)
    return database.serve(stack.enter_context(database.instance(0)))


def connect(pod: Pod, database: Database, user: str, password: str, name: str = "postgres") -> str:
    """Return the server's response to a connection over the network."""
    host = f"host={database.address(0)} user={user} dbname={name}"
    said = pod.exec(
        "postgres", "psql", "-XAtw", host, "-c", "SELECT current_user", PGPASSWORD=password
    )
    return said.stdout.strip() or said.stderr.strip()


def test_s4_the_primary_answers_without_a_password_inside_the_pod(
    primary: Pod, database: Database
) -> None:
    """S4: `psql -U postgres -c "SELECT version();"` in test-db-0; from outside the Secret's password is needed."""
    said = primary.exec("postgres", "psql", "-U", "postgres", "-c", "SELECT version();")
    assert said.returncode == 0
    assert " PostgreSQL 1" in said.stdout
    assert connect(primary, database, "postgres", PASSWORDS["password"]) == "postgres"
    assert 'password authentication failed for user "postgres"' in connect(
        primary, database, "postgres", "guessed"
    )
    assert "no password supplied" in connect(primary, database, "postgres", "")
    assert 'pg_hba.conf rejects connection for host "127.0.0.1"' in connect(
        primary, database, "replicator", PASSWORDS["replication-password"]
    )
    assert (
        psql(
            primary,
            "SELECT pg_has_role('exporter', 'pg_monitor', 'member'), rolsuper FROM pg_roles WHERE rolname = 'exporter'",
        )
        == "t|f"
    )
    for password in PASSWORDS.values():
        assert password not in primary.logged()


def test_a_restart_keeps_the_data_and_takes_the_passwords_of_the_secret(
    primary: Pod, database: Database, stack: ExitStack
) -> None:
    """After a stop by the kubelet or a kill, rows exist; a recreated Secret takes effect."""
    psql(primary, "CREATE TABLE kept AS SELECT 1 AS one")
    assert primary.signal("postgres", signal.SIGINT) == 0
    again = database.serve(stack.enter_context(database.instance(0)))
    psql(again, "INSERT INTO kept VALUES (2)")
    again.kill()
    database.machine.secrets["test-db-credentials"]["password"] = "changed"
    third = database.serve(stack.enter_context(database.instance(0)))
    assert psql(third, "SELECT sum(one) FROM kept") == "3"
    assert connect(third, database, "postgres", "changed") == "postgres"


def test_a_primary_that_waits_for_standbys_starts_without_them(
    primary: Pod, database: Database, stack: ExitStack
) -> None:
    """Where each commit waits for a standby, the passwords are set without one."""
    psql(primary, "ALTER SYSTEM SET synchronous_standby_names = '*'")
    primary.signal("postgres", signal.SIGINT)
    database.machine.secrets["test-db-credentials"]["password"] = "changed"
    again = database.serve(stack.enter_context(database.instance(0)))
    assert psql(again, "SHOW synchronous_standby_names") == "*"
    assert connect(again, database, "postgres", "changed") == "postgres"


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (None, "the image has no Patroni"),
        ("postgis:14", "and spec.version is 14: correct spec.image or spec.version"),
    ],
)
def test_an_image_that_cannot_serve_reports_it(
    database: Database, stack: ExitStack, image: str | None, message: str
) -> None:
    """The tests have no Patroni, nor PostgreSQL 14."""
    database.plan(**TEST_DB, **({"image": image} if image else {}))
    pod = stack.enter_context(database.instance(0))
    assert pod.run("postgres") == 1
    assert message in pod.logged()


def test_a_pod_waits_for_the_server_of_another_on_its_volume(
    database: Database, stack: ExitStack, initialized: Path
) -> None:
    """A pod that was deleted by force still runs; PostgreSQL sees no server in another container."""
    patroni = database.machine.volume("programs") / "patroni"
    patroni.write_text(
        '#!/bin/bash\nexec postgres -D "$PGDATA" -k "$PGHOST" -c listen_addresses=\n'
    )
    patroni.chmod(0o755)
    database.machine.own(patroni)
    database.machine.path = f"{patroni.parent}:{database.machine.path}"
    database.machine.volume("data-0")
    subprocess.run(["cp", "--archive", initialized, database.data(0)], check=True)
    first, second = (stack.enter_context(database.instance(0)) for _ in range(2))

    def await_text(text: str, times: int = 1) -> None:
        until(lambda: first.logged().count(text) == times, within=SECONDS, problem=first.logged)

    first.start("postgres")
    await_text("ready to accept connections")
    second.start("postgres")
    await_text("another pod still runs a server on this volume: waiting until it ends")
    first.signal("postgres", signal.SIGTERM)
    await_text("ready to accept connections", 2)
    second.signal("postgres", signal.SIGTERM)
    assert "lock file" not in first.logged()


def test_the_job_for_users_and_databases_can_run_again(
    primary: Pod, database: Database, stack: ExitStack
) -> None:
    """The Job creates them, can run again, and sets a changed password.

    Names and passwords may have any characters.
    """
    passwords = {"app": "'; DROP ROLE app; --\\", "read_only": "$(id) `id`"}
    for these in (passwords, passwords, {**passwords, "app": "changed"}):
        job = stack.enter_context(database.job("Job", "test-db-roles", **these))
        assert job.run("roles") == 0, job.logged()
        assert connect(primary, database, "app", these["app"], "shop") == "app"
        assert connect(primary, database, "read_only", these["read_only"]) == "read_only"
        assert these["app"] not in job.logged() + primary.logged()
    assert (
        psql(primary, "SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = 'shop'")
        == "app"
    )
    assert psql(primary, "SELECT rolsuper FROM pg_roles WHERE rolname = 'app'") == "f"


def test_a_backup_is_dumped_verified_and_restored(
    primary: Pod, database: Database, stack: ExitStack
) -> None:
    """All databases are dumped, whatever their names; old backups are deleted by the retention.

    Restore.sh restores the rows.
    """
    odd = "odd/name ' = 1"
    psql(primary, f'CREATE DATABASE "{odd}"')
    psql(primary, "CREATE TABLE rows AS SELECT generate_series(1, 1000) AS one", odd)
    psql(primary, "CREATE ROLE reader LOGIN PASSWORD 'reads'")
    psql(primary, "CREATE TABLE mine AS SELECT 1 AS one; ALTER TABLE mine OWNER TO reader")
    volume = database.machine.volume("backup")
    now = datetime.now(UTC)
    old, older = (f"{now - timedelta(days=age):%Y%m%dT%H%M%SZ}" for age in (1, 3))
    for name in (old, older, ".partial-20200101T000000Z", "mine"):
        database.machine.volume(f"backup/{name}")
    job = stack.enter_context(database.job("CronJob", "test-db-backup"))
    assert job.run("backup") == 0, job.logged()
    *others, made = sorted(path.name for path in volume.iterdir() if path.name != "mine")
    assert others == [old]
    files = sorted(path.name for path in (volume / made).iterdir())
    assert [files[0].startswith("database-"), *files[1:]] == [True, "globals.sql", "postgres.dump"]
    assert f"removed {older}, older than 2d" in job.logged()

    psql(primary, f'DROP DATABASE "{odd}"')
    psql(primary, "DROP TABLE mine; DROP ROLE reader")
    script = ("bash", str(job.volumes["scripts"] / "restore.sh"))
    refused = job.exec("backup", "env", f"BACKUP={older}", *script)
    assert (refused.returncode, refused.stderr) == (
        1,
        f"there is no backup that had begun by {older}\n",
    )
    later = f"{now + timedelta(hours=1):%Y%m%dT%H%M%SZ}"
    restored = job.exec("backup", "env", f"BACKUP={later}", *script)
    assert restored.returncode == 0, restored.stderr
    assert f"backup {made} is restored" in restored.stdout
    assert psql(primary, "SELECT sum(one) FROM rows", odd) == "500500"
    assert psql(primary, "SELECT tableowner FROM pg_tables WHERE tablename = 'mine'") == "reader"
    assert connect(primary, database, "reader", "reads") == "reader"
    assert connect(primary, database, "postgres", PASSWORDS["password"]) == "postgres"


def test_a_backup_that_fails_leaves_the_good_ones(
    primary: Pod, database: Database, stack: ExitStack
) -> None:
    """A truncated or unreadable dump leaves nothing behind, and no backup is pruned."""
    psql(primary, "CREATE TABLE rows AS SELECT 1 AS one")
    volume = database.machine.volume("backup")
    database.machine.volume("backup/20200101T000000Z")
    broken = database.machine.volume("broken")
    machine = database.machine
    for program, script in (
        ("pg_dump", 'echo half; echo "connection lost" >&2; exit 1'),
        (
            "pg_dump",
            'for each; do case "$each" in --file=*) echo half >"${each#--file=}" ;; esac; done',
        ),
        (
            "pg_dumpall",
            'for each; do case "$each" in --file=*) echo half >"${each#--file=}" ;; esac; done',
        ),
    ):
        instead = broken / program
        instead.write_text(f"#!/bin/bash\n{script}\n")
        instead.chmod(0o755)
        path, machine.path = machine.path, f"{broken}:{machine.path}"
        job = stack.enter_context(database.job("CronJob", "test-db-backup"))
        assert job.run("backup") != 0
        assert [each.name for each in volume.iterdir()] == ["20200101T000000Z"]
        instead.unlink()
        machine.path = path
    assert job.run("backup") == 0
    assert len(list(volume.iterdir())) == 1
    assert not (volume / "20200101T000000Z").exists()
