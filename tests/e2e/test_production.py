"""Production from the user's view: denials with a fix, defaults, and idempotent applies."""

import json
from pathlib import Path
from typing import Any

import pytest

from kube.resource import JsonObject
from tests.e2e import manifests
from tests.e2e.conftest import Laptop

pytestmark = pytest.mark.controlplane("kube-controller-manager", "kube-scheduler", "hollow-kubelet")

REFUSED = 'admission webhook "validate.gatewright.io" denied the request: '
APPROVED = "images must come from approved registry registry.company.com. Push it there, or ask for an exception."
TOO_MANY = "production workloads cannot exceed 10 replicas. Set it to 10 or less."
NO_LIMITS = "cpu and memory missing; resource limits required in production. Set both."
TEMPLATE = "spec.template.spec.containers[name=app]"
IMAGE = f'image-registries: {TEMPLATE}.image: "nginx:1.21" comes from docker.io; {APPROVED}'
REPLICAS = f"replica-limits: spec.replicas: 11; {TOO_MANY}"
RESOURCES = f"resource-limits: {TEMPLATE}.resources.limits: {NO_LIMITS}"

BAD: JsonObject = {"replicas": 11, "image": "nginx:1.21", "resources": {}}


def denial(*lines: str) -> str:
    """Return the denial message with these violations."""
    count = "1 violation" if len(lines) == 1 else f"{len(lines)} violations"
    return REFUSED + "\n- ".join([count, *lines]) + "\n"


def forbidden(*lines: str) -> str:
    """Return kubectl's output for a denial of standard input."""
    return f'Error from server (Forbidden): error when creating "STDIN": {denial(*lines)}'


@pytest.fixture(params=["by its name", "by its label"])
def any_production(request: pytest.FixtureRequest) -> str:
    """Namespace production, and one with the label environment=production."""
    return (
        "production"
        if request.param == "by its name"
        else str(request.getfixturevalue("production"))
    )


def test_all_violations_are_reported_together(
    laptop: Laptop, any_production: str, tmp_path: Path
) -> None:
    """One denial has every field, value, rule and fix."""
    file = tmp_path / "shop.yaml"
    file.write_text(json.dumps(manifests.deployment(**BAD)))
    said = laptop.refusal("apply", "-n", any_production, "-f", str(file))
    assert said == (
        f'Error from server (Forbidden): error when creating "{file}": admission webhook "validate.gatewright.io" '
        "denied the request: 3 violations\n"
        '- image-registries: spec.template.spec.containers[name=app].image: "nginx:1.21" comes from docker.io; images '
        "must come from approved registry registry.company.com. Push it there, or ask for an exception.\n"
        "- replica-limits: spec.replicas: 11; production workloads cannot exceed 10 replicas. Set it to 10 or less.\n"
        "- resource-limits: spec.template.spec.containers[name=app].resources.limits: cpu and memory missing; resource "
        "limits required in production. Set both.\n"
    )


def test_a_good_deployment_is_admitted_unchanged(laptop: Laptop, production: str) -> None:
    """It has ten replicas, an approved image and limits."""
    manifest = manifests.deployment(replicas=10)
    assert (
        laptop.kubectl("apply", "-n", production, "-f-", input=manifest)
        == "deployment.apps/shop created\n"
    )
    assert laptop.get("deployment/shop", production)["metadata"].get("labels") is None
    laptop.wait("deployment/shop", "condition=Available", production)


def test_the_causes_reach_the_client(laptop: Laptop, production: str) -> None:
    """status.details.causes has each violation with policy, text and field."""
    path = f"/apis/apps/v1/namespaces/{production}/deployments"
    code, body = laptop.api.request("POST", path, manifests.deployment(**BAD))
    status = json.loads(body)
    assert (code, status["reason"]) == (403, "Forbidden")
    assert status["details"] == {
        "name": "shop",
        "group": "apps",
        "kind": "Deployment",
        "causes": [
            {"reason": policy, "message": message, "field": message.partition(": ")[0]}
            for policy, _, message in (
                line.partition(": ") for line in (IMAGE, REPLICAS, RESOURCES)
            )
        ],
    }


