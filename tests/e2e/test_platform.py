"""A platform with kubectl: every component in order, and no leftovers."""

import json

import pytest

from tests.controlplane.audit import WRITES
from tests.e2e.conftest import CONFIG, Laptop

pytestmark = pytest.mark.controlplane("kube-controller-manager", "kube-scheduler", "hollow-kubelet")

NAMESPACE = "ecommerce-prod"
STORE = "ecommerceplatform/production-store"
OURS = "platform=production-store"
MADE = "all,ingresses,poddisruptionbudgets,configmaps,secrets"


def shown(laptop: Laptop) -> list[str]:
    """Return what `kubectl get all` shows of the platform, without pods and ReplicaSets."""
    names = laptop.kubectl("get", "all", "-l", OURS, "-n", NAMESPACE, "-o=name").splitlines()
    return [
        word for word in names if not word.startswith(("pod/", "replicaset.apps/", "job.batch/"))
    ]


def looked_at(laptop: Laptop) -> int:
    """Return how often the platform was reconciled."""
    fields = ("Reconciliation completed", "production-store")
    lines = (
        (record.get("message"), record.get("ecommerceplatform.name"))
        for record in laptop.gatewright.logged()
    )
    return sum(line == fields for line in lines)


def test_s5_a_platform_through_its_life(laptop: Laptop) -> None:
    """S5: production-store becomes ready, lists every component, is idle without changes, and is deleted completely."""

    def kubectl(*args: str) -> str:
        return laptop.kubectl("-n", NAMESPACE, *args)

    laptop.plane.create_namespace(NAMESPACE)
    kubectl("apply", "-f", str(CONFIG / "samples/production-store.yaml"))
    kubectl("wait", "--for=condition=Ready", STORE, "--timeout=60s")
    assert sorted(shown(laptop)) == [
        "cronjob.batch/production-store-db-backup",
        "deployment.apps/production-store-backend",
        "deployment.apps/production-store-cache",
        "deployment.apps/production-store-frontend",
        "postgresql.database.example.com/production-store-db",
        "service/production-store-backend",
        "service/production-store-cache",
        "service/production-store-db",
        "service/production-store-db-config",
        "service/production-store-db-failover",
        "service/production-store-db-headless",
        "service/production-store-db-read",
        "service/production-store-db-sync",
        "service/production-store-frontend",
        "statefulset.apps/production-store-db",
    ]
    pods = json.loads(kubectl("get", "pods", "-l", OURS, "-o=json"))["items"]
    running = [each["metadata"]["name"] for each in pods if each["status"]["phase"] == "Running"]
    assert len(running) == 3 + 1 + 3 + 5
    everything = f"{MADE},persistentvolumeclaims,networkpolicies"
    strangers = kubectl(
        "get", everything, "-l", f"!platform,{OURS.replace('=', '!=')}", "-o=name"
    ).splitlines()
    assert sorted(strangers) == [
        "configmap/kube-root-ca.crt",
        STORE.replace("/", ".platform.example.com/"),
    ]
    stored = laptop.get(STORE, NAMESPACE)["status"]
    assert (stored["phase"], stored["endpoints"]["ingress"]) == (
        "Running",
        "http://shop.example.com/",
    )
    conditions = {each["type"]: each["status"] for each in stored["conditions"]}
    assert conditions.pop("BackedUp") == "False"  # none yet
    assert conditions == dict.fromkeys(
        [
            f"{component}Ready"
            for component in (
                "Database",
                "Cache",
                "Backend",
                "Frontend",
                "Monitoring",
                "Ingress",
                "",
            )
        ],
        "True",
    )
    head, row = kubectl("get", "ecp").splitlines()
    assert head.split() == [
        "NAME",
        "ENVIRONMENT",
        "PHASE",
        "DATABASE",
        "BACKEND",
        "FRONTEND",
        "HOST",
        "AGE",
    ]
    assert row.split()[:7] == [
        "production-store",
        "production",
        "Running",
        "True",
        "True",
        "True",
        "shop.example.com",
    ]

    mark, times = laptop.plane.audit_mark(), looked_at(laptop)
    kubectl("annotate", STORE, "looked=at")
    laptop.gatewright.until("reconciled", lambda: looked_at(laptop) > times)
    written = laptop.plane.audit_events(mark, verb=WRITES, namespace=NAMESPACE)
    assert [
        audited["requestURI"]
        for audited in written
        if not audited["userAgent"].startswith("kubectl") and "/events" not in audited["requestURI"]
    ] == []

    kubectl("delete", STORE, "--timeout=90s")
    kept = [
        *(f"persistentvolumeclaim/data-production-store-db-{ordinal}" for ordinal in range(3)),
        "persistentvolumeclaim/production-store-db-backup",
        # Patroni's state is kept with the volumes.
        *(f"service/production-store-db-{each}" for each in ("config", "failover", "sync")),
    ]
    list_left = ("get", f"{MADE},persistentvolumeclaims", "-l", OURS, "-o=name")
    laptop.gatewright.until(
        "only data is left", lambda: sorted(kubectl(*list_left).splitlines()) == kept
    )
    laptop.plane.delete_namespace(NAMESPACE)


