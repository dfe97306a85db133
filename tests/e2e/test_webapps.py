"""WebApps with kubectl: created, corrected, ignored, deleted."""

import json

import pytest

from tests.e2e import manifests
from tests.e2e.conftest import CONFIG, Laptop

pytestmark = pytest.mark.controlplane("kube-controller-manager", "kube-scheduler", "hollow-kubelet")


def test_s3_a_webapp_through_its_life(laptop: Laptop, namespace: str) -> None:
    """S3: `kubectl wait` works on its Deployment, which follows the spec and is deleted with it."""

    def kubectl(*args: str) -> str:
        return laptop.kubectl("-n", namespace, *args)

    kubectl("apply", "-f", str(CONFIG / "samples/test-webapp.yaml"))
    kubectl("wait", "--for=condition=Available", "deployment/test-webapp")
    assert kubectl("get", "service", "test-webapp", "-o=jsonpath={.spec.ports[0].port}") == "80"
    assert (
        kubectl("get", "deployment", "test-webapp", "-o=jsonpath={.status.availableReplicas}")
        == "2"
    )
    kubectl("patch", "webapp", "test-webapp", "--type=merge", '--patch={"spec":{"replicas":3}}')
    kubectl("wait", "--for=jsonpath={.spec.replicas}=3", "deployment/test-webapp")
    kubectl("delete", "webapp", "test-webapp")
    kubectl("wait", "--for=delete", "deployment/test-webapp")


def test_the_columns_show_the_state(laptop: Laptop, namespace: str) -> None:
    """`kubectl get` prints phase, desired and ready replicas and image; -o wide also the error."""
    laptop.kubectl(
        "create", "-n", namespace, "-f-", input=manifests.webapp(replicas=2, image="nginx:1.21")
    )
    laptop.running(namespace, "shop")
    head, row = map(str.split, laptop.kubectl("get", "webapps", "-n", namespace).splitlines())
    assert head == ["NAME", "PHASE", "DESIRED", "READY", "IMAGE", "AGE"]
    assert row[:5] == ["shop", "Running", "2", "2", "nginx:1.21"]
    wide = laptop.kubectl("get", "wa", "-n", namespace, "-o=wide").splitlines()[0]
    assert wide.split()[-1] == "MESSAGE"
    assert (
        "webapp.example.com/shop"
        in laptop.kubectl("get", "all", "-n", namespace, "-o=name").splitlines()
    )


def test_webapps_are_found_by_image(laptop: Laptop, namespace: str) -> None:
    """A field selector on spec.image finds the WebApps with an image."""
    for name, image in (("one", "nginx:1.21"), ("two", "nginx:1.29"), ("three", "nginx:1.21")):
        laptop.kubectl("create", "-n", namespace, "-f-", input=manifests.webapp(name, image=image))
    found = laptop.kubectl(
        "get", "webapps", "-n", namespace, "--field-selector=spec.image=nginx:1.21", "-o=name"
    )
    assert found.splitlines() == ["webapp.example.com/one", "webapp.example.com/three"]


def test_scale_works_as_an_autoscaler_uses_it(laptop: Laptop, namespace: str) -> None:
    """The scale subresource sets and reports the replicas, and selects the pods."""
    laptop.kubectl("create", "-n", namespace, "-f-", input=manifests.webapp())
    laptop.running(namespace, "shop")
    laptop.kubectl("scale", "webapp/shop", "--replicas=4", "-n", namespace)
    laptop.wait("webapp/shop", "jsonpath={.status.readyReplicas}=4", namespace)
    scale = json.loads(
        laptop.kubectl("get", "webapp/shop", "--subresource=scale", "-n", namespace, "-o=json")
    )
    assert (scale["spec"], scale["status"]) == (
        {"replicas": 4},
        {"replicas": 4, "selector": "app=shop"},
    )
    pods = laptop.kubectl(
        "get", "pods", "-n", namespace, "-l", scale["status"]["selector"], "-o=name"
    )
    assert len(pods.splitlines()) == 4


