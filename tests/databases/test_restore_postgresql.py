"""Restores into a new PostgreSQL, by the script of the Job that `restoreFrom` plans."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.databases.backups import BackupPod, pod
from tests.databases.postgresql import PASSWORD, PostgreSQL
from tests.databases.s3 import ObjectStore

pytestmark = pytest.mark.databases("postgresql", "rclone")

GOODS = "SELECT count(*), sum(price) FROM goods"


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    """The store of this module's tests."""
    with ObjectStore() as store:
        yield store


@pytest.fixture(scope="module")
def old() -> Iterator[PostgreSQL]:
    """The server that is backed up."""
    with PostgreSQL() as server:
        server.query("CREATE ROLE keeper LOGIN; CREATE DATABASE shop OWNER keeper")
        server.query(
            "SET ROLE keeper; CREATE TABLE goods (id int PRIMARY KEY, price numeric);"
            "INSERT INTO goods SELECT i, i / 7.0 FROM generate_series(1, 5000) i",
            "shop",
        )
        yield server


@pytest.fixture
def new() -> Iterator[PostgreSQL]:
    """A server without data."""
    with PostgreSQL() as server:
        yield server


@pytest.fixture
def nightly(old: PostgreSQL, store: ObjectStore, tmp_path: Path) -> BackupPod:
    """The pod of a Backup of the old server."""
    login = {"username": "postgres", "password": PASSWORD}
    return pod(store, tmp_path, type="postgresql", port=old.port, login=login)


def into(server: PostgreSQL) -> dict[str, str]:
    """The variables of the Job that restores into a new server."""
    return {"SOURCE_PORT": str(server.port), "RESTORE_INTO": "empty"}


def test_a_new_server_gets_every_row_once(
    old: PostgreSQL, new: PostgreSQL, nightly: BackupPod
) -> None:
    """Roles, owners and rows; a later restore is refused, and changes nothing."""
    name = json.loads(nightly.make().word)["backup"]
    restored = nightly.restore("latest", **into(new))
    assert (restored.code, json.loads(restored.word)) == (0, {"restored": name}), restored.printed
    assert new.query(GOODS, "shop") == old.query(GOODS, "shop")
    owner = "SELECT tableowner FROM pg_tables WHERE tablename = 'goods'"
    assert new.query(owner, "shop") == "keeper\n"
    new.query("DELETE FROM goods WHERE id > 10", "shop")
    again = nightly.restore("latest", **into(new))
    assert (again.code, again.word) == (
        1,
        "failed while looking at what the server has: the server is not empty: it has the "
        "databases shop; nothing was written\n",
    )
    assert new.query("SELECT count(*) FROM goods", "shop") == "10\n"


def test_an_attempt_that_failed_midway_is_continued(
    old: PostgreSQL, new: PostgreSQL, nightly: BackupPod
) -> None:
    """The next attempt fills what the first one left, since the server was empty before it."""
    nightly.make()
    new.query("CREATE DATABASE in_the_way")
    refused = nightly.restore("latest", **into(new))
    assert "it has the databases in_the_way; nothing was written" in refused.word
    new.query("DROP DATABASE in_the_way; CREATE ROLE gatewright_restores")  # as in an attempt
    new.query("CREATE DATABASE shop")
    new.query("CREATE TABLE goods (id int)", "shop")
    restored = nightly.restore("latest", **into(new))
    assert restored.code == 0, restored.printed
    assert new.query(GOODS, "shop") == old.query(GOODS, "shop")
    assert new.query("SELECT count(*) FROM pg_roles WHERE rolname = 'gatewright_restores'") == "0\n"


def test_the_newest_backup_of_a_time_is_restored(
    store: ObjectStore, new: PostgreSQL, nightly: BackupPod
) -> None:
    """A time names the newest backup that had begun by then."""
    made = json.loads(nightly.make().word)["backup"]
    for name in ("20260101T020000Z-a", "20260102T020000Z-b"):
        for file in store.names(f"{nightly.folder}{made}/"):
            content = store.get(f"{nightly.folder}{made}/{file}")
            store.put(f"{nightly.folder}{name}/{file}", content)
    restored = nightly.restore("20260101T235959Z", **into(new))
    assert json.loads(restored.word) == {"restored": "20260101T020000Z-a"}, restored.printed
    nothing = nightly.restore("20251231T000000Z", **into(new))
    assert "there is no complete backup 20251231T000000Z in backups/" in nothing.word


def test_a_backup_of_a_newer_server_is_refused(
    store: ObjectStore, new: PostgreSQL, nightly: BackupPod
) -> None:
    """Its MANIFEST names the version."""
    name = json.loads(nightly.make().word)["backup"]
    store.put(f"{nightly.folder}{name}/MANIFEST", b"server\tpostgres:99\n")
    refused = nightly.restore("latest", **into(new))
    version = int(new.query("SHOW server_version_num")) // 10000
    assert refused.code == 1
    assert refused.word == (
        "failed while connecting to the database: the backup is of PostgreSQL 99, and the server "
        f"is {version}, which cannot read it\n"
    )
    assert new.query("SELECT count(*) FROM pg_database WHERE datname = 'shop'") == "0\n"
