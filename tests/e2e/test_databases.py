"""Databases with kubectl: they become ready, grow, reject invalid changes, and keep their data."""

import json
from typing import Any

import pytest

from tests.controlplane.audit import WRITES
from tests.e2e.conftest import CONFIG, Laptop
from tests.waiting import until

pytestmark = pytest.mark.controlplane("kube-controller-manager", "kube-scheduler", "hollow-kubelet")

SHOP: dict[str, Any] = {
    "apiVersion": "database.example.com/v1",
    "kind": "PostgreSQL",
    "metadata": {"name": "shop", "labels": {"platform": "store"}},
    "spec": {
        "version": "16",
        "storage": "1Gi",
        "users": [{"name": "app_user"}],
        "databases": [{"name": "shop", "owner": "app_user"}],
        "backup": {"enabled": True},
        "monitoring": {"enabled": True},
    },
}


def looked_at(laptop: Laptop, name: str) -> int:
    """Return how often a database was reconciled."""
    lines = (
        (record.get("message"), record.get("postgresql.name"))
        for record in laptop.gatewright.logged()
    )
    return sum(line == ("Reconciliation completed", name) for line in lines)


def written(laptop: Laptop, since: int, namespace: str) -> list[str]:
    """Return the controller's writes since a mark, without statuses and events."""
    references = (
        (event["verb"], event["objectRef"])
        for event in laptop.plane.audit_events(since, verb=WRITES, namespace=namespace)
        if event["userAgent"].startswith("gatewright")
    )
    return [
        f"{verb} {it['resource']}/{it.get('name')}"
        for verb, it in references
        if "subresource" not in it and it["resource"] != "events"
    ]


def ready(laptop: Laptop, namespace: str) -> str:
    """Return its condition Ready, as `status reason: message`."""
    template = "{range .status.conditions[?(@.type=='Ready')]}{.status} {.reason}: {.message}{end}"
    return laptop.kubectl("get", "postgresql/shop", "-n", namespace, f"-o=jsonpath={template}")


def test_s4_test_db_becomes_ready(laptop: Laptop, namespace: str) -> None:
    """S4: the sample is Ready once its pod is; then nothing is written until a change."""

    def kubectl(*args: str) -> str:
        return laptop.kubectl("-n", namespace, *args)

    mark = laptop.plane.audit_mark()
    kubectl("apply", "-f", str(CONFIG / "samples/test-db.yaml"))
    kubectl("wait", "--for=condition=Ready", "postgresql/test-db", "--timeout=90s")
    container = kubectl(
        "get", "pod/test-db-0", "-o=jsonpath={.spec.containers[0].name} {.spec.containers[0].image}"
    )
    assert container == "postgres registry.company.com/gatewright-postgresql:14"
    names = kubectl(
        "get", "all,secrets,pvc", "-l", "app.kubernetes.io/instance=test-db", "-o=name"
    ).split()
    assert sorted(names) == [
        "persistentvolumeclaim/data-test-db-0",
        "pod/test-db-0",
        "secret/test-db-credentials",
        "service/test-db",
        "service/test-db-config",
        "service/test-db-failover",
        "service/test-db-headless",
        "service/test-db-read",
        "service/test-db-sync",
        "statefulset.apps/test-db",
    ]
    status = laptop.get("postgresql/test-db", namespace)["status"]
    assert {key: value for key, value in status.items() if key != "conditions"} == {
        "phase": "Running",
        "replicas": 1,
        "readyReplicas": 1,
        "version": "14",
        "storage": "1Gi",
        "primary": "test-db-0",
        "endpoint": f"test-db.{namespace}.svc:5432",
        "secret": "test-db-credentials",
        "selector": "app.kubernetes.io/name=postgresql,app.kubernetes.io/instance=test-db,"
        "app.kubernetes.io/component=database",
        "observedGeneration": 1,
    }
    assert [(each["type"], each["status"]) for each in status["conditions"]] == [
        ("PrimaryAvailable", "True"),
        ("Ready", "True"),
    ]
    assert written(laptop, mark, namespace) == [
        "create secrets/test-db-credentials",
        "patch configmaps/test-db-scripts",
        "patch serviceaccounts/test-db-gatewright-patroni",
        "patch roles/test-db-gatewright-patroni",
        "patch rolebindings/test-db-gatewright-patroni",
        "create endpoints/test-db",
        *(
            f"create {resource}/test-db-{store}"
            for store in ("config", "failover", "sync")
            for resource in ("services", "endpoints")
        ),
        "patch statefulsets/test-db",
        "patch poddisruptionbudgets/test-db",
        "patch services/test-db-headless",
        "patch services/test-db",
        "patch services/test-db-read",
    ]
    mark, times = laptop.plane.audit_mark(), looked_at(laptop, "test-db")
    kubectl("annotate", "postgresql/test-db", "looked=at")
    laptop.gatewright.until("reconciled", lambda: looked_at(laptop, "test-db") > times)
    assert [
        event["requestURI"]
        for event in laptop.plane.audit_events(mark, verb=WRITES, namespace=namespace)
        if not event["userAgent"].startswith("kubectl") and "/events" not in event["requestURI"]
    ] == []


