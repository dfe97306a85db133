"""Backups of a server that speaks MongoDB's protocol, made by MongoDB's own tools as the CronJob would run them."""

import gzip
import json
import struct
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from bson import Binary, Int64, ObjectId, Regex, Timestamp, encode
from pymongo import MongoClient

from tests.controlplane.fixtures import available
from tests.controlplane.processes import free_ports
from tests.databases.backups import KEY, PATH, BackupPod, instead, pod, recorders, replace
from tests.databases.mongodb import (
    PASSWORD,
    REPLICA_SET,
    USER,
    Document,
    FerretDB,
    ferretdb,
    tools,
)
from tests.databases.s3 import ObjectStore

pytestmark = pytest.mark.databases("rclone")

GOODS: list[Document] = [
    {"_id": 1, "double": 1.5, "whole double": 2.0, "negative zero": -0.0, "int": 7},
    {"_id": Int64(2**40), "long": Int64(7), "largest": Int64(2**63 - 1), "text": "ü\n'\"\\😀"},
    {"_id": ObjectId("656565656565656565656565"), "yes": True, "nothing": None},
    {"_id": "b", "bytes": b"\0\xff", "uuid": Binary(bytes(range(16)), 4)},
    {"_id": "a", "date": datetime(1969, 7, 20, 20, 17), "time": Timestamp(1, 2)},
    {"_id": 2.5, "regex": Regex("^a.*", "i"), "nested": {"list": [1, {"x": {}}], "": ""}},
]


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    """The store of this module's tests."""
    with ObjectStore() as store:
        yield store


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[FerretDB]:
    """The server."""
    with FerretDB(available(request.config, ferretdb)) as server:
        yield server


@pytest.fixture
def client(server: FerretDB) -> Iterator[MongoClient[Document]]:
    """A client of the server, which has two databases: every type, an odd name, an empty collection, many documents."""
    with server.client() as client:
        client["shop"]["goods"].insert_many(GOODS)
        client["shop"]["odd na'me \\"].insert_one({"_id": 1})
        client["shop"].create_collection("empty")
        client["till"]["sales"].insert_many({"_id": n, "of": "x" * 300} for n in range(3000))
        yield client


@pytest.fixture
def nightly(
    request: pytest.FixtureRequest, server: FerretDB, store: ObjectStore, tmp_path: Path
) -> BackupPod:
    """The pod of a Backup of the whole server, with MongoDB's tools on its path."""
    return of(server.port, store, tmp_path, available(request.config, tools))


@pytest.fixture
def nightly_shop(
    request: pytest.FixtureRequest, server: FerretDB, store: ObjectStore, tmp_path: Path
) -> BackupPod:
    """The pod of a Backup of the database `shop` alone, which looks for the primary of a replica set."""
    programs, host = available(request.config, tools), f"{REPLICA_SET}/127.0.0.1"
    return of(server.port, store, tmp_path, programs, database="shop", host=host)


def of(
    port: int, store: ObjectStore, scratch: Path, programs: tuple[Path, ...], **source: str
) -> BackupPod:
    """Return the pod of a Backup of the server."""
    login = {"username": USER, "password": PASSWORD}
    backup = pod(store, scratch, type="mongodb", port=port, login=login, **source)
    backup.path = ":".join([*(str(each.parent) for each in programs), PATH])
    return backup


def make(backup: BackupPod) -> str:
    """Make a backup, and return its name."""
    made = backup.make()
    assert made.code == 0, made.printed
    return str(json.loads(made.word)["backup"])


def documents(client: MongoClient[Document], database: str) -> dict[str, list[bytes]]:
    """Return the documents of each collection of a database, byte for byte."""
    found = client[database]
    return {
        name: sorted(encode(document) for document in found[name].find())
        for name in found.list_collection_names()
    }


