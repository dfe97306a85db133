"""A CEL mutation yields the same object as the API server's own MutatingAdmissionPolicy."""

import asyncio
import copy
import os
from functools import partial

import aiohttp
import jsonpatch
import pytest

from config.faults import FaultsError
from config.schemas import CustomTypes
from kube.resource import JsonObject
from tests.controlplane.plane import ControlPlane
from tests.policies.on_a_cluster.apiserver import ApiServer, api_server
from tests.policies.on_a_cluster.requests import Ask
from tests.waiting import eventually
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
from tests.webhook.policy_sets.on_a_cluster.mutating import GIZMO, SPECS, mutation, mutations
from tests.webhook.policy_sets.on_a_cluster.random_mutations import random_mutations
from webhook.engine import NAMESPACE_LABELS, SCHEMAS, BoundPolicy, Engine
from webhook.harness.reviews import Admission, review
from webhook.policy_sets.bound_objects import bind
from webhook.policy_sets.catalogue import catalogue
from webhook.review import read

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ANY = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
DEFINITIONS = [
    crd("Gadget", "gadgets", "Namespaced", ANY),
    crd("Gizmo", "gizmos", "Namespaced", GIZMO),
]
TYPES = CustomTypes.of(DEFINITIONS)
SHOP: JsonObject = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
SERVER_METADATA = (
    "selfLink",
    "deletionGracePeriodSeconds",
    "uid",
    "creationTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
)
REFUSED = "refused"
UNKNOWN_FIELDS = (("fieldValidation", "Ignore"),)  # as after a mutation
SCHEMAS_OF = {"Gadget": ANY, "Gizmo": GIZMO}  # of the spec
CUSTOM = (*SCHEMAS_OF,)
PANICKED = "panicked"  # the API server's patch library, for a `copy` or a `test` of nothing
LAST = "ConfigMap", mutation("metadata: Object.metadata{labels: {'last': 'policy'}}")
RANDOM = int(os.environ.get("MUTATIONS", "40"))  # mutations of which the seed decides
SEED = int(os.environ.get("SEED", "0"))
LOOKED_UP = {NAMESPACE_LABELS: {}, SCHEMAS: lambda: TYPES}


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
            {key: value for key, value in port.items() if key != "nodePort"}
            for port in spec["ports"]
        ]
    parts = said | {"metadata": metadata | {"labels": labels}}
    return parts | ({"spec": spec} if spec is not None else {})


async def there(api: ApiServer, kind: str, number: str) -> JsonObject | str:
    """Return the object after the API server's mutation."""
    path, object = written(kind, number)
    try:
        said = await api(Ask("POST", path, object), dry_run=True)
    except aiohttp.ServerDisconnectedError:
        return PANICKED
    return compared(said.body) if said.code == 201 else REFUSED


def decoded(object: JsonObject) -> JsonObject:
    """Return a custom object as the API server reads the result of a patch of it.

    It drops labels, annotations and finalizers that are not all texts; null is an empty text. A
    created object has no deletionTimestamp, whatever text a mutation sets.
    """
    metadata = object.get("metadata")
    if not isinstance(metadata, dict):
        return object
    kept = {}
    for key, value in metadata.items():
        if key == "deletionTimestamp":
            continue
        items = value.values() if isinstance(value, dict) else value
        is_listed = key in ("labels", "annotations", "finalizers")
        if not is_listed or (
            isinstance(value, list if key == "finalizers" else dict)
            and all(isinstance(item, str | None) for item in items)
        ):
            kept[key] = value
    return object | {"metadata": kept}


def has_null(value: object, schema: JsonObject) -> bool:
    """Return whether a field that has a schema is null.

    The API server drops such a null from a request, but rejects it in the result of a mutation.
    """
    if value is None:
        return "type" in schema
    if isinstance(value, list):
        return any(has_null(each, schema.get("items", {})) for each in value)
    if isinstance(value, dict):
        known, others = schema.get("properties", {}), schema.get("additionalProperties", {})
        return any(has_null(each, known.get(key, others)) for key, each in value.items())
    return False


