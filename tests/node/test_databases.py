"""PostgreSQL and Backup in pods: replication, login, a lost primary, a dump in an object store and its restore."""

import base64
import json
from collections.abc import Iterator

import pytest

from tests.databases.s3 import BUCKET
from tests.e2e.test_restore import backed_up, restore
from tests.node.conftest import Figures
from tests.node.installation import Installation
from tests.node.store import NodeStore

pytestmark = [pytest.mark.node, pytest.mark.long]

NAMESPACE = "orders"
SMALL = {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"cpu": "1", "memory": "512Mi"}}
POSTGRESQL = {
    "apiVersion": "database.example.com/v1",
    "kind": "PostgreSQL",
    "metadata": {"name": "db", "namespace": NAMESPACE},
    "spec": {
        "version": "17",
        "storage": "1Gi",
        "replicas": 2,
        "resources": SMALL,
        "users": [{"name": "app"}],
        "databases": [{"name": "shop", "owner": "app"}],
    },
}
TABLE = "CREATE TABLE orders (id int); INSERT INTO orders VALUES (1), (2)"
PODS = "app.kubernetes.io/component=database,app.kubernetes.io/instance=db"
REPLICAS = "SELECT count(*) FROM pg_stat_replication"
CLIENT = "SELECT pg_is_in_recovery(), current_user"


@pytest.fixture(scope="module")
def database(node) -> Iterator[Installation]:
    """A PostgreSQL of two instances with a table of two rows."""
    installation = Installation(node)
    installation.have()
    installation.namespace(NAMESPACE)
    node.apply([POSTGRESQL])
    wait_ready(installation, "postgresql/db")
    sql(installation, primary(installation), f"SET ROLE app; {TABLE}")
    yield installation
    installation.cluster.kubectl("delete", "postgresqls,backups", "--all", "-n", NAMESPACE)


def test_the_standby_streams(database: Installation) -> None:
    """Rows written to the primary can be read from the standby."""
    assert streams(database)
    (standby,) = {"db-0", "db-1"} - {primary(database)}
    rows = lambda: sql(database, standby, "SELECT count(*) FROM orders")  # noqa: E731
    database.until("the standby has the rows", lambda: rows() == "2")
    assert sql(database, standby, "SELECT pg_is_in_recovery()") == "t"
    assert over_network(database, password(database), host="db-read") == "t|app"


def test_the_image_has_patroni(database: Installation) -> None:
    """It runs as the image's user, without writable files of its own."""
    inside = ("exec", "-n", NAMESPACE, "db-0", "-c", "postgres", "--", "patroni", "--version")
    assert database.cluster.kubectl(*inside).startswith("patroni 4.1.")


def test_the_user_logs_in_through_the_service(database: Installation) -> None:
    """The Secret's password opens the database over the network, and another one does not."""
    assert over_network(database, password(database)) == "f|app"
    assert "password authentication failed" in over_network(database, "wrong")


def test_a_deleted_primary_hands_over(database: Installation, figure: Figures) -> None:
    """Another instance becomes the primary, the Service leads to it, and the deleted one follows."""
    lost = primary(database)
    claim = ("get", "pvc", f"data-{lost}", "-n", NAMESPACE, "-o", "jsonpath={.spec.volumeName}")
    number = database.cluster.kubectl(*claim).removeprefix("local-")
    # As for a cloned volume: the kubelet gives the group access to the files of the database.
    (database.node.slot.directory / "volumes" / number).chmod(0o755)
    database.cluster.kubectl("delete", "pod", lost, "-n", NAMESPACE, "--wait=false")
    moves = database.until("another is the primary", lambda: primary(database) not in ("", lost))
    answers = database.until("it answers", lambda: over_network_rows(database) == "2")
    follows = database.until("the standby follows", lambda: streams(database))
    figure(f"handed over in {moves:.1f} s, {answers:.1f} s, its standby {follows:.1f} s later")


def test_instances_are_added_and_removed(database: Installation) -> None:
    """A new standby copies the primary; a removed one does not affect the others."""
    kubectl = database.cluster.kubectl
    status = lambda: database.cluster.get("postgresql/db", NAMESPACE)["status"]  # noqa: E731
    for replicas in (3, 2):
        kubectl("scale", "postgresql/db", f"--replicas={replicas}", "-n", NAMESPACE)
        ready = lambda of=replicas: status()["readyReplicas"] == status()["replicas"] == of  # noqa: E731
        database.until(f"{replicas} instances are ready", ready)
        if replicas == 3:
            assert sql(database, "db-2", "SELECT count(*) FROM orders") == "2"
        database.until("there is a primary", lambda: primary(database) in ("db-0", "db-1", "db-2"))
    count = lambda: sql(database, primary(database), REPLICAS)  # noqa: E731
    database.until("one standby streams", lambda: count() == "1")


def test_a_backup_is_stored_and_restored(database: Installation) -> None:
    """The CronJob's Job dumps to an object store; a restore creates another database from it."""
    kubectl = database.cluster.kubectl
    with NodeStore(database.node.machine) as store:
        database.node.apply([*backup(store.url)])
        wait_ready(database, "backup/nightly")
        kubectl("create", "job", "now", "--from=cronjob/nightly-cronjob", "-n", NAMESPACE)
        wait_complete(database, "job/now")
        names = [name.rsplit("/", 1)[-1] for name in store.names(f"{NAMESPACE}/nightly/")]
        assert sorted(names) == ["MANIFEST", "SHA256SUMS", "globals.sql", "shop.dump"]
        reported = lambda: database.cluster.get("backup/nightly", NAMESPACE)["status"]  # noqa: E731
        database.until("its status tells", lambda: "lastSuccessfulTime" in reported())

        restore = ("create", "job", "restore", "--from=cronjob/nightly-cronjob", "-n", NAMESPACE)
        job = json.loads(kubectl(*restore, "--dry-run=client", "-o", "json"))
        command = ["/restore.sh", "latest", "shop", "shop_restored"]
        job["spec"]["template"]["spec"]["containers"][0]["command"] = command
        kubectl("create", "-f", "-", input=job)
        wait_complete(database, "job/restore")
    leader = primary(database)
    assert sql(database, leader, "SELECT count(*) FROM orders", "shop_restored") == "2"


