"""Every expression of the corpus has the same verdict and message here as on a real API server."""

import asyncio
import json
from dataclasses import dataclass

import pytest
import yaml

from config.documents import Document, parse_documents
from config.faults import FaultsError
from kube.resource import JsonObject
from tests.controlplane.plane import ControlPlane
from tests.policies.on_a_cluster.apiserver import ApiServer, Said, api_server
from tests.policies.on_a_cluster.requests import Ask
from tests.waiting import eventually
from tests.webhook.cel.on_a_cluster.objects import DEFINITION, objects
from tests.webhook.cel.on_a_cluster.verdicts import Line, batches, binding, corpus, in_batch, policy
from webhook.engine import NAMESPACE, NAMESPACE_LABELS, BoundPolicy
from webhook.policy_sets.bound_objects import bind
from webhook.policy_sets.catalogue import catalogue
from webhook.policy_sets.policy_set import load
from webhook.review import read

REGISTRATION = "/apis/admissionregistration.k8s.io/v1"
POLICIES = f"{REGISTRATION}/validatingadmissionpolicies"
BINDINGS = f"{REGISTRATION}/validatingadmissionpolicybindings"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
LABELS = {"environment": "production", "kubernetes.io/metadata.name": "shop"}
SHOP: JsonObject = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": "shop", "labels": LABELS, "annotations": {"owner": "core"}},
}
PATHS = {
    "Thing": "/apis/cel.gatewright.io/v1/namespaces/shop/things",
    "Deployment": "/apis/apps/v1/namespaces/shop/deployments",
    "ConfigMap": "/api/v1/namespaces/shop/configmaps",
}
SELF = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
OPTIONS = {
    "kind": "CreateOptions",
    "apiVersion": "meta.k8s.io/v1",
    "dryRun": ["All"],
    "fieldValidation": "Strict",
}


@dataclass(frozen=True)
class Surroundings:
    """The API server's data besides the object: the requesting user, and the namespace."""

    user: JsonObject
    namespace: JsonObject


def bound(line: Line, *, as_text: bool) -> BoundPolicy:
    """Put an expression in force as a policy object. Raises FaultsError if it is rejected."""
    validations = [line.validation(as_text=as_text)]
    variables = [{"name": name, "expression": value} for name, value in line.variables]
    match = {"any": [{"kinds": ["things.cel.gatewright.io/v1/Thing", "Deployment", "ConfigMap"]}]}
    made = bind(
        {
            "apiVersion": "gatewright.io/v1alpha1",
            "kind": "ClusterAdmissionPolicy",
            "metadata": {"name": "corpus"},
            "spec": {"match": match, "validations": validations, "variables": variables},
        },
        catalogue(),
    )
    assert isinstance(made, BoundPolicy)
    return made


def documents(written: list[JsonObject]) -> list[Document]:
    """Return the API server's policies as they would be in a file."""
    return list(parse_documents(yaml.safe_dump_all(written).encode(), "policies.yaml"))


def accepted_here(line: Line) -> bool | None:
    """Return how Gatewright compiles an expression: as a rule (False), as text (True), or not at all (None)."""
    for as_text in (False, True):
        try:
            bound(line, as_text=as_text)
        except FaultsError:
            continue
        return as_text
    return None


async def accepted_there(api: ApiServer, line: Line) -> bool | None:
    """Return how the API server compiles it."""
    for as_text in (False, True):
        validations = [line.validation(as_text=as_text)]
        body = policy(f"try-{line.number}", validations, line.variables)
        if (await api(Ask("POST", POLICIES, body), dry_run=True)).code == 201:
            return as_text
    return None


