"""Custom resources whose pods work: they answer HTTP, and read their configuration."""

import json
import time
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.databases.binaries import nats_client
from tests.node.conftest import Figures
from tests.node.images import stores
from tests.node.installation import Installation
from tests.node.metrics import serving_metrics
from tests.node.slots import NodeError

pytestmark = [pytest.mark.node, pytest.mark.long]

WEB = "nginxinc/nginx-unprivileged:1.29"
SAMPLES = Path(__file__).parents[2] / "config/samples"
SMALL = {"requests": {"cpu": "20m", "memory": "32Mi"}, "limits": {"cpu": "1", "memory": "128Mi"}}


@pytest.fixture
def shop(installed: Installation) -> Iterator[Installation]:
    """The namespace `shop`; each test uses its own names there, and cleans up."""
    installed.namespace("shop")
    yield installed
    kinds = "webapps,appconfigs,ecommerceplatforms,appstacks,deployments"
    installed.cluster.kubectl("delete", kinds, "--all", "-n", "shop", "--wait=false")


def answer(installation: Installation, service: str, port: int, path: str = "") -> str:
    """Return the response of a Service, or "" while it does not answer."""
    proxy = f"/api/v1/namespaces/shop/services/{service}:{port}/proxy/{path}"
    code, body = installation.cluster.api.request("GET", proxy)
    return body.decode() if code == 200 else ""


def custom_resource(kind: str, group: str, name: str, **spec: object) -> dict:
    """Return an object in the namespace `shop`."""
    metadata = {"name": name, "namespace": "shop"}
    return {"apiVersion": f"{group}/v1", "kind": kind, "metadata": metadata, "spec": spec}


def test_a_web_app_answers_through_its_service(shop: Installation) -> None:
    """It runs with the desired replicas, and answers HTTP."""
    spec = {"replicas": 3, "image": WEB, "resources": SMALL}
    shop.node.apply([custom_resource("WebApp", "example.com", "web", **spec)])
    shop.cluster.wait("webapp/web", "jsonpath={.status.phase}=Running", "shop")
    shop.until("it answers", lambda: answer(shop, "web", 8080) == "It works.\n")


def test_an_app_config_reaches_the_file_in_the_pod(shop: Installation) -> None:
    """A pod that mounts the ConfigMap reads the new settings soon after they change."""
    config = custom_resource(
        "AppConfig",
        "config.example.com",
        "shop",
        application="shop",
        environment="staging",
        config={"GREETING": "hello"},
    )
    volume = {"name": "config", "configMap": {"name": "shop-config"}}
    container = {
        "name": "web",
        "image": WEB,
        "volumeMounts": [{"name": "config", "mountPath": "/srv/www"}],
    }
    labels = {"app": "reader"}
    reader = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "reader", "namespace": "shop"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [container], "volumes": [volume]},
            },
        },
    }
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "reader", "namespace": "shop"},
        "spec": {"selector": labels, "ports": [{"port": 8080}]},
    }
    shop.node.apply([config, reader, service])
    shop.until("it is read", lambda: answer(shop, "reader", 8080, "GREETING") == "hello")
    config["spec"]["config"]["GREETING"] = "good morning"
    shop.node.apply([config])
    changed = lambda: answer(shop, "reader", 8080, "GREETING") == "good morning"  # noqa: E731
    shop.until("the change is read", changed)


def platform(name: str) -> dict:
    """Return a platform of the documents, small enough for two cores, with a queue and services."""
    object = yaml.safe_load((SAMPLES / f"{name}.yaml").read_text())
    object["metadata"]["namespace"] = "shop"
    spec = object["spec"]
    for tier in (spec["frontend"], spec["backend"]):
        tier["resources"] = SMALL
    database = {"version": "17", "resources": SMALL | {"limits": {"cpu": "1", "memory": "512Mi"}}}
    spec["database"] |= database  # of the versions, the node has an image of this one
    mail = {"name": "order-mail", "image": WEB, "replicas": 1, "dependsOn": ["orders"]}
    orders = {
        "name": "orders",
        "image": WEB,
        "dependsOn": ["database", "queue"],
        "autoscaling": {"min": 1, "max": 3, "targetCPU": 80},
    }
    spec["monitoring"] = {"enabled": False}  # the node has no image of the exporter
    spec["cache"] = {"resources": SMALL}
    spec["queue"] = {"type": "nats", "resources": SMALL}
    spec["services"] = [each | {"resources": SMALL} for each in (orders, mail)]
    return object