def test_what_is_restored_has_the_same_documents(
    client: MongoClient[Document], store: ObjectStore, nightly: BackupPod
) -> None:
    """Changed and dropped data is restored; new collections and users stay; no secret is printed."""
    record = nightly.scratch / "arguments"
    programs = ["rclone", "mongodump", "mongorestore"]
    nightly.path = recorders(nightly.scratch / "programs", programs, record, nightly.path)
    expired = f"{datetime.now(UTC) - timedelta(days=31):%Y%m%dT%H%M%SZ}-x"
    for file in ("MANIFEST", "SHA256SUMS"):
        store.put(f"{nightly.folder}{expired}/{file}")
    shop, till = documents(client, "shop"), documents(client, "till")

    made = nightly.make()
    assert made.code == 0, made.printed
    name = json.loads(made.word)["backup"]
    files = ("MANIFEST", "SHA256SUMS", "all-databases.archive.gz")
    assert store.names(nightly.folder) == [f"{name}/{file}" for file in files]
    assert store.get(f"{nightly.folder}{name}/MANIFEST").decode().splitlines() == [
        f"rows\tall-databases.archive.gz\t{rows}"
        for rows in (
            "admin.system.users\t1",
            "shop.empty\t0",
            "shop.goods\t6",
            "shop.odd na'me \\\t1",
            "till.sales\t3000",
        )
    ]

    client["shop"]["goods"].delete_many({"_id": {"$in": ["a", "b"]}})
    client["shop"]["goods"].update_one({"_id": 1}, {"$set": {"double": "changed", "new": 1}})
    client["shop"]["goods"].insert_one({"_id": "later"})
    client["shop"]["later"].insert_one({"_id": 1})
    client.drop_database("till")
    client["admin"].command("createUser", "later", pwd="open", roles=[])
    restored = nightly.restore()
    assert (restored.code, json.loads(restored.word)) == (0, {"restored": name}), restored.printed
    assert documents(client, "shop") == {**shop, "later": [encode({"_id": 1})]}
    assert documents(client, "till") == till
    users = client["admin"].command("usersInfo")["users"]
    assert sorted(user["user"] for user in users) == [USER, "later"]

    told = record.read_text() + made.printed + restored.printed + made.word + restored.word
    assert [secret for secret in (PASSWORD, KEY) if secret in told] == []
    assert sorted(path.name for path in nightly.scratch.iterdir()) == [
        "arguments",
        "programs",
        "termination-log",
    ]


def test_one_database_of_a_server_is_restored_beside_the_original(
    client: MongoClient[Document], nightly: BackupPod
) -> None:
    """The other databases do not change; a database that is not in the backup is rejected by name."""
    shop = documents(client, "shop")
    name = make(nightly)
    client["shop"]["goods"].delete_many({})
    client["till"]["sales"].delete_many({})
    restored = nightly.restore(name[:16], "shop", "copy")
    assert (restored.code, restored.word) == (0, f'{{"restored":"{name}"}}'), restored.printed
    assert documents(client, "copy") == shop
    assert documents(client, "shop") == {**shop, "goods": []}

    assert nightly.restore("latest", "shop").code == 0
    assert documents(client, "shop") == shop
    assert documents(client, "till") == {"sales": []}
    refused = nightly.restore("latest", "sho")
    assert (refused.code, refused.word) == (
        1,
        f"failed while restoring all-databases.archive.gz: there is no database sho in {name}\n",
    )


def test_a_backup_of_one_database_has_no_other(
    client: MongoClient[Document], store: ObjectStore, nightly_shop: BackupPod
) -> None:
    """It is restored in place, or under another name."""
    shop = documents(client, "shop")
    name = make(nightly_shop)
    archive = gzip.decompress(store.get(f"{nightly_shop.folder}{name}/shop.archive.gz"))
    assert b"sales" not in archive
    client.drop_database("shop")
    client["till"]["sales"].delete_many({})
    assert nightly_shop.restore("latest", "shop", "copy").code == 0
    assert documents(client, "copy") == shop
    assert client["shop"].list_collection_names() == []
    assert nightly_shop.restore().code == 0
    assert documents(client, "shop") == shop
    assert documents(client, "till") == {"sales": []}


