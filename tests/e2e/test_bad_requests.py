"""Invalid requests to the webhook: each gets an error with the reason, and none is allowed."""

import base64
import contextlib
import http.client
import json
import ssl
from dataclasses import dataclass
from typing import Any

import pytest

from kube.resource import JsonObject
from tests.e2e import manifests
from tests.e2e.conftest import Laptop

pytestmark = pytest.mark.controlplane("kube-controller-manager", "kube-scheduler", "hollow-kubelet")


@dataclass(frozen=True)
class Wire:
    """Sends requests over TLS, verified with the registered CA."""

    address: str
    trusts: ssl.SSLContext

    def post(self, path: str, body: bytes) -> tuple[int, str]:
        """Return status and text of the response."""
        connection = http.client.HTTPSConnection(self.address, context=self.trusts, timeout=60)
        with contextlib.closing(connection):
            connection.putrequest("POST", f"{path}?timeout=3s")
            connection.putheader("Content-Type", "application/json")
            connection.putheader("Content-Length", str(len(body)))
            connection.endheaders()
            with contextlib.suppress(
                BrokenPipeError, ConnectionResetError
            ):  # the server may reject a body without reading it
                connection.send(body)
            response = connection.getresponse()
            return response.status, response.read().decode()

    def review(self, path: str, body: bytes) -> dict[str, Any]:
        """Return the response of the AdmissionReview, which must exist."""
        status, text = self.post(path, body)
        assert status == 200
        return dict(json.loads(text)["response"])


@pytest.fixture(scope="module")
def wire(laptop: Laptop) -> Wire:
    """A client of the laptop's webhook."""
    registered = laptop.get("validatingwebhookconfiguration/gatewright", "default")
    bundle = base64.b64decode(registered["webhooks"][0]["clientConfig"]["caBundle"]).decode()
    return Wire(
        laptop.gatewright.url.removeprefix("https://"), ssl.create_default_context(cadata=bundle)
    )


def review(object: Any, kind: str = "Deployment") -> bytes:
    """Return the review of a creation in namespace production."""
    group, resource = {"Deployment": ("apps", "deployments"), "WebApp": ("example.com", "webapps")}[
        kind
    ]
    request = {
        "uid": "3a6e5b0c-0000-4000-8000-000000000000",
        "kind": {"group": group, "version": "v1", "kind": kind},
        "resource": {"group": group, "version": "v1", "resource": resource},
        "name": "shop",
        "namespace": "production",
        "operation": "CREATE",
        "userInfo": {"username": "jane"},
        "object": object,
    }
    return json.dumps(
        {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    ).encode()


GOOD = review(manifests.deployment())
DEEP = b'{"a":' * 5_000 + b"1" + b"}" * 5_000


@pytest.mark.parametrize("path", ["/validate", "/mutate-webapp"])
@pytest.mark.parametrize(
    ("body", "status", "text"),
    [
        (GOOD[:-20], 400, "the body is not JSON: "),
        (b"", 400, "the body is not JSON: "),
        (GOOD + b" " * (9 * 1024 * 1024), 413, "a review may have at most 8,388,608 bytes\n"),
        (
            GOOD.replace(b"k8s.io/v1", b"k8s.io/v1beta1"),
            400,
            "the body is 'admission.k8s.io/v1beta1 ",
        ),
        (
            b'{"apiVersion": "v1", "kind": "Pod"}',
            400,
            "the body is 'v1 Pod'; only admission.k8s.io/v1 ",
        ),
        (GOOD.replace(b'"replicas": 2', b'"replicas": ' + DEEP), 400, "the body is not JSON: "),
        (b"[]", 400, "the body: Expected `object`, got `array`\n"),
    ],
    ids=["truncated", "empty", "9 MiB", "v1beta1", "no review", "5,000 deep", "a list"],
)
def test_a_body_that_is_no_review_is_an_http_error(
    wire: Wire, path: str, body: bytes, status: int, text: str
) -> None:
    """The response is an HTTP status and a line of text, and the webhook keeps serving."""
    code, said = wire.post(path, body)
    assert (code, said[: len(text)]) == (status, text)
    assert len(said) < 300
    assert wire.review(path, GOOD)["allowed"]


def _with_container(container: Any) -> JsonObject:
    return manifests.deployment() | {"spec": {"template": {"spec": {"containers": container}}}}


CONTAINERS = "spec.template.spec.containers"


@pytest.mark.parametrize(
    ("object", "path", "wanted"),
    [
        (
            manifests.deployment() | {"kind": "Secret"},
            "request.object.kind",
            "is 'Secret', but the request is about",
        ),
        (_with_container("nginx"), CONTAINERS, "it must be a list"),
        (_with_container({"name": "app"}), CONTAINERS, "it must be a list"),
        (_with_container([None]), f"{CONTAINERS}[0]", "it must be an object"),
        (
            _with_container([{"name": "app", "image": 7}]),
            f"{CONTAINERS}[name=app].image",
            "it must be a string",
        ),
        (
            manifests.deployment() | {"spec": {"replicas": "11"}},
            "spec.replicas",
            "it must be an integer",
        ),
        (manifests.deployment() | {"spec": []}, "spec", "it must be an object"),
        ("a Deployment", "request.object", "must be an object"),
        (None, "request.object", "missing; CREATE needs it"),
    ],
    ids=[
        "kind",
        "text",
        "object",
        "null",
        "number",
        "quoted number",
        "list",
        "no object",
        "nothing",
    ],
)
def test_a_malformed_object_is_denied(wire: Wire, object: Any, path: str, wanted: str) -> None:
    """The denial has code 400, the field and the expected type."""
    response = wire.review("/validate", review(object))
    assert response["allowed"] is False
    assert response["status"]["code"] == 400
    assert f"{path}: " in response["status"]["message"]
    assert wanted in response["status"]["message"]


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"spec": []}, "spec"),
        (
            {"spec": {"replicas": 1, "image": "nginx", "securityContext": "none"}},
            "spec.securityContext",
        ),
        ({"metadata": {"name": "shop", "labels": ["web"]}}, "metadata.labels"),
    ],
)
def test_a_malformed_object_is_not_patched(wire: Wire, change: JsonObject, path: str) -> None:
    """The mutating hook denies it."""
    response = wire.review("/mutate-webapp", review(manifests.webapp() | change, "WebApp"))
    assert response["allowed"] is False
    assert response["status"]["code"] == 400
    assert f"{path}: " in response["status"]["message"]
    assert "patch" not in response


