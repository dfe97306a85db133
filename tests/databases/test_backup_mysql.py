"""Backups of a real MariaDB through a store that speaks S3, made by the scripts as the CronJob would run them."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.databases.backups import KEY, BackupPod, instead, pod, recorders
from tests.databases.mariadb import PASSWORD, MariaDB
from tests.databases.s3 import ObjectStore

pytestmark = pytest.mark.databases("mariadb-server", "rclone")

SUMS = "md5(group_concat(name ORDER BY id)), md5(group_concat(hex(photo) ORDER BY id))"
GOODS = f"SELECT count(*), sum(price), {SUMS} FROM goods"


@pytest.fixture(scope="module")
def server() -> Iterator[MariaDB]:
    """A server with a database `shop`: text of all kinds, bytes, a view, a procedure and a trigger."""
    with MariaDB() as server:
        server.query("CREATE DATABASE shop CHARACTER SET utf8mb4; CREATE DATABASE `odd``name 1`")
        server.query(
            "CREATE TABLE goods (id INT PRIMARY KEY, name TEXT, price DECIMAL(10, 2), photo BLOB) ENGINE=InnoDB;"
            "INSERT INTO goods SELECT seq, concat(md5(seq), '\\n''ü😀'), seq / 7, unhex(sha1(seq)) FROM seq_1_to_5000;"
            "CREATE VIEW cheap AS SELECT * FROM goods WHERE price < 1;"
            "CREATE PROCEDURE sale() UPDATE goods SET price = price / 2;"
            "CREATE TRIGGER priced BEFORE INSERT ON goods FOR EACH ROW SET NEW.price = abs(NEW.price);",
            "shop",
        )
        yield server


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    """The store of this module's tests."""
    with ObjectStore() as store:
        yield store


@pytest.fixture
def nightly(server: MariaDB, store: ObjectStore, tmp_path: Path) -> BackupPod:
    """The pod of a Backup of the whole server."""
    return pod(
        store,
        tmp_path,
        type="mysql",
        port=server.port,
        login={"username": "keeper", "password": PASSWORD},
    )


def test_what_is_restored_has_the_same_rows(
    server: MariaDB, store: ObjectStore, nightly: BackupPod
) -> None:
    """All databases of a server are restored, with views, routines and triggers; no secret is printed."""
    record = nightly.scratch / "arguments"
    programs = ["rclone", "mariadb", "mariadb-dump"]
    nightly.path = recorders(nightly.scratch / "programs", programs, record)
    rows = server.query(GOODS, "shop")
    made = nightly.make()
    assert made.code == 0, made.printed
    name = json.loads(made.word)["backup"]
    assert store.names(nightly.folder) == [
        f"{name}/{file}" for file in ("MANIFEST", "SHA256SUMS", "odd`name 1.sql.gz", "shop.sql.gz")
    ]

    server.query("DROP DATABASE shop; DROP DATABASE `odd``name 1`")
    restored = nightly.restore()
    assert (restored.code, json.loads(restored.word)) == (0, {"restored": name}), restored.printed
    assert server.query(GOODS, "shop") == rows
    server.query("CALL sale(); INSERT INTO goods VALUES (0, 'rebate', -0.5, NULL)", "shop")
    assert (
        server.query("SELECT id, price FROM cheap WHERE id IN (0, 7) ORDER BY id", "shop")
        == "0\t0.50\n7\t0.50\n"
    )
    told = record.read_text() + made.printed + restored.printed + made.word
    assert [secret for secret in (PASSWORD, KEY) if secret in told] == []


def test_a_dump_without_its_end_is_no_backup(
    nightly: BackupPod, store: ObjectStore, tmp_path: Path
) -> None:
    """A truncated dump is detected by its last line, even if mariadb-dump exits with 0."""
    nightly.path = instead(
        tmp_path / "short", "mariadb-dump", '$REAL "$@" | sed "/Dump completed/d"'
    )
    short = nightly.make()
    assert (short.code, short.word) == (
        1,
        "failed while verifying odd`name 1.sql.gz in the store: the end of the dump is missing\n",
    )
    assert [name for name in store.names(nightly.folder) if name.endswith("SHA256SUMS")] == []


def test_wrong_credentials_are_reported_without_the_secret(nightly: BackupPod) -> None:
    """The message names the refused user, and not the password."""
    nightly.secrets["login"] = {"username": "keeper", "password": "n0t-it"}
    refused = nightly.make()
    assert (refused.code, refused.word) == (
        1,
        "failed while connecting to the database: ERROR 1045 (28000): "
        "Access denied for user 'keeper'@'127.0.0.1' (using password: YES)\n",
    )
    assert "n0t-it" not in refused.printed


def test_a_user_who_sees_no_database_has_no_backup(
    server: MariaDB, store: ObjectStore, nightly: BackupPod
) -> None:
    """A backup of nothing is a failure, which deletes no older backup."""
    server.query("CREATE USER blind@'127.0.0.1' IDENTIFIED BY 'open'")
    nightly.secrets["login"] = {"username": "blind", "password": "open"}
    old = f"{nightly.folder}20240101T020000Z-x/SHA256SUMS"
    store.put(old)
    made = nightly.make()
    assert (made.code, made.word) == (
        1,
        "failed while connecting to the database: there is no database that blind may see\n",
    )
    assert store.names(old) == [""]
