"""`check` applies a ValidatingAdmissionPolicy to the objects that the API server applies it to."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from config.documents import Document
from gatewright.checks.loaded_policies import PoliciesInForce
from kube.resource import JsonObject
from tests.controlplane.plane import ControlPlane
from tests.policies.on_a_cluster.apiserver import ApiServer, api_server
from tests.policies.on_a_cluster.requests import Ask
from tests.waiting import eventually
from tests.webhook.policy_sets.on_a_cluster.in_force import (
    NAMESPACE,
    binding,
    crd,
    create,
    policy,
    rules,
)
from webhook.engine.planners import NO_PLANNERS
from webhook.harness.bases import smallest
from webhook.harness.manifests import kinds_in

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ANY = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
DEFINITIONS = [
    crd("Gadget", "gadgets", "Namespaced", ANY),
    crd("Matrix", "matrices", "Cluster", ANY),
]
SHOP: JsonObject = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {
        "name": NAMESPACE,
        "labels": {"env": "prod", "kubernetes.io/metadata.name": NAMESPACE},
    },
}
LABELS = {"app": "web"}


def object(api_version: str, kind: str, name: str = "web", **fields: Any) -> JsonObject:
    """Return an object with a label."""
    metadata = {"name": name, "labels": LABELS}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


HOOK = {
    "name": "a.example.com",
    "clientConfig": {"url": "https://127.0.0.1:1/"},
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
    "failurePolicy": "Ignore",
}
AUTOSCALER = smallest("HorizontalPodAutoscaler")["spec"]
# of each object, where it is created, below its API version
OBJECTS: list[tuple[str, JsonObject]] = [
    ("namespaces/shop/deployments", smallest("Deployment", "web", NAMESPACE)),
    ("namespaces/shop/configmaps", object("v1", "ConfigMap")),
    ("namespaces/shop/configmaps", object("v1", "ConfigMap", "other")),
    ("namespaces", object("v1", "Namespace", "fresh")),
    ("nodes", object("v1", "Node")),
    ("namespaces/shop/leases", object("coordination.k8s.io/v1", "Lease", spec={})),
    ("priorityclasses", object("scheduling.k8s.io/v1", "PriorityClass", value=1)),
    ("namespaces/shop/horizontalpodautoscalers",
     object("autoscaling/v2", "HorizontalPodAutoscaler", spec=AUTOSCALER)),
    ("namespaces/shop/horizontalpodautoscalers",
     object("autoscaling/v1", "HorizontalPodAutoscaler", spec=AUTOSCALER)),
    ("validatingwebhookconfigurations",
     object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", webhooks=[HOOK])),
    ("validatingadmissionpolicies",
     policy("Validating", "another", {"matchConstraints": rules(resources=["pods"]),
                                      "validations": [{"expression": "true"}]})),
    ("clusterroles", object("rbac.authorization.k8s.io/v1", "ClusterRole", rules=[])),
    ("namespaces/shop/gadgets", object("example.com/v1", "Gadget", spec={})),
    ("matrices", object("example.com/v1", "Matrix", spec={})),
]  # fmt: skip

SELECTED = {"matchLabels": LABELS}
CONSTRAINTS: list[JsonObject] = [
    rules(),
    rules(apiGroups=[""]),
    rules(apiGroups=["apps", "example.com"]),
    rules(apiGroups=["example.com"]),
    rules(apiGroups=["example.org"]),
    rules(apiGroups=["coordination.k8s.io", "scheduling.k8s.io"]),
    rules(apiGroups=["*"], resources=["nodes", "priorityclasses"]),
    rules(apiGroups=["*"], resources=["leases"]),
    rules(apiGroups=["example.com"], resources=["matrices"]),
    rules(apiGroups=["example.com"], resources=["matrixes"]),
    rules(apiGroups=["*"], resources=["gadgets", "configmaps"]),
    rules(apiGroups=["admissionregistration.k8s.io"]),
    rules(resources=["*/*"]),
    rules(resources=["*/scale"]),
    rules(resources=["deployments/*"]),
    rules(resources=["pods"]),
    rules(operations=["UPDATE"]),
    rules(operations=["CREATE", "DELETE"]),
    rules(apiVersions=["v1"]),
    rules(apiVersions=["v2"]),
    rules(apiVersions=["v1beta1"]),
    rules(apiVersions=["v2"]) | {"matchPolicy": "Exact"},
    rules(apiVersions=["v1"], apiGroups=["autoscaling"]) | {"matchPolicy": "Exact"},
    rules(apiVersions=["v1"], apiGroups=["autoscaling"]),
    rules(apiVersions=["v2"], apiGroups=["", "apps"]),
    rules(apiVersions=["v2"], apiGroups=["autoscaling"], resources=["horizontalpodautoscalers"]),
    rules(scope="Cluster"),
    rules(scope="Namespaced"),
    rules(resourceNames=["web"]),
    rules(resourceNames=["fresh", "other"]),
    rules() | {"objectSelector": SELECTED},
    rules() | {"objectSelector": {"matchLabels": {"app": "other"}}},
    rules() | {"objectSelector": {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}},
    rules() | {"namespaceSelector": {"matchLabels": {"env": "prod"}}},
    rules() | {"namespaceSelector": {"matchExpressions": [{"key": "env", "operator": "NotIn", "values": ["prod"]}]}},
    rules() | {"excludeResourceRules": rules(apiGroups=["", "example.com"])["resourceRules"]},
    rules() | {"excludeResourceRules": rules(resourceNames=["web"])["resourceRules"]},
    rules() | {"excludeResourceRules": rules(scope="Cluster")["resourceRules"]},
    {"resourceRules": [*rules(resources=["nodes"])["resourceRules"],
                       *rules(apiGroups=["example.com"])["resourceRules"]]},
]  # fmt: skip


def applied_here(policies: list[JsonObject]) -> list[set[str]]:
    """Return the policies that `check` applies to each object, by the warnings."""
    manifests = [*(each for _, each in OBJECTS)]
    known = [Document.of_object(each) for each in (*DEFINITIONS, SHOP, *manifests)]
    documents = [Document.of_object(each) for each in policies]
    in_force = PoliciesInForce.read(
        documents, NAMESPACE, NO_PLANNERS, datetime.now(UTC), kinds=kinds_in(known, {})
    )
    found = [*in_force.judge_documents(known, NAMESPACE)][-len(manifests) :]
    assert [each.verdict for each in found if each.verdict == "error"] == []
    return [{finding.policy for finding in each.findings} for each in found]


async def applied(api: ApiServer, path: str, object: JsonObject) -> set[str]:
    """Return the policies that the API server applies to an object, by its warnings."""
    version = object["apiVersion"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    ask = Ask("POST", f"{root}/{path}", object)

    async def is_served() -> bool:
        return (await api(ask, dry_run=True)).code != 404

    await eventually(is_served)  # its kind was just defined
    said = await api(ask, dry_run=True)
    assert said.code == 201, said.message
    return {warning.split("'")[1] for warning in said.warnings}


@pytest.mark.controlplane
def test_a_policy_applies_to_what_the_api_server_applies_it_to(empty_plane: ControlPlane) -> None:
    """Each of the constraints, with each of the objects: built-in, custom, cluster-scoped, other versions."""
    validations = [{"expression": "false", "message": "applies"}]
    policies = [
        policy("Validating", f"p{index}", {"matchConstraints": each, "validations": validations})
        for index, each in enumerate(CONSTRAINTS)
    ]
    policies += [binding("Validating", each["metadata"]["name"]) for each in policies]

    async def applied_there() -> list[set[str]]:
        async with api_server(empty_plane) as api:
            await api.make(Ask("POST", "/api/v1/namespaces", SHOP))
            for definition in DEFINITIONS:
                await api.make(Ask("POST", CRDS, definition))
            await create(api, policies)
            before, found = None, [set[str]()]
            while found != before:  # policies come into force one after the other
                before, found = found, [await applied(api, path, each) for path, each in OBJECTS]
            return found

    here, there = applied_here(policies), asyncio.run(applied_there())
    wrong = [
        f"{each['apiVersion']}/{each['kind']} {each['metadata']['name']}: "
        f"only here {sorted(mine - real)}, only there {sorted(real - mine)}"
        for (_, each), mine, real in zip(OBJECTS, here, there, strict=True)
        if mine != real
    ]
    assert wrong == []
    assert len(CONSTRAINTS) * len(OBJECTS) >= 374
