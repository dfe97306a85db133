"""How the scripts call MongoDB's tools. The tools are stand-ins, since Debian does not package the real ones."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.databases.backups import PATH, BackupPod, pod
from tests.databases.s3 import ObjectStore

pytestmark = pytest.mark.databases("rclone")

PASSWORD = 'p"a\\ss word'
NOTED = """\
#!/bin/bash
cd "$(dirname "$0")"
for each in "$@"; do
    case $each in --config=*) config=${each#*=} ;; esac
done
echo "$(basename "$0") ${*/$config/CONFIG}" >>calls
echo "$(stat -c %a "$config") $(<"$config")" >config
"""
DUMP = f"{NOTED}echo archive | gzip\n"
RESTORE = f"{NOTED}gzip -d >restored\n"
SERVER = (
    "--host=127.0.0.1 --port=27017 --username=keeper --config=CONFIG --authenticationDatabase=admin"
)


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    """The store of this module's tests."""
    with ObjectStore() as store:
        yield store


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """The directory of the stand-in programs and of their records."""
    for name, script in {"mongodump": DUMP, "mongorestore": RESTORE}.items():
        (tmp_path / name).write_text(script)
        (tmp_path / name).chmod(0o755)
    return tmp_path


def nightly(store: ObjectStore, tools: Path, **connection: str) -> BackupPod:
    """The pod of a Backup, with the stand-ins on its path."""
    login = {"username": "keeper", "password": PASSWORD}
    made = pod(store, tools, type="mongodb", port=27017, login=login, **connection)
    made.path = f"{tools}:{PATH}"
    return made


def test_a_whole_server_is_one_archive(store: ObjectStore, tools: Path) -> None:
    """A server is dumped and restored as one archive; the password is in a file that only its owner may read."""
    backup = nightly(store, tools)
    made = backup.make()
    assert made.code == 0, made.printed
    name = json.loads(made.word)["backup"]
    assert store.names(backup.folder) == [
        f"{name}/MANIFEST",
        f"{name}/SHA256SUMS",
        f"{name}/all-databases.archive.gz",
    ]
    assert backup.restore().printed == "restored all-databases.archive.gz\n"
    assert (tools / "calls").read_text().splitlines() == [
        f"mongodump {SERVER} --archive --gzip",
        f"mongorestore {SERVER} --archive --gzip --drop",
    ]
    assert (tools / "restored").read_text() == "archive\n"
    assert (tools / "config").read_text() == '600 password: "p\\"a\\\\ss word"\n'


def test_a_database_is_restored_under_another_name(store: ObjectStore, tools: Path) -> None:
    """The restore renames the collections."""
    backup = nightly(store, tools, database="shop")
    assert backup.make().code == 0
    assert backup.restore("latest", "shop", "copy").code == 0
    assert (tools / "calls").read_text().splitlines() == [
        f"mongodump {SERVER} --archive --gzip --db=shop",
        f"mongorestore {SERVER} --archive --gzip --drop --nsFrom=shop.* --nsTo=copy.*",
    ]


def test_an_invalid_archive_is_no_backup(store: ObjectStore, tools: Path) -> None:
    """A dump that cannot be unpacked is reported."""
    (tools / "mongodump").write_text("#!/bin/bash\necho cut short\n")
    backup = nightly(store, tools)
    assert (
        backup.make().word
        == "failed while verifying all-databases.archive.gz in the store: gzip: stdin: not in gzip format\n"
    )
    assert store.names(backup.folder)[0].endswith("/all-databases.archive.gz")


def test_a_refused_login_is_the_reason(store: ObjectStore, tools: Path) -> None:
    """What mongodump says of a failed connection is in the pod's status, without the time."""
    failed = "Failed: can't create session: failed to connect to mongodb://db:27017/"
    (tools / "mongodump").write_text(
        f'#!/bin/bash\nprintf "2026-11-29T02:30:00.843+0000\\t{failed}\\n" >&2\nexit 1\n'
    )
    word = nightly(store, tools).make().word
    assert word == f"failed while dumping all-databases.archive.gz: {failed}\n"


def test_the_reason_of_a_failed_restore_is_kept(store: ObjectStore, tools: Path) -> None:
    """Mongorestore prints totals after the reason."""
    backup = nightly(store, tools)
    assert backup.make().code == 0
    time, failed = "2026-11-29T02:30:00.335+0000", "Failed: the dump has another auth version"
    lines = f"{time}\\t{failed}\\n{time}\\t0 document(s) failed to restore.\\n"
    (tools / "mongorestore").write_text(f'#!/bin/bash\nprintf "{lines}" >&2\nexit 1\n')
    word = backup.restore().word
    assert word == f"failed while restoring all-databases.archive.gz: {failed}\n"