def test_a_database_grows_and_keeps_its_data(laptop: Laptop, namespace: str) -> None:
    """Users, backups, storage and instances are added; unsafe changes are rejected; claims outlive the object."""

    def kubectl(*args: str) -> str:
        return laptop.kubectl("-n", namespace, *args)

    def change(**spec: Any) -> None:
        kubectl("patch", "postgresql/shop", "--type=merge", "-p", json.dumps({"spec": spec}))

    laptop.kubectl("apply", "-n", namespace, "-f", "-", input=SHOP)
    kubectl("wait", "--for=condition=Ready", "postgresql/shop", "--timeout=90s")
    names = kubectl("get", "all,secrets,pvc,configmaps", "-l", "platform=store", "-o=name").split()
    job = next(each for each in names if each.startswith("job.batch/shop-roles-"))
    assert sorted(each for each in names if not each.startswith(("pod/shop-roles-", job))) == [
        "configmap/shop-scripts",
        "cronjob.batch/shop-backup",
        "persistentvolumeclaim/data-shop-0",
        "persistentvolumeclaim/shop-backup",
        "pod/shop-0",
        "postgresql.database.example.com/shop",
        "secret/shop-credentials",
        "secret/shop-user-app-user",
        "service/shop",
        "service/shop-config",
        "service/shop-failover",
        "service/shop-headless",
        "service/shop-read",
        "service/shop-sync",
        "statefulset.apps/shop",
    ]

    change(storage="2Gi", replicas=2)
    kubectl("wait", "pvc/data-shop-1", "--for=create", "--timeout=90s")
    claims = [
        f"persistentvolumeclaim/{name}" for name in ("data-shop-0", "data-shop-1", "shop-backup")
    ]
    kubectl("wait", *claims, "--for=jsonpath={.status.capacity.storage}=2Gi", "--timeout=90s")
    kubectl("wait", "postgresql/shop", "--for=condition=Ready", "--timeout=90s")

    earlier = json.dumps({"spec": {"version": "15"}})
    assert (
        "- postgresql-rules: spec.version: 15; the data is of PostgreSQL 16, which PostgreSQL 15 cannot open. Set it "
        "back to 16, or move a dump to a new database."
    ) in laptop.refusal("-n", namespace, "patch", "postgresql/shop", "--type=merge", "-p", earlier)
    change(storage="1Gi", version="17")
    kubectl("wait", "postgresql/shop", "--for=jsonpath={.status.phase}=Failed", "--timeout=90s")
    assert ready(laptop, namespace) == (
        "False Refused: spec.version: 17; the data is of PostgreSQL 16, and spec.majorUpgrade is Refused. Set it back to "
        "16, or set spec.majorUpgrade to Reversible for an upgrade in place, or restore a Backup into a new PostgreSQL by "
        "spec.restoreFrom; spec.storage: 1Gi; volumes of 2Gi cannot shrink. Set it to 2Gi or more"
    )
    assert (
        kubectl("get", "statefulset/shop", "-o=jsonpath={..containers[0].image}")
        == "registry.company.com/gatewright-postgresql:16"
    )
    change(storage="2Gi", version="16", users=[{"name": "app_user"}, {"name": "reader"}])
    kubectl("wait", job, "--for=delete", "--timeout=90s")
    kubectl("wait", "postgresql/shop", "--for=condition=Ready", "--timeout=90s")

    kubectl("delete", "postgresql/shop", "--timeout=90s")
    kubectl(
        "wait",
        "statefulset,cronjob,secret,job",
        "--for=delete",
        "-l",
        "platform=store",
        "--timeout=60s",
    )
    assert kubectl("get", "pvc", "-o=name").split() == claims
    kubectl("wait", "service/shop", "--for=delete", "--timeout=90s")

    again = {**SHOP, "spec": {**SHOP["spec"], "storage": "2Gi", "deletionPolicy": "Delete"}}
    laptop.kubectl("apply", "-n", namespace, "-f", "-", input=again)
    kubectl("wait", "--for=condition=Ready", "postgresql/shop", "--timeout=90s")
    kubectl("delete", "postgresql/shop", "--timeout=90s")
    kubectl("wait", "pvc/data-shop-0", "pvc/shop-backup", "--for=delete", "--timeout=60s")
    # Else `initialize` would make a later database of this name wait for ever.
    state = ("endpoints/shop-config", "service/shop-config", "endpoints/shop-sync")
    kubectl("wait", *state, "--for=delete", "--timeout=90s")


