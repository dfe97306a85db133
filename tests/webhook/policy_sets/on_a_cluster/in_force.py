"""Puts Kubernetes' own policies in force on a real API server, and returns its verdicts."""

from collections.abc import Iterable
from typing import Any

from kube.resource import JsonObject
from tests.policies.on_a_cluster.apiserver import ApiServer
from tests.policies.on_a_cluster.requests import Ask
from tests.waiting import eventually

GROUP = "admissionregistration.k8s.io/v1"
ROOT = f"/apis/{GROUP}"
NAMESPACE = "shop"
PATHS = {
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
    "MutatingAdmissionPolicy": "mutatingadmissionpolicies",
    "MutatingAdmissionPolicyBinding": "mutatingadmissionpolicybindings",
}


def crd(kind: str, plural: str, scope: str, spec: JsonObject) -> JsonObject:
    """Return the definition of a custom kind whose spec has this schema."""
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "scope": scope,
            "names": {"kind": kind, "plural": plural},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


def policy(sort: str, name: str, spec: JsonObject) -> JsonObject:
    """Return a policy, Validating or Mutating."""
    metadata = {"name": name}
    return {
        "apiVersion": GROUP,
        "kind": f"{sort}AdmissionPolicy",
        "metadata": metadata,
        "spec": spec,
    }


def binding(sort: str, name: str) -> JsonObject:
    """Return the binding of a policy; that of a validating policy warns."""
    actions = {"validationActions": ["Warn"]} if sort == "Validating" else {}
    made = policy(sort, name, {"policyName": name, **actions})
    return made | {"kind": f"{sort}AdmissionPolicyBinding"}


def rules(**rule: Any) -> JsonObject:
    """Return matchConstraints of one rule for every resource, changed by the arguments."""
    everything = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}
    return {"resourceRules": [everything | rule]}


async def create(api: ApiServer, objects: Iterable[JsonObject]) -> None:
    """Create policies and bindings, and wait until the last one of both sorts is in force.

    Those of a sort are loaded in order.
    """
    configmaps = rules(resources=["configmaps"])
    is_other = "object.metadata.name != 'canary'"
    denial = {"matchConstraints": configmaps, "validations": [{"expression": is_other}]}
    label = "Object{metadata: Object.metadata{labels: {'canary': 'sang'}}}"
    mutation = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": label}}
    labelling = {
        "matchConstraints": configmaps,
        "matchConditions": [{"name": "canary", "expression": "object.metadata.name == 'canary'"}],
        "reinvocationPolicy": "Never",
        "mutations": [mutation],
    }
    canaries = [
        *(policy("Validating", "canary", denial), binding("Validating", "canary")),
        *(policy("Mutating", "canary", labelling), binding("Mutating", "canary")),
    ]
    for object in (*objects, *canaries):
        await api.make(Ask("POST", f"{ROOT}/{PATHS[object['kind']]}", object))
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "canary"}}
    path = f"/api/v1/namespaces/{NAMESPACE}/configmaps"

    async def sing() -> bool:
        said = await api(Ask("POST", path, body), dry_run=True)
        return bool(said.warnings) and "labels" in said.body.get("metadata", {})

    await eventually(sing)
