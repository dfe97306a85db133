"""Backups through stores that speak Google's and Azure's protocols, made as the CronJob would make them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controlplane.fixtures import available
from tests.databases.backups import PATH, BackupPod, pod, recorders
from tests.databases.clouds import AZURE_KEY, AzureStore, GoogleStore
from tests.databases.postgresql import PASSWORD, PostgreSQL
from tests.databases.s3 import BUCKET
from tests.databases.stores import azurite, fake_gcs_server, rclone

pytestmark = pytest.mark.databases("postgresql")

OLD = "20240101T020000Z-x"
GOODS = "SELECT count(*), md5(string_agg(name, '' ORDER BY id)) FROM goods"
LOGIN = {"username": "postgres", "password": PASSWORD}


@pytest.fixture(scope="module")
def server() -> Iterator[PostgreSQL]:
    """A server with a table."""
    with PostgreSQL() as server:
        server.query(
            "CREATE TABLE goods (id int PRIMARY KEY, name text);"
            "INSERT INTO goods SELECT i, md5(i::text) FROM generate_series(1, 20000) i"
        )
        yield server


@pytest.fixture(params=["gcs", "azure"])
def nightly(
    request: pytest.FixtureRequest, server: PostgreSQL, tmp_path: Path
) -> Iterator[BackupPod]:
    """The pod of a Backup with an empty bucket, and the rclone of its image on the path."""
    path = f"{available(request.config, rclone).parent}:{PATH}"
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    if request.param == "gcs":
        with (
            GoogleStore(available(request.config, fake_gcs_server)) as google,
            google.issuer() as secret,
        ):
            yield pod_of(google, "gcs", secret, server, scratch, path)
    else:
        with AzureStore(available(request.config, azurite)) as azure:
            backup = pod_of(azure, "azure", azure.secret, server, scratch, path)
            backup.rclone("mkdir", f"destination,no_check_container=false:{BUCKET}")
            yield backup


def pod_of(
    store: GoogleStore | AzureStore,
    destination: str,
    secret: dict[str, str],
    server: PostgreSQL,
    scratch: Path,
    path: str,
) -> BackupPod:
    """Return the pod of a Backup of the server to a store, with the store's Secret."""
    backup = pod(
        store, scratch, type="postgresql", destination=destination, port=server.port, login=LOGIN
    )
    backup.secrets = {**backup.secrets, "store": secret}
    backup.path = path
    return backup


def test_a_backup_is_made_and_restored(
    server: PostgreSQL, nightly: BackupPod, tmp_path: Path
) -> None:
    """Rows are restored, an expired backup is deleted, and no argument has a secret."""
    rows, record = server.query(GOODS), tmp_path / "arguments"
    for file in ("SHA256SUMS", "MANIFEST"):
        nightly.rclone("rcat", f"destination:{BUCKET}/{nightly.folder}{OLD}/{file}", input="x")
    nightly.path = recorders(tmp_path / "programs", ["rclone"], record, path=nightly.path)

    made = nightly.make()
    assert made.code == 0, made.printed
    names = nightly.rclone("lsf", "-R", "--files-only", f"destination:{BUCKET}/{nightly.folder}")
    (folder,) = {name.partition("/")[0] for name in names.split()}
    files = ["MANIFEST", "SHA256SUMS", "globals.sql", "postgres.dump"]
    assert sorted(names.split()) == [f"{folder}/{file}" for file in files]

    server.query("DELETE FROM goods WHERE id > 10")
    restored = nightly.restore("latest", "postgres")
    assert (restored.code, server.query(GOODS)) == (0, rows), restored.printed
    arguments = record.read_text()
    assert "rcat" in arguments
    assert not any(secret in arguments for secret in (AZURE_KEY, "PRIVATE KEY", PASSWORD))


def test_a_wrong_key_is_the_reason(nightly: BackupPod) -> None:
    """The store's answer is in the pod's status."""
    wrong = {"azure": {"AZURE_STORAGE_KEY": AZURE_KEY[::-1]}, "gcs": {"credentials.json": "{}"}}
    kind = nightly.backup.spec.destination.type
    nightly.secrets["store"] = {**nightly.secrets["store"], **wrong[kind]}
    made = nightly.make()
    reasons = {"azure": "AuthorizationFailure", "gcs": "credentials"}
    assert made.code == 1
    assert reasons[kind] in made.word, made.printed
