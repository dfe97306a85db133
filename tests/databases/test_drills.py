"""Drills: the newest backup of a real server, restored into a throw-away one, by the scripts of its Job."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.databases.backups import KEY, BackupPod, pod, replace
from tests.databases.mariadb import PASSWORD as MARIADB_PASSWORD
from tests.databases.mariadb import MariaDB
from tests.databases.postgresql import PASSWORD, PostgreSQL
from tests.databases.s3 import ObjectStore

pytestmark = pytest.mark.databases("postgresql", "mariadb-server", "rclone")


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    """The store of this module's tests."""
    with ObjectStore() as store:
        yield store


@pytest.fixture(scope="module")
def postgresql() -> Iterator[PostgreSQL]:
    """A server with two databases: partitions, odd names, an empty table, and rows with line breaks."""
    with PostgreSQL() as server:
        server.query(
            "CREATE ROLE keeper LOGIN; CREATE DATABASE shop OWNER keeper; CREATE DATABASE till"
        )
        server.query(
            "SET ROLE keeper; CREATE TABLE goods (id int, name text) PARTITION BY RANGE (id);"
            "CREATE TABLE low PARTITION OF goods FOR VALUES FROM (0) TO (100);"
            "CREATE TABLE high PARTITION OF goods FOR VALUES FROM (100) TO (1000000);"
            "INSERT INTO goods SELECT i, E'\\\\.\\n' || i FROM generate_series(1, 20000) i;"
            'CREATE TABLE "we""ird (t" ("a ) b" text); INSERT INTO "we""ird (t" VALUES (\'COPY x FROM stdin;\');'
            'CREATE TABLE "user" (); CREATE MATERIALIZED VIEW seen AS SELECT * FROM goods',
            "shop",
        )
        yield server


@pytest.fixture(scope="module")
def mariadb() -> Iterator[MariaDB]:
    """A server with a database: odd names, an empty table, a view, and rows with line breaks."""
    with MariaDB() as server:
        server.query("CREATE DATABASE shop CHARACTER SET utf8mb4")
        server.query(
            "CREATE TABLE goods (id INT PRIMARY KEY, name TEXT, photo BLOB) ENGINE=InnoDB;"
            "INSERT INTO goods SELECT seq, concat('\\n(', seq), repeat('x', 2000) FROM seq_1_to_3000;"
            "CREATE TABLE `od``d name` (id INT); INSERT INTO `od``d name` VALUES (1), (2);"
            "CREATE TABLE empty (id INT); CREATE VIEW cheap AS SELECT * FROM goods",
            "shop",
        )
        yield server


@pytest.fixture
def nightly(postgresql: PostgreSQL, store: ObjectStore, tmp_path: Path) -> BackupPod:
    """The pod of a Backup of the whole PostgreSQL server."""
    login = {"username": "postgres", "password": PASSWORD}
    return pod(store, tmp_path, type="postgresql", port=postgresql.port, login=login)


@pytest.fixture
def nightly_mariadb(mariadb: MariaDB, store: ObjectStore, tmp_path: Path) -> BackupPod:
    """The pod of a Backup of the whole MariaDB server."""
    login = {"username": "keeper", "password": MARIADB_PASSWORD}
    return pod(store, tmp_path, type="mysql", port=mariadb.port, login=login)


def make(backup: BackupPod) -> str:
    """Make a backup, and return its name."""
    made = backup.make()
    assert made.code == 0, made.printed
    return str(json.loads(made.word)["backup"])


def manifest(store: ObjectStore, backup: BackupPod, name: str) -> dict[str, int]:
    """Return the rows of each table that the manifest has."""
    lines = store.get(f"{backup.folder}{name}/MANIFEST").decode().splitlines()
    fields = [line.split("\t") for line in lines]
    return {f"{line[1]}: {line[2]}": int(line[3]) for line in fields if line[0] == "rows"}


def test_a_drill_finds_every_row_of_postgresql(store: ObjectStore, nightly: BackupPod) -> None:
    """Each table has the rows of the dump, and each query returns true; no secret is printed."""
    name = make(nightly)
    assert manifest(store, nightly, name) == {
        "shop.dump: public.low": 99,
        "shop.dump: public.high": 19901,
        'shop.dump: public."we""ird (t"': 1,
        'shop.dump: public."user"': 0,
    }
    drilled = nightly.drill(("shop", "SELECT count(*) = 20000 FROM goods"), ("till", "SELECT true"))
    assert drilled.code == 0, drilled.printed
    assert json.loads(drilled.word) == {
        "verified": name,
        "databases": 3,
        "tables": 4,
        "rows": 20001,
    }
    assert [secret for secret in (PASSWORD, KEY) if secret in drilled.printed] == []