def test_the_volumes_of_mysql_grow_and_a_broken_upgrade_is_taken_back(
    laptop: Laptop, namespace: str
) -> None:
    """The claim for dumps follows its own field; a version that no pod can start with is taken back."""

    def grow(**database: Any) -> None:
        patch = json.dumps({"spec": {"database": database}})
        laptop.kubectl("patch", "appstack/shop", "--type=merge", "-p", patch, "-n", namespace)

    def until_sizes(data: str, dumps: str) -> None:
        for claim, size in (("mysql-shop-db-0", data), ("shop-db-mysql-backup", dumps)):
            laptop.wait(f"pvc/{claim}", "create", namespace)
            laptop.wait(f"pvc/{claim}", f"jsonpath={{.status.capacity.storage}}={size}", namespace)
        laptop.wait("appstack/shop", "condition=Ready", namespace)

    database = {"type": "mysql", "version": "8.0", "storage": "1Gi", "backup": {"enabled": True}}
    stack = {"apiVersion": "app.example.com/v1", "kind": "AppStack", "metadata": {"name": "shop"}}
    laptop.kubectl("apply", "-n", namespace, "-f-", input={**stack, "spec": {"database": database}})
    until_sizes("1Gi", "1Gi")
    grow(storage="2Gi")
    until_sizes("2Gi", "2Gi")
    larger = json.dumps({"spec": {"resources": {"requests": {"storage": "5Gi"}}}})
    laptop.kubectl("patch", "pvc/mysql-shop-db-0", "-p", larger, "-n", namespace)
    grow(storage="3Gi", backup={"storage": "4Gi"})
    until_sizes("5Gi", "4Gi")  # a claim that somebody enlarged is no failure
    before = laptop.get("pod/shop-db-0", namespace)["metadata"]["uid"]
    grow(version="8.4", resources={each: {"cpu": "100k"} for each in ("requests", "limits")})
    reason = '{.status.conditions[?(@.type=="DatabaseReady")].reason}'
    laptop.wait("appstack/shop", f"jsonpath={reason}=Unschedulable", namespace)
    grow(version="8.0", resources=None)
    laptop.wait("appstack/shop", "condition=Ready", namespace)
    after = laptop.get("pod/shop-db-0", namespace)
    assert after["metadata"]["uid"] != before
    (container,) = after["spec"]["containers"]
    assert container["resources"]["requests"]["cpu"] == "100m"
    assert container["image"].endswith("/mysql:8.0")
    grow(version="8.4")
    version = r"jsonpath={.metadata.labels.app\.kubernetes\.io/version}=8.4"
    laptop.wait("pvc/mysql-shop-db-0", version, namespace)
    laptop.wait("appstack/shop", "condition=Ready", namespace)
    earlier = json.dumps({"spec": {"database": {"version": "8.0"}}})
    denied = laptop.refusal(
        "patch", "appstack/shop", "--type=merge", "-p", earlier, "-n", namespace
    )
    assert "spec.database.version: 8.0; MySQL 8.0 cannot open the data of 8.4" in denied