def test_a_manual_edit_is_reverted(laptop: Laptop, namespace: str) -> None:
    """A changed field of a child gets the WebApp's value."""
    laptop.kubectl("create", "-n", namespace, "-f-", input=manifests.webapp(replicas=2))
    laptop.running(namespace, "shop")
    laptop.kubectl("scale", "deployment/shop", "--replicas=5", "-n", namespace)
    laptop.wait("deployment/shop", "jsonpath={.spec.replicas}=2", namespace)
    laptop.kubectl("set", "image", "deployment/shop", "webapp=nginx:1.29", "-n", namespace)
    image = "{.spec.template.spec.containers[0].image}"
    laptop.wait("deployment/shop", f"jsonpath={image}={manifests.GOOD_IMAGE}", namespace)
    laptop.kubectl("set", "selector", "service/shop", "app=other", "-n", namespace)
    laptop.wait("service/shop", "jsonpath={.spec.selector.app}=shop", namespace)
    laptop.running(namespace, "shop")
    ports = {"spec": {"ports": [{"name": "http", "port": 9999}]}}
    laptop.kubectl(
        "patch", "service/shop", "--type=merge", "--patch", json.dumps(ports), "-n", namespace
    )
    laptop.wait("service/shop", "jsonpath={.spec.ports[*].port}=8080", namespace)
    containers = {
        "spec": {"template": {"spec": {"containers": [{"name": "theirs", "image": "nginx:1.29"}]}}}
    }
    laptop.kubectl(
        "patch",
        "deployment/shop",
        "--type=merge",
        "--patch",
        json.dumps(containers),
        "-n",
        namespace,
    )
    laptop.wait(
        "deployment/shop", "jsonpath={.spec.template.spec.containers[*].name}=webapp", namespace
    )
    laptop.running(namespace, "shop")


@pytest.mark.parametrize("child", ["deployment/shop", "service/shop"])
def test_a_deleted_child_is_recreated(laptop: Laptop, namespace: str, child: str) -> None:
    """The controller recreates it."""
    laptop.kubectl("create", "-n", namespace, "-f-", input=manifests.webapp())
    laptop.running(namespace, "shop")
    uid = laptop.get(child, namespace)["metadata"]["uid"]
    laptop.kubectl("delete", child, "-n", namespace)
    laptop.wait(child, "create", namespace)
    assert laptop.get(child, namespace)["metadata"]["uid"] != uid


def test_a_deleted_webapp_deletes_its_children(laptop: Laptop, namespace: str) -> None:
    """Deployment, Service and pods are deleted, and no finalizer blocks the WebApp."""
    laptop.kubectl("create", "-n", namespace, "-f-", input=manifests.webapp(replicas=2))
    laptop.running(namespace, "shop")
    laptop.kubectl("delete", "webapp/shop", "-n", namespace)
    laptop.kubectl(
        "wait", "deployment,service,pod", "-l", "app=shop", "--for=delete", "-n", namespace
    )
    assert laptop.kubectl("get", "all", "-n", namespace) == ""


def test_a_foreign_deployment_is_never_changed(laptop: Laptop, namespace: str) -> None:
    """A WebApp whose name is taken reports so by condition and event; it continues once the name is free."""
    laptop.kubectl("create", "-n", namespace, "-f-", input=manifests.deployment(image="theirs:1"))
    before = laptop.get("deployment/shop", namespace)
    laptop.kubectl("create", "-n", namespace, "-f-", input=manifests.webapp())
    laptop.wait("webapp/shop", "condition=Ready=False", namespace)
    laptop.wait("webapp/shop", "jsonpath={.status.phase}=Failed", namespace)
    conditions = laptop.get("webapp/shop", namespace)["status"]["conditions"]
    (ready,) = (each for each in conditions if each["type"] == "Ready")
    reason = (
        "failed to create deployment: Deployment shop exists and was not created by this WebApp; rename one of them, or "
        f"hand it over: kubectl annotate -n {namespace} deployments.apps shop gatewright.io/parent=WebApp.example.com/shop"
    )
    assert (ready["type"], ready["reason"], ready["message"]) == ("Ready", "NameTaken", reason)
    laptop.kubectl(
        "wait", "events", "--for=create", "--field-selector=reason=NameTaken", "-n", namespace
    )
    events = ("get", "events", "--field-selector=reason=NameTaken", "-n", namespace)
    assert (
        laptop.kubectl(*events, "-o=jsonpath={.items[*].type} {.items[*].message}")
        == f"Warning {reason}"
    )
    after = laptop.get("deployment/shop", namespace)
    assert after["spec"] == before["spec"]
    assert "ownerReferences" not in after["metadata"]
    laptop.kubectl("delete", "deployment/shop", "-n", namespace)
    laptop.running(namespace, "shop")
