"""Custom resources whose pods work: they answer HTTP, and read their configuration."""

from collections.abc import Iterator

import pytest

from tests.node.installation import Installation

pytestmark = [pytest.mark.node, pytest.mark.long]

WEB = "nginxinc/nginx-unprivileged:1.29"
GROUPS = {"EcommercePlatform": "platform.example.com", "AppStack": "app.example.com"}
NEITHER = {"EcommercePlatform": {"cache": {"enabled": False}, "monitoring": {"enabled": False}}}
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


@pytest.mark.parametrize("kind", ["EcommercePlatform", "AppStack"])
def test_the_tiers_of_a_whole_run(shop: Installation, kind: str) -> None:
    """Its database and its tiers run, and frontend and backend answer through their Services."""
    tier = {"replicas": 1, "image": WEB, "resources": SMALL}
    spec = {
        "environment": "staging",
        "frontend": tier,
        "backend": tier,
        "database": {"type": "postgresql", "version": "17", "storage": "1Gi"},
        **NEITHER.get(kind, {}),
    }
    name = kind.lower()
    shop.node.apply([custom_resource(kind, GROUPS[kind], name, **spec)])
    wait = ("wait", f"{name}/{name}", "--for=condition=Ready", "-n", "shop")
    shop.plane.kubectl(*wait, "--timeout=150s", timeout=160)
    for service in (f"{name}-frontend", f"{name}-backend"):
        shop.until("it answers", lambda of=service: answer(shop, of, 8080) == "It works.\n")
