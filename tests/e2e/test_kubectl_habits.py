"""What people do to children with kubectl, on a real API server with a hollow kubelet."""

import json

import pytest

from tests.e2e.conftest import Laptop
from tests.e2e.test_recovery import named
from tests.waiting import until

pytestmark = pytest.mark.controlplane("kube-controller-manager", "kube-scheduler", "hollow-kubelet")

RESTARTED = "{.spec.template.metadata.annotations.kubectl\\.kubernetes\\.io/restartedAt}"
IMAGE = "{.spec.template.spec.containers[0].image}"
ENV = "{.spec.template.spec.containers[0].env}"
FIRST, SECOND = "registry.company.com/shop:v1", "registry.company.com/shop:v2"


def read(laptop: Laptop, namespace: str, what: str, path: str) -> str:
    """Return a field of an object."""
    return laptop.kubectl("get", what, "-n", namespace, f"-o=jsonpath={path}")


def test_a_restart_stays_and_an_undone_rollout_is_restored(laptop: Laptop, namespace: str) -> None:
    """`rollout restart` changes nothing that the controller owns; `rollout undo` does, and an event names kubectl."""
    webapp = named("example.com/v1", "WebApp", "shop", replicas=1, image=FIRST)
    laptop.kubectl("apply", "-n", namespace, "-f-", input=webapp)
    laptop.wait("webapp/shop", "condition=Ready", namespace)
    laptop.kubectl("rollout", "restart", "deployment/shop", "-n", namespace)
    restarted = read(laptop, namespace, "deployment/shop", RESTARTED)
    image = json.dumps({"spec": {"image": SECOND}})
    laptop.kubectl("patch", "webapp/shop", "--type=merge", "-p", image, "-n", namespace)
    laptop.wait("deployment/shop", f"jsonpath={IMAGE}={SECOND}", namespace)
    laptop.wait("webapp/shop", "condition=Ready", namespace)
    assert read(laptop, namespace, "deployment/shop", RESTARTED) == restarted != ""
    # To the image of the first template, which the restart did not change.
    laptop.kubectl("rollout", "undo", "deployment/shop", "-n", namespace)
    laptop.wait("deployment/shop", "jsonpath={.metadata.generation}=5", namespace)
    assert read(laptop, namespace, "deployment/shop", IMAGE) == SECOND
    laptop.wait("webapp/shop", "condition=Ready", namespace)
    restored = (
        "Restored Deployment shop: spec.template.spec.containers[0].image, changed by kubectl"
    )
    about = "--field-selector=involvedObject.kind=WebApp,reason=Restored"
    events = ("get", "events", "-n", namespace, about, "-o=jsonpath={.items[*].message}")
    assert until(lambda: laptop.kubectl(*events)) == restored


def test_the_order_of_variables_is_that_of_the_spec(laptop: Laptop, namespace: str) -> None:
    """A variable may use earlier ones: order, literals and references follow the spec, with a write each time."""
    literals = [
        {"name": "FULL", "value": "$(HOST):80"},
        {"name": "HOST", "value": "shop.example.com"},
        {"name": "TOKEN", "value": "plain"},
    ]
    token = {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "token", "key": "value"}}}
    for generation, env in enumerate(
        (literals, [literals[1], literals[0], token], literals), start=1
    ):
        backend = {"image": FIRST, "env": env}
        stack = named("app.example.com/v1", "AppStack", "shop", backend=backend)
        laptop.kubectl("apply", "-n", namespace, "-f-", input=stack)
        laptop.wait("deployment/shop-backend", "create", namespace)
        path = f"jsonpath={{.metadata.generation}}={generation}"
        laptop.wait("deployment/shop-backend", path, namespace)
        assert json.loads(read(laptop, namespace, "deployment/shop-backend", ENV)) == env


def test_children_deleted_by_hand_come_back_and_owners_take_them_along(
    laptop: Laptop, namespace: str
) -> None:
    """A StatefulSet deleted as an orphan adopts its pods again; foreground deletion of its owner ends, with the claims."""
    database = named(
        "database.example.com/v1", "PostgreSQL", "pg", storage="1Gi", deletionPolicy="Delete"
    )
    laptop.kubectl("apply", "-n", namespace, "-f-", input=database)
    laptop.wait("postgresql/pg", "condition=Ready", namespace)
    pod = read(laptop, namespace, "pod/pg-0", "{.metadata.uid}")
    old = read(laptop, namespace, "statefulset/pg", "{.metadata.uid}")
    laptop.kubectl("delete", "statefulset/pg", "--cascade=orphan", "-n", namespace)
    laptop.wait("statefulset/pg", "create", namespace)
    laptop.wait("statefulset/pg", "jsonpath={.status.readyReplicas}=1", namespace)
    new = read(laptop, namespace, "statefulset/pg", "{.metadata.uid}")
    owner = "jsonpath={.metadata.ownerReferences[0].uid}"
    laptop.wait("pod/pg-0", f"{owner}={new}", namespace)
    assert (read(laptop, namespace, "pod/pg-0", "{.metadata.uid}"), new != old) == (pod, True)
    laptop.wait("postgresql/pg", "condition=Ready", namespace)
    laptop.kubectl(
        "delete", "postgresql/pg", "--cascade=foreground", "-n", namespace, "--timeout=90s"
    )
    for child in ("statefulset/pg", "service/pg", "pvc/data-pg-0"):
        laptop.wait(child, "delete", namespace)


def test_a_config_map_that_somebody_made_immutable(laptop: Laptop, namespace: str) -> None:
    """The condition quotes the API server; once it is deleted, it is created with the new data."""
    for value in ("1", "2"):
        config = named("config.example.com/v1", "AppConfig", "shop", application="shop")
        config["spec"]["config"] = {"A": value}
        laptop.kubectl("apply", "-n", namespace, "-f-", input=config)
        if value == "1":
            laptop.wait("appconfig/shop", "condition=Ready", namespace)
            immutable = ("configmap/shop-config", "--type=merge", "-p", '{"immutable":true}')
            laptop.kubectl("patch", *immutable, "-n", namespace)
    reason = '{.status.conditions[?(@.type=="Ready")].reason}'
    laptop.wait("appconfig/shop", f"jsonpath={reason}=Invalid", namespace)
    message = '{.status.conditions[?(@.type=="Ready")].message}'
    assert "immutable" in read(laptop, namespace, "appconfig/shop", message)
    laptop.kubectl("delete", "configmap/shop-config", "-n", namespace)
    laptop.wait("appconfig/shop", "condition=Ready", namespace)
    assert read(laptop, namespace, "configmap/shop-config", "{.data.A}") == "2"
