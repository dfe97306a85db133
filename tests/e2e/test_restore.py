"""A namespace is deleted and restored as Velero does it: children first, without uids, owners and status."""

import json
from typing import Any

import pytest
import yaml

from tests.e2e.conftest import CONFIG, Cluster, Laptop

pytestmark = pytest.mark.controlplane("kube-controller-manager", "kube-scheduler", "hollow-kubelet")

Object = dict[str, Any]

# Velero's default order of priorities, then the rest by name. https://velero.io/docs/main/restore-reference/
ORDER = (
    "persistentvolumeclaims",
    "secrets",
    "configmaps",
    "serviceaccounts",
    "pods",
    "replicasets.apps",
    "appconfigs.config.example.com",
    "appstacks.app.example.com",
    "backups.backup.example.com",
    "cronjobs.batch",
    "deployments.apps",
    "endpoints",
    "jobs.batch",
    "poddisruptionbudgets.policy",
    "postgresqls.database.example.com",
    "rolebindings.rbac.authorization.k8s.io",
    "roles.rbac.authorization.k8s.io",
    "services",
    "statefulsets.apps",
    "voteconfigs.voting.schoolofdevops.com",
    "webapps.example.com",
)
NEW_IN_A_CLUSTER = (
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "generation",
    "managedFields",
    "ownerReferences",
    "finalizers",
)
PARENTS = "appconfig,appstack,backup,postgresql,voteconfig,webapp"
SHOP: Object = {
    "apiVersion": "database.example.com/v1",
    "kind": "PostgreSQL",
    "metadata": {"name": "shop"},
    "spec": {
        "storage": "1Gi",
        "replicas": 2,
        "users": [{"name": "app_user"}],
        "databases": [{"name": "shop", "owner": "app_user"}],
        "backup": {"enabled": True},
    },
}
STACK: Object = {
    "apiVersion": "app.example.com/v1",
    "kind": "AppStack",
    "metadata": {"name": "stack"},
    "spec": {
        "database": {"type": "mysql", "storage": "1Gi"},
        "backend": {"image": "registry.company.com/shop:v1", "replicas": 1},
    },
}
SAMPLES = ("my-webapp", "shop-config", "cats-vs-dogs", "nightly-backup")


def restored(object: Object, *, keep_volumes: bool) -> Object:
    """Return what a backup tool creates again of an object; a claim's volume is new by default."""
    metadata = {
        key: value for key, value in object["metadata"].items() if key not in NEW_IN_A_CLUSTER
    }
    again = {key: value for key, value in object.items() if key != "status"} | {
        "metadata": metadata
    }
    match object["kind"]:
        case "PersistentVolumeClaim":
            if not keep_volumes:
                again["spec"].pop("volumeName", None)
            notes = metadata.get("annotations", {})
            metadata["annotations"] = {k: v for k, v in notes.items() if "kubernetes.io" not in k}
        case "Service" if again["spec"].get("clusterIP") != "None":
            for field in ("clusterIP", "clusterIPs"):
                again["spec"].pop(field, None)
        case "Pod":
            again["spec"].pop("nodeName", None)
        case "Job":  # its selector is a uid
            again["spec"].pop("selector", None)
            labels = again["spec"]["template"]["metadata"].get("labels", {})
            for labeled in (metadata.get("labels", {}), labels):
                for label in [each for each in labeled if each.endswith(("controller-uid",))]:
                    del labeled[label]
    return again


def backed_up(cluster: Cluster, namespace: str) -> list[Object]:
    """Return all objects in the order of a restore."""
    found = json.loads(cluster.kubectl("get", ",".join(ORDER), "-n", namespace, "-o=json"))["items"]
    return [each for each in found if each["metadata"]["name"] != "kube-root-ca.crt"]


def listed(objects: list[Object]) -> Object:
    """Return a list of objects for kubectl."""
    return {"apiVersion": "v1", "kind": "List", "items": objects}


def restore(
    cluster: Cluster, namespace: str, objects: list[Object], *, keep_volumes: bool = False
) -> None:
    """Create objects again; like Velero, skip what the controller has created meanwhile."""
    again = listed([restored(each, keep_volumes=keep_volumes) for each in objects])
    done = cluster.plane.kubectl("create", "-n", namespace, "-f-", input=again, check=False)
    errors = [each for each in done.stderr.splitlines() if "Warning" not in each]
    assert [each for each in errors if "AlreadyExists" not in each] == []
    assert [each for each in errors if "secrets" in each or "persistentvolumeclaims" in each] == []


def contents(laptop: Laptop, namespace: str) -> dict[str, Any]:
    """Return the Secrets with their data, and the names of the claims."""
    secrets = json.loads(laptop.kubectl("get", "secrets", "-n", namespace, "-o=json"))["items"]
    claims = laptop.kubectl("get", "pvc", "-n", namespace, "-o=name").split()
    return {each["metadata"]["name"]: each["data"] for each in secrets} | {"claims": sorted(claims)}


def owned(laptop: Laptop, namespace: str) -> dict[str, str]:
    """Return the controlling owners of all children, without their uids."""
    kinds = "secrets,configmaps,services,deployments,statefulsets,cronjobs,poddisruptionbudgets"
    items = json.loads(laptop.kubectl("get", kinds, "-n", namespace, "-o=json"))["items"]
    return {
        f"{object['kind']}/{object['metadata']['name']}": f"{owner['kind']}/{owner['name']}"
        for object in items
        for owner in object["metadata"].get("ownerReferences", ())
    }


def wait_ready(laptop: Laptop, namespace: str) -> None:
    """Wait until every custom resource is Ready."""
    laptop.kubectl(
        "wait", PARENTS, "--all", "--for=condition=Ready", "-n", namespace, "--timeout=90s"
    )


def test_a_namespace_is_restored_from_a_backup(laptop: Laptop) -> None:
    """All objects become Ready again; passwords and claims are those of the backup."""
    namespace = laptop.create_namespace()
    samples = [
        document
        for name in SAMPLES
        for document in yaml.safe_load_all((CONFIG / f"samples/{name}.yaml").read_text())
    ]
    laptop.kubectl("apply", "-n", namespace, "-f-", input=listed([*samples, SHOP, STACK]))
    wait_ready(laptop, namespace)
    # As Patroni does: without a synchronous standby, a primary whose password changes never restarts.
    shop = ("postgresql/shop", "-n", namespace, "-o=jsonpath={.status.primary}")
    primary = laptop.kubectl("get", *shop)
    (standby,) = {"shop-0", "shop-1"} - {primary}
    synchronous = (f"leader={primary}", f"sync_standby={standby}")
    laptop.kubectl("annotate", "endpoints/shop-sync", "-n", namespace, *synchronous)
    backup, before = backed_up(laptop, namespace), contents(laptop, namespace)
    owners = owned(laptop, namespace)
    assert owners["Deployment/my-webapp"] == "WebApp/my-webapp"
    assert {"shop-credentials", "shop-user-app-user"} <= before.keys()
    laptop.kubectl("delete", "namespace", namespace, "--timeout=60s")
    laptop.kubectl("create", "namespace", namespace)
    restore(laptop, namespace, backup)
    wait_ready(laptop, namespace)
    assert contents(laptop, namespace) == before
    assert owned(laptop, namespace) == owners
    taken = ("get", "events", "-n", namespace, "--field-selector=reason=NameTaken", "-o=name")
    assert laptop.kubectl(*taken) == ""
