"""Children inherit users' labels, and their changes, on a real API server."""

import json

import pytest
import yaml

from kube.resource import JsonObject
from tests.e2e import manifests
from tests.e2e.conftest import CONFIG, Laptop

pytestmark = pytest.mark.controlplane("kube-controller-manager")

SELECTED = "deployments,services,statefulsets,configmaps,cronjobs,secrets,pvc"
MADE = (
    "deployment/shop",
    "service/shop",
    "configmap/vote-config",
    "statefulset/test-db",
    "statefulset/production-store-db",
    "cronjob/production-store-db-backup",
    "pvc/mysql-production-store-db-0",
    "pvc/production-store-db-mysql-backup",
    "pvc/data-test-db-0",
)
KEPT = "Secret"  # created once, and never changed
ADDED_TO = "PersistentVolumeClaim"  # users' data: no label is removed
# Services of Patroni's state: created once, and kept.
STATE = {f"test-db-{each}" for each in ("config", "failover", "sync")}


def labelled(object: JsonObject, **labels: str) -> JsonObject:
    """Return an object with labels and no namespace."""
    return {**object, "metadata": {"name": object["metadata"]["name"], "labels": labels}}


def objects(**labels: str) -> list[JsonObject]:
    """Return objects whose children are a StatefulSet, a Deployment, a CronJob and a ConfigMap."""
    store = yaml.safe_load((CONFIG / "samples/production-store.yaml").read_text())
    mysql = {
        **store,
        "spec": {**store["spec"], "database": {"type": "mysql", "backup": {"enabled": True}}},
    }
    database = yaml.safe_load((CONFIG / "samples/test-db.yaml").read_text())
    poll = {"poll": {"question": "Which?"}, "options": [{"id": "a"}]}
    vote = {
        "apiVersion": "voting.schoolofdevops.com/v1",
        "kind": "VoteConfig",
        "metadata": {"name": "vote"},
    }
    found = [mysql, database, {**vote, "spec": poll}, manifests.webapp("shop")]
    return [labelled(each, **labels) for each in found]


def made_of_them(laptop: Laptop, namespace: str) -> list[JsonObject]:
    """Return the children of the objects, except for Patroni's state."""
    found = json.loads(laptop.kubectl("get", SELECTED, "-n", namespace, "-o=json"))["items"]
    about = [each["metadata"] for each in found]
    assert {each["labels"]["team"] for each in about if each["name"] in STATE} == {"red"}
    return [
        object
        for object in found
        if object["metadata"].get("labels") and object["metadata"]["name"] not in STATE
    ]


def test_children_inherit_label_changes(laptop: Laptop, namespace: str) -> None:
    """All children get the label, except create-only ones; immutable fields do not block it.

    A removed label is removed from all children except volume claims, which only get labels added.
    """
    for team in ("red", "blue"):
        made = objects(team=team)
        laptop.kubectl(
            "apply",
            "-n",
            namespace,
            "-f-",
            input={"apiVersion": "v1", "kind": "List", "items": made},
        )
        for what in MADE if team == "red" else ():
            laptop.wait(what, "create", namespace)
        label = f"--for=jsonpath={{.metadata.labels.team}}={team}"
        laptop.kubectl("wait", *MADE, label, "-n", namespace, "--timeout=90s")
    found = made_of_them(laptop, namespace)
    teams = {(each["kind"], each["metadata"]["labels"].get("team")) for each in found}
    assert {team for kind, team in teams if kind != KEPT} == {"blue"}
    assert {team for kind, team in teams if kind == KEPT} == {"red"}
    pods = [
        object["spec"]["template"]["metadata"]["labels"]
        for object in found
        if object["kind"] in ("Deployment", "StatefulSet")
    ]
    assert {each["team"] for each in pods} == {"blue"}

    laptop.kubectl(
        "apply",
        "-n",
        namespace,
        "-f-",
        input={"apiVersion": "v1", "kind": "List", "items": objects()},
    )

    def still_labelled() -> set[str]:
        return {
            object["kind"]
            for object in made_of_them(laptop, namespace)
            if "team" in object["metadata"]["labels"]
        }

    laptop.gatewright.until("taken off", lambda: still_labelled() == {KEPT, ADDED_TO})
    events = json.loads(laptop.kubectl("get", "events", "-n", namespace, "-o=json"))["items"]
    assert [
        event["message"] for event in events if event["reason"] in ("ReconcileFailed", "Contested")
    ] == []