def test_a_namespace_is_restored_with_its_data(database: Installation) -> None:
    """Deleted and restored in a backup tool's order: the password and the rows are those of before."""
    kubectl = database.cluster.kubectl
    stored, before = backed_up(database.cluster, NAMESPACE), password(database)
    claims = [each for each in stored if each["kind"] == "PersistentVolumeClaim"]
    volumes = [each["spec"]["volumeName"] for each in claims]
    # The namespace controller looks again after half of the pods' grace period.
    delete = ("delete", "namespace", NAMESPACE, "--timeout=100s")
    database.plane.kubectl(*delete, timeout=110)
    for volume in volumes:  # retained volumes stand for those of a snapshot
        kubectl("patch", "pv", volume, "--type=merge", "-p", '{"spec":{"claimRef":null}}')
    kubectl("create", "namespace", NAMESPACE)
    restore(database.cluster, NAMESPACE, stored, keep_volumes=True)
    wait_ready(database, "postgresql/db")
    assert password(database) == before
    database.until("it has its rows", lambda: over_network_rows(database) == "2")
    database.until("the standby follows", lambda: streams(database))


def backup(endpoint: str) -> Iterator[dict]:
    """Yield a Backup of the database, and the Secret of its store."""
    metadata = {"name": "store", "namespace": NAMESPACE}
    keys = {"AWS_ACCESS_KEY_ID": "somebody", "AWS_SECRET_ACCESS_KEY": "whoever"}
    yield {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": keys}
    login = {"name": "db-credentials"}
    connection = {"host": "db", "database": "shop", "secretRef": login}
    destination = {
        "type": "s3",
        "bucket": BUCKET,
        "endpoint": endpoint,
        "secretRef": {"name": "store"},
    }
    yield {
        "apiVersion": "backup.example.com/v1",
        "kind": "Backup",
        "metadata": {"name": "nightly", "namespace": NAMESPACE},
        "spec": {
            "source": {"type": "postgresql", "connection": connection},
            "destination": destination,
        },
    }


def sql(installation: Installation, pod: str, statement: str, database: str = "shop") -> str:
    """Run SQL inside a pod as the superuser, and return the values."""
    return sql_in(installation, NAMESPACE, pod, statement, database)


def sql_in(
    installation: Installation, namespace: str, pod: str, statement: str, database: str = "shop"
) -> str:
    """Run SQL inside a pod of a namespace as the superuser, and return the values."""
    psql = ("psql", "-U", "postgres", "-d", database, "-A", "-t", "-q", "-c", statement)
    inside = ("exec", "-n", namespace, pod, "-c", "postgres", "--")
    return installation.cluster.kubectl(*inside, *psql).strip()


def streams(installation: Installation) -> bool:
    """Return whether the standby follows the primary."""
    state = "SELECT state FROM pg_stat_replication"
    return sql(installation, primary(installation), state) == "streaming"


def primary(installation: Installation, namespace: str = NAMESPACE, database: str = "db") -> str:
    """Return the name of the primary's pod, as the status has it; empty: there is none."""
    status: dict = installation.cluster.get(f"postgresql/{database}", namespace)["status"]
    return status.get("primary", "")


def over_network(
    installation: Installation, word: str, statement: str = CLIENT, host: str = "db"
) -> str:
    """Run SQL through the Service with a password, and return the values, or the error."""
    # A packet to a pod that has just ended is lost without an answer.
    url = f"postgresql://app:{word}@{host}:5432/shop?connect_timeout=3"
    pod = installation.plane.resources.find("pods", NAMESPACE, PODS)[0]["metadata"]["name"]
    inside = ("exec", "-n", NAMESPACE, pod, "-c", "postgres", "--")
    psql = ("psql", url, "-A", "-t", "-q", "-c", statement)
    done = installation.plane.kubectl(*inside, *psql, check=False)
    return (done.stdout or done.stderr).strip()


def over_network_rows(installation: Installation) -> str:
    """Return how many rows the primary has for the application."""
    return over_network(installation, password(installation), "SELECT count(*) FROM orders")


def password(installation: Installation) -> str:
    """Return the application's password."""
    secret = installation.cluster.get("secret/db-user-app", NAMESPACE)
    return base64.b64decode(secret["data"]["password"]).decode()


def wait_ready(installation: Installation, what: str, namespace: str = NAMESPACE) -> None:
    """Wait until an object is ready."""
    wait = ("wait", what, "--for=condition=Ready", "-n", namespace, "--timeout=300s")
    installation.plane.kubectl(*wait, timeout=310)


def wait_complete(installation: Installation, job: str) -> None:
    """Wait until a Job is complete; if it is not, its log is the error."""
    wait = ("wait", job, "--for=condition=Complete", "-n", NAMESPACE, "--timeout=100s")
    done = installation.plane.kubectl(*wait, check=False, timeout=110)
    assert done.returncode == 0, installation.cluster.kubectl("logs", job, "-n", NAMESPACE)
