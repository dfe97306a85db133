"""Objects that the webhook or the API server rejects, as kubectl shows it.

What the webhook answers to requests that no API server sends is in tests/webhook.
"""

import pytest

from kube.resource import JsonObject
from tests.e2e import manifests
from tests.e2e.conftest import Laptop

pytestmark = pytest.mark.controlplane("kube-controller-manager", "kube-scheduler", "hollow-kubelet")


def test_a_thousand_bad_containers_are_denied(laptop: Laptop, production: str) -> None:
    """All violations that fit are listed in time, and the API server passes the denial on."""
    manifest = manifests.deployment()
    names = [f"app-{number}" for number in range(1000)]
    containers = [{"name": name, "image": "nginx:1.21"} for name in names]
    manifest["spec"]["template"]["spec"]["containers"] = containers
    said = laptop.refusal("create", "-n", production, "-f-", input=manifest)
    listed = said.count("\n- image-registries: ")
    assert 500 < listed < 1000
    assert (
        f'admission webhook "validate.gatewright.io" denied the request: more than {listed} violations\n'
        in said
    )
    assert all(f"[name={name}].image" in said for name in names[:listed])
    assert said.endswith("\n- and more, which are not listed.\n")


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