def test_a_good_webapp_gets_labels_and_security_defaults(laptop: Laptop, production: str) -> None:
    """The labels and the three security fields are set; fields that the user set are kept."""
    laptop.kubectl("create", "-n", production, "-f-", input=manifests.webapp())
    stored = laptop.get("webapp/shop", production)
    assert stored["metadata"]["labels"] == {"managed-by": "webapp-operator", "version": "v1"}
    assert stored["spec"] == {
        "replicas": 1,
        "image": "registry.company.com/shop:1.4",
        "port": 8080,
        "resources": {
            "requests": {"cpu": "100m", "memory": "128Mi"},
            "limits": {"cpu": "500m", "memory": "512Mi"},
        },
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 1000,
            "allowPrivilegeEscalation": False,
        },
    }
    laptop.running(production, "shop")


@pytest.mark.parametrize(
    "manifest", [manifests.webapp(), manifests.deployment()], ids=["WebApp", "Deployment"]
)
def test_a_second_apply_changes_nothing(
    laptop: Laptop, production: str, manifest: JsonObject
) -> None:
    """The second kubectl apply prints unchanged, and the resource version is the same."""
    what = f"{manifest['kind'].lower()}/shop"
    laptop.kubectl("apply", "-n", production, "-f-", input=manifest)
    ready = "condition=Ready" if manifest["kind"] == "WebApp" else "condition=Available"
    laptop.wait(what, ready, production)
    before = laptop.get(what, production)["metadata"]["resourceVersion"]
    assert laptop.kubectl("apply", "-n", production, "-f-", input=manifest).endswith(
        "/shop unchanged\n"
    )
    assert laptop.get(what, production)["metadata"]["resourceVersion"] == before


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (
            ("scale", "deployment/shop", "--replicas=11"),
            f"Error from server (Forbidden): {denial(REPLICAS)}",
        ),
        (
            ("set", "image", "deployment/shop", "app=nginx:1.21"),
            f"error: failed to patch image update to pod template: {denial(IMAGE)}",
        ),
    ],
    ids=["scale", "set image"],
)
def test_a_good_object_cannot_become_bad(
    laptop: Laptop, production: str, command: tuple[str, ...], said: str
) -> None:
    """Updates and the scale subresource are judged like creations, and the object is unchanged."""
    laptop.kubectl("create", "-n", production, "-f-", input=manifests.deployment())
    before = laptop.get("deployment/shop", production)["spec"]
    assert laptop.refusal(*command, "-n", production) == said
    assert laptop.get("deployment/shop", production)["spec"] == before


def test_a_debug_container_is_judged(laptop: Laptop, production: str) -> None:
    """Kubectl debug cannot add a foreign image to a running pod."""
    laptop.wait("serviceaccount/default", "create", production)
    laptop.kubectl("create", "-n", production, "-f-", input=manifests.pod())
    laptop.wait("pod/shop", "condition=Ready", production)
    debug = ("debug", "pod/shop", "-n", production, "--container=look", "--attach=false")
    assert laptop.refusal(*debug, "--image=docker.io/library/busybox") == (
        "Error from server (Forbidden): "
        + denial(
            'image-registries: spec.ephemeralContainers[name=look].image: "docker.io/library/busybox" '
            f"comes from docker.io; {APPROVED}"
        )
    )
    laptop.kubectl(*debug, "--image=registry.company.com/busybox")
    assert [
        container["name"]
        for container in laptop.get("pod/shop", production)["spec"]["ephemeralContainers"]
    ] == ["look"]


def test_a_dry_run_on_the_server_has_the_same_verdict(laptop: Laptop, production: str) -> None:
    """It is denied with the same message, or shows the defaults, and creates nothing."""
    dry_run = ("apply", "-n", production, "-f-", "--dry-run=server")
    assert laptop.refusal(*dry_run, input=manifests.deployment(**BAD)) == forbidden(
        IMAGE, REPLICAS, RESOURCES
    )
    shown: dict[str, Any] = json.loads(
        laptop.kubectl(*dry_run, "-o=json", input=manifests.webapp())
    )
    assert shown["spec"]["securityContext"]["runAsUser"] == 1000
    assert laptop.kubectl("get", "webapps,deployments,services", "-n", production) == ""
