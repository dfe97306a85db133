"""Backups of a real PostgreSQL through a store that speaks S3, made by the scripts as the CronJob would run them."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.databases.backups import KEY, BackupPod, instead, pod, recorders
from tests.databases.postgresql import PASSWORD, PostgreSQL
from tests.databases.s3 import ObjectStore

pytestmark = pytest.mark.databases("postgresql", "rclone")

GOODS = "SELECT count(*), sum(price), md5(string_agg(name, '' ORDER BY id)) FROM goods"


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    """The store of this module's tests."""
    with ObjectStore() as store:
        yield store


@pytest.fixture(scope="module")
def server() -> Iterator[PostgreSQL]:
    """A server with a database `shop`, its owner, and a database with a name that needs quoting."""
    with PostgreSQL() as server:
        server.query("CREATE ROLE keeper LOGIN PASSWORD 'open'; CREATE DATABASE shop OWNER keeper")
        server.query('CREATE DATABASE "we\'ird \\ name"')
        server.query(
            "SET ROLE keeper; CREATE TABLE goods (id int PRIMARY KEY, name text, price numeric);"
            "INSERT INTO goods SELECT i, md5(i::text) || E'\\n\\'ü', i / 7.0 FROM generate_series(1, 20000) i",
            "shop",
        )
        yield server


@pytest.fixture
def nightly(server: PostgreSQL, store: ObjectStore, tmp_path: Path) -> BackupPod:
    """The pod of a Backup of the whole server."""
    login = {"username": "postgres", "password": PASSWORD}
    return pod(store, tmp_path, type="postgresql", port=server.port, login=login)


@pytest.fixture
def nightly_shop(server: PostgreSQL, store: ObjectStore, tmp_path: Path) -> BackupPod:
    """The pod of a Backup of the database `shop` alone."""
    login = {"username": "postgres", "password": PASSWORD}
    return pod(store, tmp_path, type="postgresql", port=server.port, login=login, database="shop")


def folder(age: timedelta, pod: str = "x") -> str:
    """The name of a backup of this age."""
    return f"{datetime.now(UTC) - age:%Y%m%dT%H%M%SZ}-{pod}"


def test_what_is_restored_has_the_same_rows(
    server: PostgreSQL, store: ObjectStore, nightly: BackupPod
) -> None:
    """A dropped database and an emptied table are restored, with owners; no secret is printed."""
    record = nightly.scratch / "arguments"
    programs = nightly.scratch / "programs"
    nightly.path = recorders(programs, ["rclone", "mktemp"], record)
    rows = server.query(GOODS, "shop")

    made = nightly.make()
    word = json.loads(made.word)
    assert (made.code, word["backup"][-6:], word["bytes"] > 100_000) == (0, "-x7k2p", True), (
        made.printed
    )
    dumps = ["globals.sql", "postgres.dump", "shop.dump", "we'ird \\ name.dump"]
    files = ["MANIFEST", "SHA256SUMS", *dumps]
    assert store.names(nightly.folder) == [f"{word['backup']}/{file}" for file in files]
    assert (
        made.printed == f"backup {word['backup']} is complete and verified: {word['bytes']} bytes\n"
    )

    server.query("DELETE FROM goods WHERE id > 10", "shop")
    server.query('DROP DATABASE "we\'ird \\ name"')
    restored = nightly.restore()
    assert (restored.code, json.loads(restored.word)) == (0, {"restored": word["backup"]}), (
        restored.printed
    )
    assert server.query(GOODS, "shop") == rows
    assert (
        server.query("SELECT tableowner FROM pg_tables WHERE tablename = 'goods'", "shop")
        == "keeper\n"
    )
    assert server.query("SELECT 1", "we'ird \\ name") == "1\n"

    told = record.read_text() + made.printed + made.word + restored.printed + restored.word
    assert [secret for secret in (PASSWORD, KEY) if secret in told] == []
    assert sorted(path.name for path in nightly.scratch.iterdir()) == [
        "arguments",
        "programs",
        "termination-log",
    ]


def test_one_database_is_restored_under_another_name(
    server: PostgreSQL, nightly_shop: BackupPod
) -> None:
    """The original database does not change; a database that is not in the backup is rejected by name."""
    made = json.loads(nightly_shop.make().word)["backup"]
    restored = nightly_shop.restore(made, "shop", "shop's copy")
    assert (restored.code, restored.printed) == (0, "restored shop.dump\n")
    assert server.query(GOODS, "shop's copy") == server.query(GOODS, "shop")
    refused = nightly_shop.restore("latest", "till")
    assert refused.code == 1
    assert (
        refused.word
        == f"failed while reading what is in {made}: there is no database till in {made}\n"
    )
    unknown = nightly_shop.restore("20200101T000000Z-x")
    assert "there is no complete backup 20200101T000000Z-x in backups/" in unknown.word


