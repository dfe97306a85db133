"""A control plane that is lent again is as a new one, whatever the test before did to its objects."""

import json
from typing import Any

import pytest

from tests.controlplane.api import Api
from tests.controlplane.lent import LentPlane
from tests.controlplane.plane import ControlPlaneError
from tests.waiting import until

pytestmark = pytest.mark.controlplane

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
GADGETS = "/apis/example.com/v1/gadgets"
NAMESPACES = "/api/v1/namespaces"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
FINALIZERS = {"finalizers": ["example.com/never"]}
EVERYTHING = {
    "apiGroups": ["*"],
    "apiVersions": ["*"],
    "operations": ["*"],
    "resources": ["*"],
}


def definition(type: str) -> dict[str, Any]:
    """Return the CustomResourceDefinition of Gadgets, whose size has this type."""
    schema = {"type": "object", "properties": {"size": {"type": type}}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
    }
    names = {"plural": "gadgets", "kind": "Gadget"}
    return {
        "metadata": {"name": "gadgets.example.com"},
        "spec": {"group": "example.com", "scope": "Cluster", "versions": [version], "names": names},
    }


def webhooks() -> dict[str, Any]:
    """Return webhooks that deny every request, since nothing listens at their address."""
    webhook = {
        "name": "all.example.com",
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [EVERYTHING],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    return {"metadata": {"name": "all"}, "webhooks": [webhook]}


def policies() -> dict[str, dict[str, Any]]:
    """Return a policy that denies every request, and its binding, by their resources."""
    constraints = {"resourceRules": [EVERYTHING]}
    rules = {"matchConstraints": constraints, "validations": [{"expression": "false"}]}
    binding = {"policyName": "all", "validationActions": ["Deny"]}
    return {
        "validatingadmissionpolicies": {"metadata": {"name": "all"}, "spec": rules},
        "validatingadmissionpolicybindings": {"metadata": {"name": "all"}, "spec": binding},
    }


def send(api: Api, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """Send a request that must succeed; return the answer."""
    code, answer = api.request(method, path, body)
    assert code in (200, 201), f"{method} {path}: {code} {answer.decode()}"
    return dict(json.loads(answer))


def gadget(size: object) -> dict[str, Any]:
    """Return a Gadget that cannot be deleted."""
    about = {"apiVersion": "example.com/v1", "kind": "Gadget"}
    return {**about, "metadata": {"name": "one", **FINALIZERS}, "size": size}


def may_read_secrets(api: Api) -> bool:
    """Return whether bob may read Secrets."""
    attributes = {"verb": "get", "resource": "secrets"}
    review = {"spec": {"user": "bob", "resourceAttributes": attributes}}
    return bool(send(api, "POST", REVIEWS, review)["status"]["allowed"])


def change_everything(api: Api) -> None:
    """Create, change and delete objects that affect the whole cluster."""
    send(api, "POST", CRDS, definition("string"))
    until(lambda: api.found(GADGETS))
    send(api, "POST", GADGETS, gadget("large"))
    send(api, "POST", NAMESPACES, {"metadata": {"name": "shop"}, "spec": FINALIZERS})
    send(api, "POST", f"{NAMESPACES}/shop/configmaps", {"metadata": {"name": "a", **FINALIZERS}})
    send(api, "DELETE", f"{NAMESPACES}/shop")
    view = send(api, "GET", f"{RBAC}/clusterroles/view")
    send(api, "PUT", f"{RBAC}/clusterroles/view", view | {"rules": []})
    send(api, "DELETE", f"{RBAC}/clusterroles/edit")
    role = {"kind": "ClusterRole", "apiGroup": "rbac.authorization.k8s.io", "name": "cluster-admin"}
    bob = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "bob"}
    binding = {"metadata": {"name": "bob"}, "roleRef": role, "subjects": [bob]}
    send(api, "POST", f"{RBAC}/clusterrolebindings", binding)
    until(lambda: may_read_secrets(api))
    for resource, body in policies().items():
        send(api, "POST", f"{ADMISSION}/{resource}", body)
    for resource in ("validatingwebhookconfigurations", "mutatingwebhookconfigurations"):
        send(api, "POST", f"{ADMISSION}/{resource}", webhooks())
    configmap = {"metadata": {"name": "a"}}
    path = f"{NAMESPACES}/default/configmaps?dryRun=All"
    until(lambda: api.request("POST", path, configmap)[0] != 201)


def test_a_control_plane_is_as_new_when_it_is_lent_again(lent_plane: LentPlane) -> None:
    """Webhooks and policies that deny all, custom resources, rights, and objects that cannot be deleted are gone."""
    lists = (NAMESPACES, f"{RBAC}/clusterroles", f"{RBAC}/clusterrolebindings", CRDS, "/apis")
    with lent_plane.lend() as plane:
        at_first = [without_versions(send(plane.api, "GET", path)) for path in lists]
        change_everything(plane.api)
    with lent_plane.lend() as again:
        assert again is plane
        # The first request is answered as by a new API server.
        send(plane.api, "POST", f"{NAMESPACES}/default/configmaps", {"metadata": {"name": "a"}})
        assert not plane.api.found(GADGETS)
        assert [without_versions(send(plane.api, "GET", path)) for path in lists] == at_first
        for resource in (
            *policies(),
            "validatingwebhookconfigurations",
            "mutatingwebhookconfigurations",
        ):
            assert send(plane.api, "GET", f"{ADMISSION}/{resource}")["items"] == []
        until(lambda: not may_read_secrets(plane.api))
        # The same kind may have another schema, and has no objects.
        send(plane.api, "POST", CRDS, definition("integer"))
        until(lambda: plane.api.found(GADGETS))
        assert send(plane.api, "GET", GADGETS)["items"] == []
        until(lambda: plane.api.request("POST", GADGETS, gadget(5))[0] == 201)
    with lent_plane.lend():
        assert not plane.api.found(f"{NAMESPACES}/default/configmaps/a")


def test_a_control_plane_is_not_lent_again_after_a_part_was_killed(lent_plane: LentPlane) -> None:
    """The test that did it fails; the next one gets a new control plane."""
    with pytest.raises(ControlPlaneError, match="etcd: range: 0"), lent_plane.lend() as broken:
        broken.kill("etcd")
    assert not broken.pids
    with lent_plane.lend() as plane:
        assert plane is not broken
        assert plane.api.found("/readyz")


def without_versions(answer: dict[str, Any]) -> dict[str, Any]:
    """Return a list without the resource versions, which restoring changes."""
    for object in answer.get("items", []):
        del object["metadata"]["resourceVersion"]
    return {key: value for key, value in answer.items() if key != "metadata"}