def test_the_platforms_of_the_documents_run(shop: Installation, figure: Figures) -> None:
    """With a queue, services in order, a Secret that comes late, and an autoscaler that is not fought."""
    for image in stores():
        shop.node.have(image)
    for tier in ("frontend", "backend"):
        tag = ("images", "tag", "--force", f"docker.io/{WEB}")
        name = f"registry.company.com/{tier}:v2.1.0"
        shop.node.machine.run("ctr", "--namespace", "k8s.io", *tag, name)
    store, staging = platform("production-store"), platform("staging-platform")
    login = {"secretKeyRef": {"name": "mail-login", "key": "password"}}
    store["spec"]["services"][1]["env"] = [{"name": "PASSWORD", "valueFrom": login}]
    with serving_metrics(shop.node):
        began = time.monotonic()
        shop.node.apply([store, staging])
        shop.until("a service waits", lambda: told(shop, "OrdersReady").startswith("waiting for "))
        shop.until("and the next", lambda: told(shop, "OrderMailReady") == "waiting for orders")
        is_named = lambda: 'secret "mail-login" not found' in told(shop, "OrderMailReady")  # noqa: E731
        shop.until("the missing Secret is named", is_named, within=300)
        secret = ("secret", "generic", "mail-login", "--from-literal=password=1")
        shop.cluster.kubectl("create", *secret, "-n", "shop")
        for name in ("production-store", "staging-platform"):
            wait = ("wait", f"ecp/{name}", "--for=condition=Ready", "-n", "shop")
            shop.plane.kubectl(*wait, "--timeout=300s", timeout=310)
        figure(f"two platforms ready after {time.monotonic() - began:.0f} s")
        for service in ("frontend", "backend", "orders", "order-mail"):
            name = f"production-store-{service}"
            shop.until("it answers", lambda of=name: answer(shop, of, 8080) == "It works.\n")
        message_survives(shop, "production-store-queue")
        scales(shop, "production-store-orders", figure)
    shop.cluster.kubectl("delete", "secret", "mail-login", "-n", "shop")


def told(shop: Installation, condition: str) -> str:
    """Return the message of a condition of production-store; "" where it is not there yet."""
    status = shop.cluster.get("ecp/production-store", "shop").get("status", {})
    conditions = {each["type"]: each["message"] for each in status.get("conditions", ())}
    return conditions.get(condition, "")


def message_survives(shop: Installation, queue: str) -> None:
    """Check that a message that the queue acknowledged is there after its pod was killed."""
    address = shop.cluster.get(f"service/{queue}", "shop")["spec"]["clusterIP"]
    data = shop.cluster.get(f"secret/{queue}-nats-credentials", "shop")["data"]
    url = f"nats://app:{b64decode(data['password']).decode()}@{address}:4222"

    def client(*arguments: str) -> str:
        return shop.node.machine.run("env", f"NATS_URL={url}", nats_client(), *arguments).strip()

    client("publish", "an order")
    before = shop.cluster.get(f"pod/{queue}-0", "shop")
    shop.kill(before)
    shop.cluster.kubectl("delete", f"pod/{queue}-0", "-n", "shop", "--grace-period=0", "--force")

    def is_back() -> bool:
        found = shop.plane.resources.find("pods", "shop")
        pods = [each for each in found if each["metadata"]["name"] == f"{queue}-0"]
        return any(
            pod["metadata"]["uid"] != before["metadata"]["uid"] and is_ready(pod) for pod in pods
        )

    def received() -> str:
        try:
            return client("receive")
        except NodeError:  # the Service has no address of the new pod yet
            return ""

    shop.until("another pod of the queue is ready", is_back)
    shop.until("the message is there", lambda: received() == "an order")


def is_ready(pod: dict) -> bool:
    """Whether a pod has the condition Ready."""
    conditions = pod["status"].get("conditions", ())
    return any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)


def scales(shop: Installation, name: str, figure: Figures) -> None:
    """Check that load makes three pods of one, and that another change of the service keeps them."""
    kubectl = shop.cluster.kubectl
    deployment = lambda: shop.cluster.get(f"deployment/{name}", "shop")["spec"]  # noqa: E731
    assert deployment()["replicas"] == 1
    burn = "timeout 300 sh -c 'while :; do :; done' >/dev/null 2>&1 &"
    kubectl("exec", f"deployment/{name}", "-n", "shop", "--", "sh", "-c", burn)
    figure(
        f"three pods {shop.until('it scales', lambda: deployment()['replicas'] == 3, 240):.0f} s after the load began"
    )
    active = '{.status.conditions[?(@.type=="OrdersAutoscaled")].status}'
    shop.cluster.wait("ecp/production-store", f"jsonpath={active}=True", "shop")
    level = {"name": "LOG_LEVEL", "value": "debug"}
    change = [{"op": "add", "path": "/spec/services/0/env", "value": [level]}]
    kubectl(
        "patch", "ecp/production-store", "-n", "shop", "--type=json", f"-p={json.dumps(change)}"
    )
    shop.until("the change is there", lambda: level in variables(deployment()))
    assert deployment()["replicas"] == 3


def variables(deployment: dict) -> list[dict]:
    """Return the environment of a Deployment's container."""
    return deployment["template"]["spec"]["containers"][0]["env"]