@pytest.mark.usefixtures("client")
def test_an_archive_without_its_end_is_no_backup(
    store: ObjectStore, nightly: BackupPod, tmp_path: Path
) -> None:
    """An archive that is cut short is found, even if it unpacks and mongodump exits with 0."""
    good = make(nightly)
    for bytes in (1, 5000):
        cut = f'$REAL "$@" | gzip -d | head -c -{bytes} | gzip'
        nightly.path = instead(tmp_path / str(bytes), "mongodump", cut, nightly.path)
        made = nightly.make()
        assert (made.code, made.word) == (
            1,
            "failed while verifying all-databases.archive.gz in the store: the archive is cut short\n",
        )
    assert [name for name in store.names(nightly.folder) if name.endswith("SHA256SUMS")] == [
        f"{good}/SHA256SUMS"
    ]


def test_a_database_that_does_not_exist_is_no_backup(nightly_shop: BackupPod) -> None:
    """Mongodump succeeds without it."""
    made = nightly_shop.make()
    assert (made.code, made.word) == (
        1,
        "failed while verifying shop.archive.gz in the store: "
        "there is nothing in it; does the server have the database?\n",
    )


def test_a_restore_that_loses_documents_fails(
    client: MongoClient[Document], store: ObjectStore, nightly_shop: BackupPod
) -> None:
    """A document that the server rejects is the reason, which mongorestore prints before its totals."""
    client.drop_database("shop")
    client["shop"]["goods"].insert_one({"_id": 1})
    once = encode({"_id": 1})
    folder = f"{nightly_shop.folder}{make(nightly_shop)}/"
    archive = gzip.decompress(store.get(f"{folder}shop.archive.gz"))
    twice = archive.replace(once, 2 * once).replace(checksum(once), checksum(2 * once))
    replace(store, folder, "shop.archive.gz", gzip.compress(twice))
    restored = nightly_shop.restore()
    assert restored.code == 1
    assert restored.word.startswith(
        "failed while restoring shop.archive.gz: Failed: shop.goods: error restoring from archive on stdin: "
    ), restored.printed
    assert "E11000 duplicate key error collection: shop.goods" in restored.word


@pytest.mark.usefixtures("client")
def test_a_refused_login_is_the_reason(nightly: BackupPod) -> None:
    """What the tools print about a failed connection is in the pod's status, without the time and the password."""
    make(nightly)
    nightly.secrets["login"] = {"username": USER, "password": "n0t-it"}
    made, restored = nightly.make(), nightly.restore()
    server = f"mongodb://127.0.0.1:{nightly.backup.spec.source.connection.port}/"
    reason = (
        f"failed to connect to {server}: connection() error occurred during connection handshake: auth error: "
        'unable to authenticate using mechanism "SCRAM-SHA-256": (AuthenticationFailed) Authentication failed.\n'
    )
    assert (made.code, made.word) == (
        1,
        f"failed while dumping all-databases.archive.gz: Failed: can't create session: {reason}",
    )
    assert (restored.code, restored.word) == (
        1,
        f"failed while restoring all-databases.archive.gz: error connecting to host: {reason}",
    )
    assert "n0t-it" not in made.printed + restored.printed


def test_a_server_that_is_away_is_the_reason(
    request: pytest.FixtureRequest, store: ObjectStore, tmp_path: Path
) -> None:
    """Mongodump waits for it for half a minute, here for less."""
    (port,) = free_ports(1)
    nightly = of(port, store, tmp_path, available(request.config, tools))
    impatient = 'exec $REAL --serverSelectionTimeout=1 "$@"'
    nightly.path = instead(tmp_path / "impatient", "mongodump", impatient, nightly.path)
    made = nightly.make()
    assert made.code == 1
    assert made.word.startswith(
        f"failed while dumping all-databases.archive.gz: Failed: can't create session: failed to connect to mongodb://127.0.0.1:{port}/: "
    )
    assert "connect: connection refused" in made.word


def checksum(documents: bytes) -> bytes:
    """Return the checksum of a collection's documents as an archive has it: CRC-64 of ECMA-182, reflected."""
    crc = 2**64 - 1
    for byte in documents:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0xC96C5795D7870F42 if crc & 1 else 0)
    return struct.pack("<Q", crc ^ 2**64 - 1)
