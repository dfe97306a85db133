"""What is exported decides on a real API server as the policy set does: every case of its policies."""

import asyncio
from pathlib import Path

import jsonpatch
import pytest
from jsonpointer import resolve_pointer

from config.documents import Document
from gatewright.checks.policy_files import policy_documents
from gatewright.export import export
from gatewright.export.counterparts import COUNTERPARTS
from tests.config.regenerate import ROOT
from tests.controlplane.plane import ControlPlane
from tests.policies.on_a_cluster.apiserver import ApiServer, api_server
from tests.policies.on_a_cluster.requests import Ask, creation, request_for
from webhook.engine import NAMESPACE_LABELS
from webhook.engine.request import NAME_LABEL
from webhook.harness.bases import smallest
from webhook.harness.cases import Trial, load_trials
from webhook.harness.reviews import ask
from webhook.policy_sets.catalogue import catalogue

API = "/apis/admissionregistration.k8s.io/v1"
PLURALS = {
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
    "MutatingAdmissionPolicy": "mutatingadmissionpolicies",
    "MutatingAdmissionPolicyBinding": "mutatingadmissionpolicybindings",
}
CEL = sorted((ROOT / "docs/cel").glob("*.yaml"))
SETS = [path for path in CEL if not path.name.endswith(".cases.yaml")]
WAIT = 60  # seconds until the API server evaluates a new policy, on a busy machine


def trials(path: Path) -> list[Trial]:
    """Return the creations of a case file whose namespace has no labels of its own."""
    return [
        each
        for each in load_trials(path, catalogue())
        if each.admission.operation == "CREATE"
        and not each.admission.subresource
        and not set(each.looked_up.get(NAMESPACE_LABELS) or {}) - {NAME_LABEL}
        and each.admission.username == "kubernetes-admin"
    ]


def is_denied(trial: Trial) -> bool:
    """Return whether a case expects a violation."""
    return not isinstance(trial.expect, str)


def built_in(name: str) -> Document:
    """Return an object that names a built-in policy."""
    return Document.of_object(
        {
            "apiVersion": "gatewright.io/v1alpha1",
            "kind": "ClusterAdmissionPolicy",
            "metadata": {"name": name},
            "spec": {"policy": name},
        }
    )


def includes(found, wanted) -> bool:
    """Return whether a value has all that is wanted."""
    if isinstance(wanted, dict):
        return all(includes(found.get(key), each) for key, each in wanted.items())
    return found == wanted


async def put_in_force(api: ApiServer, objects: list) -> None:
    """Create policies and bindings; violations are warnings, so that each policy is seen."""
    for each in objects:
        if each["kind"] == "ValidatingAdmissionPolicyBinding":
            each["spec"]["validationActions"] = ["Warn"]
        await api.make(Ask("POST", f"{API}/{PLURALS[each['kind']]}", each))


async def verdict(api: ApiServer, name: str, trial: Trial) -> str:
    """Return whether an exported policy denies; "invalid" for what the API server itself refuses."""
    said = await api(request_for(trial.admission, trial.admission.namespace), dry_run=True)
    if said.is_refused:
        return "invalid"
    assert said.code == 201, f"{trial.where}: {said.message}"
    return "denied" if any(f"Policy '{name}'" in each for each in said.warnings) else "allowed"


async def compared(api: ApiServer, cases: dict[str, list[Trial]]) -> list[str]:
    """Return the cases that the API server decides otherwise."""
    wrong = []
    for name, each in cases.items():
        for trial in each:
            expected = "denied" if is_denied(trial) else "allowed"
            if trial.admission.namespace:
                namespace = {"apiVersion": "v1", "kind": "Namespace",
                             "metadata": {"name": trial.admission.namespace}}  # fmt: skip
                await api.make(creation(namespace))
            found = await verdict(api, name, trial)
            if found not in (expected, "invalid"):
                wrong.append(f"{trial.where}: {trial.name}: {found}, not {expected}")
    return wrong


async def until_denied(api: ApiServer, cases: dict[str, list[Trial]]) -> None:
    """Wait until each policy denies the first case that it must deny."""
    for name, each in cases.items():
        bad = next(filter(is_denied, each))
        async with asyncio.timeout(WAIT):
            while await compared(api, {name: [bad]}):  # noqa: ASYNC110  no event says so
                await asyncio.sleep(0.1)


@pytest.mark.controlplane
def test_exported_rules_decide_as_the_policy_set_does(own_control_plane) -> None:
    """Rules in CEL of the documentation, and built-in policies, with their own cases."""
    plane: ControlPlane = own_control_plane(parts=("etcd", "kube-apiserver"), audit=False)
    found = [each for each in export(policy_documents(SETS)) if each.objects]
    found += export([built_in(name) for name in COUNTERPARTS])
    objects = [object for each in found for object in each.objects]
    validating = {
        e["metadata"]["name"] for e in objects if e["kind"] == "ValidatingAdmissionPolicy"
    }
    cases = {
        name: trials(ROOT / f"docs/cel/{name}.cases.yaml") for name in validating - {*COUNTERPARTS}
    }
    for name in COUNTERPARTS:
        path = ROOT / f"tests/policies/{name.replace('-', '_')}.yaml"
        cases[name] = [
            each
            for each in trials(path)
            if not each.admission.object["apiVersion"].startswith(("apps.gatewright", "shop."))
            and each.engine.policies[-1].params == catalogue()[name].params()
        ]
    cases = {name: each for name, each in cases.items() if any(map(is_denied, each))}

    async def run() -> list[str]:
        async with api_server(plane) as api:
            await put_in_force(api, objects)
            await until_denied(api, cases)
            return await compared(api, cases)

    assert asyncio.run(run()) == []
    assert sum(map(len, cases.values())) > 50


@pytest.mark.controlplane
def test_exported_mutations_change_what_the_policy_set_changes(own_control_plane) -> None:
    """A JSONPatch and an ApplyConfiguration of the documentation."""
    plane: ControlPlane = own_control_plane(parts=("etcd", "kube-apiserver"), audit=False)
    sets = [ROOT / f"docs/cel/{name}.yaml" for name in ("default-labels", "no-latest")]
    objects = [object for each in export(policy_documents(sets)) for object in each.objects]
    cases = [each for path in sets for each in trials(path.with_suffix(".cases.yaml"))]
    assert len(cases) > 1

    async def changed(api: ApiServer, trial: Trial) -> bool:
        where = trial.admission.namespace
        await api.make(creation(smallest("Namespace", where)))
        said = await api(request_for(trial.admission, where), dry_run=True)
        assert said.code == 201, said.message
        wanted = ask(trial.engine, trial.admission, trial.looked_up).object
        patch = jsonpatch.make_patch(trial.admission.object, wanted)
        return all(includes(resolve_pointer(said.body, e["path"], {}), e["value"]) for e in patch)

    async def run() -> list[str]:
        async with api_server(plane) as api:
            await put_in_force(api, objects)
            async with asyncio.timeout(WAIT):
                while not all([await changed(api, e) for e in cases]):  # noqa: ASYNC110
                    await asyncio.sleep(0.1)
            return []

    asyncio.run(run())