def test_null_containers_hide_nothing(wire: Wire) -> None:
    """Null is absent: other violations are found, and the API server itself rejects a pod without containers."""
    manifest = _with_container(None)
    manifest["spec"]["replicas"] = 11
    manifest["spec"]["template"]["spec"]["initContainers"] = [
        {"name": "app", "image": "nginx:1.21"}
    ]
    response = wire.review("/validate", review(manifest))
    assert [cause["reason"] for cause in response["status"]["details"]["causes"]] == [
        "image-registries",
        "replica-limits",
        "resource-limits",
    ]


def test_a_thousand_bad_containers_are_denied_by_kubectl_too(
    laptop: Laptop, wire: Wire, production: str
) -> None:
    """All violations that fit are listed in time, and the API server passes the denial on."""
    manifest = manifests.deployment()
    names = [f"app-{number}" for number in range(1000)]
    containers = [{"name": name, "image": "nginx:1.21"} for name in names]
    manifest["spec"]["template"]["spec"]["containers"] = containers
    response = wire.review("/validate", review(manifest))
    assert response["status"]["code"] == 403
    message = response["status"]["message"]
    listed = message.count("\n- image-registries: ")
    assert 500 < listed < 1000
    assert message.startswith(f"more than {listed} violations\n")
    assert message.endswith("\n- and more, which are not listed.")
    said = laptop.refusal("create", "-n", production, "-f-", input=manifest)
    assert (
        f'admission webhook "validate.gatewright.io" denied the request: more than {listed} violations\n'
        in said
    )
    assert all(f"[name={name}].image" in said for name in names[:listed])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"containers": None}, "spec.template.spec.containers: Required value"),
        (
            {"containers": "nginx"},
            "cannot unmarshal string into Go struct field PodSpec.spec.template.spec.containers",
        ),
    ],
)
def test_the_api_server_rejects_a_pod_without_containers(
    laptop: Laptop, production: str, change: JsonObject, said: str
) -> None:
    """Objects that policies leave to the API server's validation are rejected by it."""
    manifest = manifests.deployment()
    manifest["spec"]["template"]["spec"] |= change
    assert said in laptop.refusal(
        "create", "--validate=false", "-n", production, "-f-", input=manifest
    )
