"""Rules are type-checked as Kubernetes checks those of a ValidatingAdmissionPolicy."""

import json
from typing import Any

import pytest

from config.api.policy import AdmissionPolicySpec
from config.faults import FaultsError, parse
from config.schemas import CustomTypes
from kube.client import Client
from kube.credentials import load
from tests.waiting import eventually, until
from tests.webhook.policy_sets.on_a_cluster.in_force import PATHS, ROOT, policy
from webhook.policy_sets.bound_objects import bind
from webhook.policy_sets.catalogue import catalogue
from webhook.policy_sets.rule_types import check_types

HEAD = {
    "apiVersion": "gatewright.io/v1alpha1",
    "kind": "ClusterAdmissionPolicy",
    "metadata": {"name": "typed"},
}
POD = "object.spec.template.spec"
# Expressions about a Deployment. Left out are maps of quantities (`resources.limits`): the API
# server's check does not know them, and calls them undefined.
EXPRESSIONS = (
    "object.spec.replicas < 2",
    "object.spec.replica < 2",
    "object.spec.replicas == '2'",
    "object.spec.replicas + 'x' == 'x'",
    "object.spec.paused",
    "object.spec.paused == 1",
    "has(object.spec.replicas) && object.spec.replicas < 2",
    "has(object.spec.replics)",
    "object.metadata.labels['team'] == 'a'",
    "object.metadata.labels['team'] == 1",
    "object.metadata.lables['team'] == 'a'",
    "object.metadata.name.startsWith('a')",
    "object.metadata.name.begins('a')",
    "'team' in object.metadata.labels",
    f"{POD}.containers.all(c, c.image != '')",
    f"{POD}.containers.all(c, c.imag != '')",
    f"{POD}.containers.all(c, has(c.securityContext.runAsUser))",
    f"{POD}.containers.all(c, has(c.securityContext.runAsUsr))",
    f"{POD}.containers.all(c, c.ports.all(p, p.hostPort == 0))",
    f"{POD}.containers.exists(c, c.ports.exists(p, p.hostport == 0))",
    f"{POD}.?hostNetwork.orValue(false) == false",
    f"{POD}.?hostNetwrk.orValue(false) == false",
    f"{POD}.hostNetwork == 'true'",
    f"{POD}.volumes.all(v, !has(v.hostPath))",
    f"{POD}.volumes.all(v, !has(v.hostpath))",
    f"{POD}.containers.map(c, c.name).exists(n, n == 'app')",
    f"{POD}.containers.map(c, c.name).exists(n, n == 1)",
    f"size({POD}.containers) == 1",
    f"{POD}.containers[0].name == 'app'",
    f"{POD}.containers.name == 'app'",
    f"{POD}.tolerations.all(t, t.key != '')",
    f"{POD}.nodeSelector.disk == 'ssd'",
    "object.spec.selector.matchLabels == object.spec.template.metadata.labels",
    "object.spec.strategy.rollingUpdate.maxSurge == '1'",
    "oldObject == null || oldObject.spec.replicas <= object.spec.replicas",
    "oldObject == null || oldObject.spec.replica <= object.spec.replicas",
    "object.kind == 'Deployment'",
    "object.status.readyReplicas >= 0",
    "request.operaton == 'x' || true",
)  # fmt: skip


def is_faulty_here(expression: str) -> bool:
    """Return whether Gatewright finds a type error, or does not compile the expression."""
    match = {"any": [{"kinds": ["Deployment"]}]}
    validations = [{"expression": expression, "message": "wrong"}]
    spec = {"match": match, "validations": validations}
    try:
        bound = bind({**HEAD, "spec": spec}, catalogue())
    except FaultsError:
        return True
    return bool(check_types(parse(AdmissionPolicySpec, spec), bound.policy.targets))


@pytest.mark.controlplane
def test_type_errors_are_those_of_the_api_server(control_plane: Any) -> None:
    """Each expression, in a ValidatingAdmissionPolicy without a binding: its status has the errors."""
    api = control_plane.api
    path = f"{ROOT}/{PATHS['ValidatingAdmissionPolicy']}"
    rule = {
        "apiGroups": ["apps"],
        "apiVersions": ["v1"],
        "operations": ["*"],
        "resources": ["deployments"],
    }
    there = dict[str, bool]()
    for index, expression in enumerate(EXPRESSIONS):
        spec = {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": expression}],
        }
        made = policy("Validating", f"types-{index}", spec)
        code, _ = api.request("POST", path, made)
        if code == 422:  # it is wrong without types, too
            there[expression] = True

    def are_checked() -> bool:
        for index, expression in enumerate(EXPRESSIONS):
            if expression not in there:
                _, stored = api.request("GET", f"{path}/types-{index}")
                status = json.loads(stored).get("status") or {}
                if "typeChecking" not in status:
                    return False
                there[expression] = bool(status["typeChecking"].get("expressionWarnings"))
        return True

    try:
        until(are_checked, every=0.5)
    finally:
        for index in range(len(EXPRESSIONS)):
            api.request("DELETE", f"{path}/types-{index}")
    assert {each: is_faulty_here(each) for each in EXPRESSIONS} == there
    assert 15 <= sum(there.values()) <= len(there) - 15


@pytest.mark.controlplane
async def test_custom_kinds_have_the_types_that_the_api_server_serves(control_plane: Any) -> None:
    """Anybody may read them: the status of a policy object needs no right for definitions."""
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    api = control_plane.api
    assert api.request("POST", crds, GADGETS)[0] == 201
    async with Client(await load(control_plane.kubeconfig)) as client:
        custom = CustomTypes()

        async def are_served() -> bool:
            nonlocal custom
            schemas = await client.schemas(["types.example.org/v1"])
            custom = CustomTypes.of_openapi(schemas)
            return bool(custom.kinds)

        try:
            await eventually(are_served, every=0.2)
        finally:
            api.request("DELETE", f"{crds}/{GADGETS['metadata']['name']}")
    defined = CustomTypes.of([GADGETS]).types
    assert {each: custom.types[each] for each in defined} == defined  # also of the list


GADGETS: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gadgets.types.example.org"},
    "spec": {
        "group": "types.example.org",
        "scope": "Namespaced",
        "names": {"kind": "Gadget", "plural": "gadgets"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "size": {"type": "integer"},
                                    "parts": {
                                        "type": "array",
                                        "items": {
                                            "type": "object",
                                            "properties": {"name": {"type": "string"}},
                                        },
                                    },
                                },
                            }
                        },
                    }
                },
            }
        ],
    },
}