def test_what_no_stack_can_have_is_refused(laptop: Laptop, namespace: str) -> None:
    """A queue of an unknown type, a version without quotes, two services of a name, a Secret of another namespace."""
    service = {"name": "mail", "image": "registry.company.com/mail:1"}
    elsewhere = {"secretKeyRef": {"name": "login", "namespace": "other", "key": "password"}}
    specs = {
        "queue": {"queue": {"type": "kafka"}},
        "version": {"queue": {"version": 4.2}},
        "names": {"services": [service, service]},
        "secret": {"services": [service | {"env": [{"name": "A", "valueFrom": elsewhere}]}]},
    }
    stacks = [
        {
            "apiVersion": "app.example.com/v1",
            "kind": "AppStack",
            "metadata": {"name": name},
            "spec": spec,
        }
        for name, spec in specs.items()
    ]
    refused = {
        stack["metadata"]["name"]: laptop.refusal("create", "-n", namespace, "-f-", input=stack)
        for stack in stacks
    }
    assert 'spec.queue.type: Unsupported value: "kafka": supported values: ' in refused["queue"]
    assert refused["version"].splitlines() == [
        'The AppStack "version" is invalid: spec.queue.version: Invalid value: "number": spec.queue.version in body '
        'must be of type integer,string: "number"'
    ]
    assert 'spec.services[1]: Duplicate value: {"name":"mail"}' in refused["names"]
    unknown = refused["secret"].partition("unknown field ")[2]
    assert unknown.split()[0].strip('"').endswith("namespace")
    assert laptop.kubectl("get", "appstacks", "-n", namespace, "-o=name") == ""


def test_a_failing_component_does_not_stop_others(laptop: Laptop, namespace: str) -> None:
    """A stack reports the backend that is not ready; the cache is still corrected; after a fix, the rest follows."""

    def kubectl(*args: str) -> str:
        return laptop.kubectl("-n", namespace, *args)

    images = {
        name: {"image": f"registry.company.com/{name}:v1"} for name in ("backend", "frontend")
    }
    images["backend"]["image"] = "registry.company.com/backend:never-ready"
    stack = {"apiVersion": "app.example.com/v1", "kind": "AppStack", "metadata": {"name": "shop"}}
    laptop.kubectl(
        "apply", "-n", namespace, "-f-", input={**stack, "spec": {"cache": {}, **images}}
    )
    waiting = '{.status.conditions[?(@.type=="BackendReady")].message}=0 of 1 replicas are ready'
    laptop.wait("appstack/shop", f"jsonpath={waiting}", namespace)
    kubectl("delete", "service", "shop-cache")
    laptop.wait("service/shop-cache", "create", namespace)
    assert kubectl("get", "deployments", "-o=name").splitlines() == [
        "deployment.apps/shop-backend",
        "deployment.apps/shop-cache",
    ]
    good = {"spec": {"backend": {"image": "registry.company.com/backend:v1"}}}
    kubectl("patch", "appstack", "shop", "--type=merge", f"--patch={json.dumps(good)}")
    laptop.wait("appstack/shop", "condition=Ready", namespace)
    kubectl("patch", "appstack", "shop", "--type=merge", '--patch={"spec":{"cache":null}}')
    laptop.wait("deployment/shop-cache", "delete", namespace)


def test_a_queue_comes_before_those_that_use_it(laptop: Laptop, namespace: str) -> None:
    """The sample's queue, services and autoscaler; a removed queue leaves its volume and password."""

    def kubectl(*args: str) -> str:
        return laptop.kubectl("-n", namespace, *args)

    kubectl("apply", "-f", str(CONFIG / "samples/order-stack.yaml"))
    laptop.wait("appstack/order-stack", "condition=Ready", namespace)
    conditions = '{range .status.conditions[?(@.status=="True")]}{.type} {end}'
    ready = kubectl("get", "appstack/order-stack", f"-o=jsonpath={conditions}").split()
    assert {"QueueReady", "OrdersReady", "OrderMailReady"} < set(ready)
    wide = kubectl("get", "appstack/order-stack", "-o=wide").splitlines()[0].split()
    assert "QUEUE" in wide
    gone = '--patch={"spec":{"queue":null,"services":null}}'
    kubectl("patch", "appstack/order-stack", "--type=merge", gone)
    laptop.wait("statefulset/order-stack-queue", "delete", namespace)
    left = kubectl("get", "pvc,secrets", "-o=name").split()
    assert "persistentvolumeclaim/rabbitmq-order-stack-queue-0" in left
    assert "secret/order-stack-queue-rabbitmq-credentials" in left
    nats = '--patch={"spec":{"queue":{"type":"nats"}}}'
    kubectl("patch", "appstack/order-stack", "--type=merge", nats)
    laptop.wait("appstack/order-stack", "condition=Ready", namespace)
    other = '--patch={"spec":{"queue":{"type":"kafka"}}}'
    said = laptop.refusal("-n", namespace, "patch", "appstack/order-stack", "--type=merge", other)
    assert "spec.queue.type" in said
