"""A CEL mutation yields the same object as the API server's own MutatingAdmissionPolicy."""

import asyncio
import copy
from typing import Any

import jsonpatch
import pytest

from config.faults import FaultsError
from kube.resource import JsonObject
from tests.policies.on_a_cluster.apiserver import ApiServer, api_server
from tests.policies.on_a_cluster.requests import Ask
from tests.webhook.policy_sets.on_a_cluster.in_force import (
    NAMESPACE,
    PATHS,
    ROOT,
    binding,
    crd,
    create,
    policy,
    rules,
)
from tests.webhook.policy_sets.on_a_cluster.mutating import SPECS, mutations
from webhook.engine import NAMESPACE_LABELS, BoundPolicy, Engine
from webhook.harness.reviews import Admission, review
from webhook.policy_sets.bound_objects import bind
from webhook.policy_sets.catalogue import catalogue
from webhook.review import read

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ANY = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
SHOP: JsonObject = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
SERVER_METADATA = ("uid", "creationTimestamp", "generation", "managedFields", "resourceVersion")
REFUSED = "refused"


def written(kind: str, number: str) -> tuple[str, JsonObject]:
    """Return the path at which an object is created, and the object, which one policy selects."""
    path, fields = next((path, fields) for (path, name), fields in SPECS.items() if name == kind)
    version, _, plural = path.rpartition("/")
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    metadata = {
        "name": "web",
        "labels": {"map": number, "app": "web"},
        "finalizers": ["example.com/z", "example.com/a"],
    }
    object = {"apiVersion": version, "kind": kind, "metadata": metadata, **copy.deepcopy(fields)}
    return f"{root}/namespaces/{NAMESPACE}/{plural}", object


def compared(said: JsonObject) -> JsonObject:
    """Return an object without the fields that the API server sets, and without the label that selects a policy."""
    metadata = {key: value for key, value in said["metadata"].items() if key not in SERVER_METADATA}
    labels = {key: value for key, value in metadata.get("labels", {}).items() if key != "map"}
    spec = said.get("spec")
    if said["kind"] == "Service":  # what is allocated
        spec = {
            key: value
            for key, value in said["spec"].items()
            if key not in ("clusterIP", "clusterIPs", "healthCheckNodePort")
        }
        spec["ports"] = [
            {key: value for key, value in each.items() if key != "nodePort"}
            for each in spec["ports"]
        ]
    parts = said | {"metadata": metadata | {"labels": labels}}
    return parts | ({"spec": spec} if spec is not None else {})


async def there(api: ApiServer, kind: str, number: str) -> JsonObject | str:
    """Return the object after the API server's mutation."""
    path, object = written(kind, number)
    said = await api(Ask("POST", path, object), dry_run=True)
    return compared(said.body) if said.code == 201 else REFUSED


async def here(api: ApiServer, kind: str, mutation: JsonObject) -> JsonObject | str:
    """Return the object after Gatewright's mutation, with the defaults of the API server."""
    path, object = written(kind, "none")
    said = await api(Ask("POST", path, object), dry_run=True)
    assert said.code == 201, said.message
    sent = compared(said.body)
    sent["metadata"]["labels"]["map"] = "none"
    spec = {
        "match": {"any": [{"kinds": [f"{object['apiVersion']}/{kind}"]}]},
        "mutations": [mutation],
    }
    value = {
        "apiVersion": "gatewright.io/v1alpha1",
        "kind": "ClusterAdmissionPolicy",
        "metadata": {"name": "it"},
        "spec": spec,
    }
    try:
        bound = bind(value, catalogue())
    except FaultsError:
        return REFUSED
    assert isinstance(bound, BoundPolicy)
    before = copy.deepcopy(sent)
    resource = path.rpartition("/")[2]
    request = read(review(Admission(sent, namespace=NAMESPACE, resource=resource)))
    verdict = Engine([bound]).mutate(request.with_looked_up({NAMESPACE_LABELS: {}}))
    if not verdict.allowed:
        return REFUSED
    patched = jsonpatch.apply_patch(before, verdict.operations)
    said = await api(Ask("POST", path, patched), dry_run=True)
    return compared(said.body) if said.code == 201 else REFUSED


@pytest.mark.controlplane
def test_a_mutation_is_that_of_the_api_server(own_control_plane: Any) -> None:
    """ApplyConfigurations and JSONPatches change every type of list and map, with wrong types and unknown fields."""
    plane = own_control_plane(parts=("etcd", "kube-apiserver"), audit=False)
    table = [(f"p{index}", *row) for index, row in enumerate(mutations())]

    async def differences() -> list[str]:
        async with api_server(plane) as api:
            await api.make(Ask("POST", "/api/v1/namespaces", SHOP))
            await api.make(Ask("POST", CRDS, crd("Gadget", "gadgets", "Namespaced", ANY)))
            in_force, refused = [], set()
            for number, _, mutation in table:
                selector = {"matchLabels": {"map": number}}
                spec = {
                    "matchConstraints": rules(operations=["CREATE"]) | {"objectSelector": selector},
                    "mutations": [mutation],
                    "reinvocationPolicy": "Never",
                    "failurePolicy": "Fail",
                }
                made = policy("Mutating", number, spec)
                path = f"{ROOT}/{PATHS[made['kind']]}"
                said = await api(Ask("POST", path, made), dry_run=True)
                if said.code == 201:
                    in_force += [made, binding("Mutating", number)]
                else:
                    refused.add(number)
            await create(api, in_force)
            wrong = []
            for number, kind, mutation in table:
                real = REFUSED if number in refused else await there(api, kind, number)
                mine = await here(api, kind, mutation)
                if mine != real:
                    text = str(mutation.get("applyConfiguration") or mutation.get("jsonPatch"))
                    wrong.append(f"{kind}: {text}: here {_short(mine, real)}")
            return wrong

    wrong = asyncio.run(differences())
    assert wrong == []
    assert len(table) >= 250


def _short(mine: JsonObject | str, real: JsonObject | str) -> str:
    """Return how two objects differ."""
    if isinstance(mine, str) or isinstance(real, str):
        return " / ".join(each if isinstance(each, str) else "changed" for each in (mine, real))
    return str(list(jsonpatch.make_patch(mine, real)))