def found_here(
    judge: BoundPolicy, name: str, object: JsonObject, surroundings: Surroundings
) -> set[str]:
    """Return the warnings expected from the API server, from Gatewright's verdict on the stored object."""
    group, _, version = object["apiVersion"].rpartition("/")
    kind = {"group": group, "version": version, "kind": object["kind"]}
    resource = {"group": group, "version": version, "resource": f"{object['kind'].lower()}s"}
    asked = {
        "uid": "u",
        "kind": kind,
        "resource": resource,
        "requestKind": kind,
        "requestResource": resource,
        "name": object["metadata"]["name"],
        "namespace": "shop",
        "operation": "CREATE",
        "userInfo": surroundings.user,
        "object": object,
        "oldObject": None,
        "dryRun": True,
        "options": OPTIONS,
    }
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked}
    request = read(json.dumps(review).encode())
    outcome = judge.validate(
        request.with_looked_up({NAMESPACE: surroundings.namespace, NAMESPACE_LABELS: LABELS})
    )
    assert outcome is not None
    start = f"Validation failed for ValidatingAdmissionPolicy '{name}' with binding '{name}': "
    return {start + violation.message for violation in outcome.violations}


async def until_in_force(api: ApiServer, names: list[str]) -> None:
    """Wait until the API server evaluates every policy: each has an expression that is false for an empty object."""
    waiting = set(names)
    while waiting:
        for name in sorted(waiting):
            body = in_batch(
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "canary"}}, name
            )
            if (await api(Ask("POST", PATHS["ConfigMap"], body), dry_run=True)).warnings:
                waiting.discard(name)
        await asyncio.sleep(0.1)


async def prepare(api: ApiServer, policies: dict[str, JsonObject]) -> None:
    """Create the namespace, the custom resource's definition, and the policies with their bindings."""
    await api.make(Ask("POST", "/api/v1/namespaces", SHOP))
    await api.make(Ask("POST", CRDS, DEFINITION))
    for name, written in policies.items():
        canary = {"expression": "object.metadata.name != 'canary'", "message": "in force"}
        spec = written["spec"] | {"validations": [*written["spec"]["validations"], canary]}
        await api.make(Ask("POST", POLICIES, written | {"spec": spec}))
        await api.make(Ask("POST", BINDINGS, binding(name)))
    await until_in_force(api, list(policies))

    async def is_served() -> bool:
        return (await api(Ask("GET", PATHS["Thing"]), dry_run=False)).code == 200

    await eventually(is_served)


async def differences(api: ApiServer) -> tuple[int, list[str]]:
    """Return the number of compared pairs of expression and object, and the differences."""
    lines = corpus()
    there = dict(
        zip(
            lines, await asyncio.gather(*(accepted_there(api, line) for line in lines)), strict=True
        )
    )
    here = {line: accepted_here(line) for line in lines}
    wrong = [
        f"{line.expression}: accepted here {here[line]}, there {there[line]}"
        for line in lines
        if here[line] != there[line]
    ]
    accepted = {
        line: line.validation(as_text=bool(there[line]))
        for line in lines
        if there[line] is not None and here[line] == there[line]
    }
    policies = {each["metadata"]["name"]: each for each in batches(accepted)}
    await prepare(api, policies)
    documented = [each for name, written in policies.items() for each in (written, binding(name))]
    who = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    user = (await api(Ask("POST", SELF, who), dry_run=False)).body["status"]["userInfo"]
    surroundings = Surroundings(
        user, (await api(Ask("GET", "/api/v1/namespaces/shop"), dry_run=False)).body
    )
    judges = {each.name: each for each in load(documents(documented), catalogue())}

    async def one(object: JsonObject, name: str) -> tuple[str, Said]:
        body = in_batch(object, name)
        return name, await api(Ask("POST", PATHS[body["kind"]], body), dry_run=True)

    for name, said in await asyncio.gather(
        *(one(object, name) for object in objects() for name in policies)
    ):
        assert said.code == 201, said.message
        found, real = found_here(judges[name], name, said.body, surroundings), set(said.warnings)
        title = said.body["metadata"]["name"]
        wrong += [f"{title}: only there: {text}" for text in sorted(real - found)]
        wrong += [f"{title}: only here: {text}" for text in sorted(found - real)]
    return len(accepted) * len(objects()), wrong


@pytest.mark.controlplane
def test_every_expression_has_the_verdict_of_the_api_server(empty_plane: ControlPlane) -> None:
    """Both accept the same expressions; verdicts, messages and errors are equal for every object."""

    async def compared() -> tuple[int, list[str]]:
        async with api_server(empty_plane) as api:
            return await differences(api)

    pairs, wrong = asyncio.run(compared())
    assert not wrong, "\n".join(wrong)
    assert pairs > 12_000