def test_a_missing_storage_class_is_reported(laptop: Laptop, namespace: str) -> None:
    """The conditions of the database and of its stack name it; once it exists, both continue."""
    name = f"class-{namespace}"
    database = {"type": "postgresql", "storage": "1Gi", "storageClassName": name}
    stack = {"apiVersion": "app.example.com/v1", "kind": "AppStack", "metadata": {"name": "shop"}}
    laptop.kubectl("apply", "-n", namespace, "-f-", input={**stack, "spec": {"database": database}})
    told = f'failed to create database: StorageClass "{name}" does not exist, and claim data-shop-db-0 waits for it. Create it'
    for kind, condition, message in (
        ("postgresql/shop-db", "Ready", told),
        ("postgresql/shop-db", "PrimaryAvailable", told),
        (
            "appstack/shop",
            "DatabaseReady",
            f"Database deployment failed: PostgreSQL shop-db: {told}",
        ),
    ):
        laptop.wait(
            kind,
            f'jsonpath={{.status.conditions[?(@.type=="{condition}")].message}}={message}',
            namespace,
        )
    made = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}}
    try:
        laptop.kubectl(
            "create", "-f-", input={**made, "provisioner": "hollow.gatewright.io/volumes"}
        )
        laptop.wait("appstack/shop", "condition=Ready", namespace)
    finally:
        laptop.kubectl("delete", "storageclass", name, "--ignore-not-found")


def test_a_stack_changes_its_database_and_back(laptop: Laptop, namespace: str) -> None:
    """One is removed and the other added at the same time: each keeps its claims and finds them again."""

    def database(spec: dict[str, Any] | None) -> None:
        patch = {"spec": {"database": spec}}
        laptop.kubectl(
            "patch", "appstack/shop", "--type=merge", "-p", json.dumps(patch), "-n", namespace
        )

    def become(type: str) -> dict[str, str]:
        """Set a database of this type, wait for it, and return its claims with their uids."""
        database({"type": type, "storage": "1Gi", "backup": {"enabled": True}})
        port = {"postgresql": 5432, "mysql": 3306}[type]
        endpoint = f"{type}://shop-db.{namespace}.svc:{port}"
        laptop.wait(
            "appstack/shop", f"jsonpath={{.status.endpoints.database}}={endpoint}", namespace
        )
        laptop.wait("appstack/shop", "condition=Ready", namespace)
        labelled = ("pvc", "-l", f"app.kubernetes.io/name={type}", "-n", namespace)
        items = json.loads(laptop.kubectl("get", *labelled, "-o=json"))["items"]
        return {each["metadata"]["name"]: each["metadata"]["uid"] for each in items}

    stack = {
        "apiVersion": "app.example.com/v1",
        "kind": "AppStack",
        "metadata": {"name": "shop"},
        "spec": {},
    }
    laptop.kubectl("apply", "-n", namespace, "-f-", input=stack)
    first = become("postgresql")
    assert sorted(first) == ["data-shop-db-0", "shop-db-backup"]
    database(None)
    assert sorted(become("mysql")) == ["mysql-shop-db-0", "shop-db-mysql-backup"]
    database(None)
    assert become("postgresql") == first
    secrets = laptop.kubectl("get", "secrets", "-n", namespace, "-o=name").split()
    assert secrets == [
        f"secret/shop-db-{suffix}" for suffix in ("credentials", "mysql-credentials", "user-app")
    ]


def test_standbys_restart_before_the_primary(laptop: Laptop, namespace: str) -> None:
    """The synchronous standby is the last of them, and the primary restarts only with one."""

    def kubectl(*args: str) -> str:
        return laptop.kubectl("-n", namespace, *args)

    spec = {"version": "16", "storage": "1Gi", "replicas": 3}
    about = {"name": "shop", "namespace": namespace}
    laptop.kubectl("apply", "-f-", input={**SHOP, "metadata": about, "spec": spec})
    kubectl("wait", "--for=condition=Ready", "postgresql/shop", "--timeout=90s")
    primary = kubectl("get", "postgresql/shop", "-o=jsonpath={.status.primary}")
    *others, last = (name for name in ("shop-0", "shop-1", "shop-2") if name != primary)
    line = '{range .items[*]}{.metadata.name} {.metadata.uid}{"\\n"}{end}'
    listed = ("get", "pods", "-l", "app.kubernetes.io/component=database", f"-o=jsonpath={line}")
    uids = lambda: dict(each.split() for each in kubectl(*listed).splitlines())  # noqa: E731
    before = uids()
    kubectl("rollout", "restart", "statefulset/shop")
    changed = lambda: {name for name, uid in uids().items() if uid != before[name]}  # noqa: E731
    until(lambda: changed() == {*others, last})
    synchronous = (f"leader={primary}", f"sync_standby={last}")
    kubectl("annotate", "endpoints/shop-sync", *synchronous)
    until(lambda: changed() == set(before))
    kubectl("wait", "--for=condition=Ready", "postgresql/shop", "--timeout=90s")