def test_what_fails_leaves_the_backups_before(
    server: PostgreSQL, store: ObjectStore, nightly_shop: BackupPod, tmp_path: Path
) -> None:
    """A truncated or damaged dump is not a backup: the last good one stays, however old."""
    old = f"{nightly_shop.folder}{folder(timedelta(days=400))}/"
    good = json.loads(nightly_shop.make().word)["backup"]
    for name in store.names(f"{nightly_shop.folder}{good}/"):
        store.put(old + name, store.get(f"{nightly_shop.folder}{good}/{name}"))
        store.request("DELETE", f"backups/{nightly_shop.folder}{good}/{name}")

    server.query("CREATE TABLE secret (id int); INSERT INTO secret VALUES (1)", "shop")
    nightly_shop.secrets["login"] = {"username": "keeper", "password": "open"}
    refused = nightly_shop.make()
    assert refused.code == 1
    assert refused.word == (
        "failed while dumping shop.dump: pg_dump: error: query failed: ERROR:  permission denied for table secret\n"
    )
    server.query("DROP TABLE secret", "shop")
    nightly_shop.secrets["login"] = {"username": "postgres", "password": PASSWORD}

    nightly_shop.path = instead(
        tmp_path / "damaged",
        "rclone",
        'if [ "$1" = rcat ]; then sed "s/shop/SHOP/g" | $REAL "$@"; else exec $REAL "$@"; fi',
    )
    damaged = nightly_shop.make()
    assert damaged.code == 1
    assert damaged.word.startswith("failed while verifying shop.dump in the store: ")
    assert damaged.word.endswith("/shop.dump is not what was dumped: its checksum differs\n")
    complete = [name for name in store.names(nightly_shop.folder) if name.endswith("SHA256SUMS")]
    assert complete == [old.removeprefix(nightly_shop.folder) + "SHA256SUMS"]
    assert nightly_shop.restore("latest", "shop", "from_the_old_one").code == 0
    assert server.query(GOODS, "from_the_old_one") == server.query(GOODS, "shop")


def test_only_backups_older_than_the_retention_are_deleted(
    store: ObjectStore, nightly_shop: BackupPod, server: PostgreSQL
) -> None:
    """Old and long-incomplete backups are deleted; never newer ones, or files of others."""
    stays = [
        f"{folder(timedelta(days=29))}/SHA256SUMS",
        f"{folder(timedelta(hours=3))}/shop.dump",  # another pod may be at it
        f"{folder(timedelta(days=-1))}/SHA256SUMS",  # a clock that is ahead
        "20200101T000000Z/SHA256SUMS",
        "by-hand/shop.dump",
    ]
    goes = [
        f"{folder(timedelta(days=31))}/SHA256SUMS",
        f"{folder(timedelta(days=31))}/shop.dump",
        f"{folder(timedelta(days=2), 'cut')}/shop.dump",
    ]
    for name in [*stays, *goes]:
        store.put(nightly_shop.folder + name)
    neighbour = nightly_shop.folder.replace("nightly", "nightly-2") + goes[0]
    store.put(neighbour)
    made = nightly_shop.make()
    name = json.loads(made.word)["backup"]
    assert made.code == 0, made.printed
    assert set(store.names(nightly_shop.folder)) == {
        *stays,
        *(f"{name}/{file}" for file in ("MANIFEST", "SHA256SUMS", "globals.sql", "shop.dump")),
    }
    assert store.names(neighbour) == [""]


def test_a_restarted_container_continues_under_the_same_name(
    store: ObjectStore, nightly_shop: BackupPod
) -> None:
    """A restarted container continues under the same name; a complete backup is not repeated."""
    (nightly_shop.scratch / "begun").write_text("20260102T030405Z-x7k2p\n")
    store.put(f"{nightly_shop.folder}20260102T030405Z-x7k2p/shop.dump", b"cut sho")
    first = nightly_shop.make()
    (nightly_shop.scratch / "begun").write_text("20260102T030405Z-x7k2p\n")
    again = nightly_shop.make()
    assert (first.code, again.code, again.word) == (0, 0, first.word)
    assert again.printed.startswith("20260102T030405Z-x7k2p was complete before\n")


def test_wrong_credentials_are_reported_without_the_secret(
    store: ObjectStore, nightly_shop: BackupPod
) -> None:
    """The message names the refused user and the server (database or store), and no secret."""
    nightly_shop.secrets["login"] = {"username": "postgres", "password": "n0t-it"}
    refused = nightly_shop.make()
    assert refused.code == 2
    assert refused.word.startswith(
        "failed while connecting to the database: psql: error: connection to server at"
    )
    assert refused.word.endswith('FATAL:  password authentication failed for user "postgres"\n')
    store.look_at_credentials(really=True)
    try:
        kept_out = nightly_shop.make()
    finally:
        store.look_at_credentials(really=False)
    assert kept_out.code == 1
    assert kept_out.word.startswith("failed while looking at the store: ")
    assert "InvalidAccessKeyId" in kept_out.word
    told = refused.printed + kept_out.printed
    assert [secret for secret in ("n0t-it", KEY) if secret in told] == []


def test_a_server_newer_than_every_client_is_refused(
    nightly_shop: BackupPod, server: PostgreSQL, tmp_path: Path
) -> None:
    """An older pg_dump refuses a newer server; the script reports it before it dumps anything."""
    old = tmp_path / "clients/9/bin"
    old.mkdir(parents=True)
    (old / "psql").symlink_to("/usr/bin/psql")
    nightly_shop.path = instead(tmp_path / "env", "sort", f'exec $REAL "$@" | sed "s#^.*#9 {old}#"')
    refused = nightly_shop.make()
    version = int(server.query("SHOW server_version_num")) // 10000
    assert refused.word == (
        f"failed while connecting to the database: the server is PostgreSQL {version}, "
        "and the newest clients here are of 9\n"
    )