def test_a_drill_finds_every_row_of_mariadb(store: ObjectStore, nightly_mariadb: BackupPod) -> None:
    """Inserts of several statements, odd names and empty tables are counted."""
    name = make(nightly_mariadb)
    assert manifest(store, nightly_mariadb, name) == {
        "shop.sql.gz: goods": 3000,
        "shop.sql.gz: od``d name": 2,
        "shop.sql.gz: empty": 0,
    }
    drilled = nightly_mariadb.drill(("shop", "SELECT count(*) > 1 FROM goods"))
    assert drilled.code == 0, drilled.printed
    assert json.loads(drilled.word) == {"verified": name, "databases": 1, "tables": 3, "rows": 3002}


def test_a_drill_finds_a_damaged_backup(store: ObjectStore, nightly: BackupPod) -> None:
    """One changed byte of a dump is found, and nothing that was there changes."""
    name = make(nightly)
    dump = f"{nightly.folder}{name}/shop.dump"
    content = bytearray(store.get(dump))
    content[len(content) // 2] ^= 1
    store.put(dump, bytes(content))
    before = store.names(nightly.folder)
    drilled = nightly.drill()
    assert (drilled.code, drilled.word.count("failed while")) == (1, 1)
    assert drilled.word.startswith(
        f"failed while restoring {name}: verifying shop.dump in the store: "
    )
    assert store.names(nightly.folder) == before


def test_a_drill_finds_a_dump_that_has_lost_rows(
    store: ObjectStore, nightly_mariadb: BackupPod
) -> None:
    """A dump that is whole by its sum, and restores, but has fewer rows than the manifest says."""
    name = make(nightly_mariadb)
    folder = f"{nightly_mariadb.folder}{name}/"
    sql = gzip.decompress(store.get(f"{folder}shop.sql.gz")).replace(b"VALUES\n(1),\n", b"VALUES\n")
    replace(store, folder, "shop.sql.gz", gzip.compress(sql))
    drilled = nightly_mariadb.drill()
    assert (drilled.code, drilled.word) == (
        1,
        f"failed while comparing the rows with {name}/MANIFEST: "
        "table od``d name of shop.sql.gz has 1 rows instead of 2\n",
    ), drilled.printed


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT count(*) < 5 FROM goods", 'it returned "f" instead of true'),
        ("SELECT no FROM goods", 'ERROR:  column "no" does not exist'),
    ],
)
def test_a_drill_asks_what_the_user_asks(nightly: BackupPod, query: str, message: str) -> None:
    """A query that returns something else than true, or fails, is named."""
    make(nightly)
    drilled = nightly.drill(("shop", "SELECT true"), ("shop", query))
    assert drilled.code != 0
    assert drilled.word.startswith("failed while asking spec.drill.queries[1]: ")
    assert message in drilled.word


def test_a_drill_without_space_says_so_before_it_restores(
    store: ObjectStore, nightly: BackupPod
) -> None:
    """The size of the databases is compared with the volume's room."""
    name = make(nightly)
    size = 10**15
    replace(store, f"{nightly.folder}{name}/", "MANIFEST", f"size\tshop\t{size}\n".encode())
    drilled = nightly.drill()
    assert drilled.code == 1
    assert drilled.word.startswith(
        f"failed while reading what is in {name}: the databases had {size} bytes, "
        "and the volume has room for "
    )
    assert drilled.word.endswith("; raise spec.drill.storage\n")


def test_a_drill_of_nothing_fails(nightly: BackupPod) -> None:
    """Without a complete backup there is nothing to restore."""
    drilled = nightly.drill()
    assert drilled.word.startswith(
        "failed while looking for the newest backup: there is no complete backup in backups/"
    )


def test_a_backup_of_one_database_brings_its_roles(
    postgresql: PostgreSQL, store: ObjectStore, tmp_path: Path
) -> None:
    """The owner of the tables exists in a server that never had it."""
    login = {"username": "postgres", "password": PASSWORD}
    shop = pod(
        store, tmp_path, type="postgresql", port=postgresql.port, login=login, database="shop"
    )
    make(shop)
    drilled = shop.drill(
        ("shop", "SELECT tableowner = 'keeper' FROM pg_tables WHERE tablename = 'low'")
    )
    assert drilled.code == 0, drilled.printed