async def here(api: ApiServer, kind: str, change: JsonObject) -> JsonObject | str:
    """Return the object after Gatewright's mutation, with the defaults of the API server."""
    path, object = written(kind, "none")
    said = await api(Ask("POST", path, object), dry_run=True)
    assert said.code == 201, said.message
    sent = compared(said.body)
    sent["metadata"]["labels"]["map"] = "none"
    spec = {
        "match": {"any": [{"kinds": [f"{object['apiVersion']}/{kind}"]}]},
        "mutations": [change],
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
    verdict = Engine([bound]).mutate(request.with_looked_up(LOOKED_UP))
    if not verdict.allowed:
        return REFUSED
    patched = jsonpatch.apply_patch(before, verdict.operations)
    if kind in CUSTOM:
        if has_null(patched.get("spec", {}), SCHEMAS_OF[kind]):
            return REFUSED
        patched = decoded(patched)
    # It rejects an empty finalizer of a request, but not one that a mutation has set to null.
    metadata = patched.get("metadata")
    finalizers = (metadata.get("finalizers") if isinstance(metadata, dict) else None) or []
    is_null = kind in CUSTOM and None in finalizers
    if is_null:
        patched["metadata"]["finalizers"] = [each for each in finalizers if each is not None]
    said = await api(Ask("POST", path, patched, UNKNOWN_FIELDS), dry_run=True)
    if is_null and said.code == 201:
        said.body["metadata"]["finalizers"] = [each or "" for each in finalizers]
    return compared(said.body) if said.code == 201 else REFUSED


async def is_labelled(api: ApiServer) -> bool:
    """Return whether the last policy is in force, and so all are: they are read in order."""
    number, kind, _ = table()[-1]
    found = await there(api, kind, number)
    return isinstance(found, dict) and found["metadata"]["labels"].get("last") == "policy"


def table() -> list[tuple[str, str, JsonObject]]:
    """Return the mutations of the file and random ones: the policy's name, kind and mutation."""
    rows = [*mutations(), *random_mutations(RANDOM, SEED, TYPES), LAST]
    return [(f"p{index}", *row) for index, row in enumerate(rows)]


async def in_force(api: ApiServer, rows: list[tuple[str, str, JsonObject]]) -> set[str]:
    """Create a policy for each mutation; return the names of those that the API server rejects."""
    await api.make(Ask("POST", "/api/v1/namespaces", SHOP))
    for definition in DEFINITIONS:
        await api.make(Ask("POST", CRDS, definition))
    policies = []
    for number, _, change in rows:
        selector = {"matchLabels": {"map": number}}
        spec = {
            "matchConstraints": rules(operations=["CREATE"]) | {"objectSelector": selector},
            "mutations": [change],
            "reinvocationPolicy": "Never",
            "failurePolicy": "Fail",
        }
        policies.append(policy("Mutating", number, spec))
    path = f"{ROOT}/{PATHS['MutatingAdmissionPolicy']}"
    said = await asyncio.gather(*(api(Ask("POST", path, each), dry_run=True) for each in policies))
    accepted = [each for each, answer in zip(policies, said, strict=True) if answer.code == 201]
    bindings = [binding("Mutating", each["metadata"]["name"]) for each in accepted]
    await create(api, [*accepted, *bindings])
    await eventually(partial(is_labelled, api))
    return {number for number, _, _ in rows} - {each["metadata"]["name"] for each in accepted}


@pytest.mark.controlplane
def test_a_mutation_is_that_of_the_api_server(empty_plane: ControlPlane) -> None:
    """ApplyConfigurations and JSONPatches change every type of list and map, with wrong types and unknown fields."""
    rows = table()

    async def differences() -> list[str]:
        async with api_server(empty_plane) as api:
            refused = await in_force(api, rows)

            async def difference(number: str, kind: str, change: JsonObject) -> str | None:
                real = REFUSED if number in refused else await there(api, kind, number)
                mine = await here(api, kind, change)
                if real in (mine, PANICKED):
                    return None
                text = (change.get("applyConfiguration") or change["jsonPatch"])["expression"]
                return f"{kind}: {text}: here {_short(mine, real)}"

            found = await asyncio.gather(*(difference(*row) for row in rows))
            return [each for each in found if each is not None]

    wrong = asyncio.run(differences())
    assert not wrong, "\n".join(wrong)
    assert len(rows) >= 300 + RANDOM


def _short(mine: JsonObject | str, real: JsonObject | str) -> str:
    """Return how two objects differ."""
    if isinstance(mine, str) or isinstance(real, str):
        return " / ".join(each if isinstance(each, str) else "changed" for each in (mine, real))
    return str(list(jsonpatch.make_patch(mine, real)))
