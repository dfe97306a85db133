"""Exported policies on a real API server give the same verdict as the policy set, for every case of its policies."""

import asyncio
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import jsonpatch
import pytest
from jsonpointer import resolve_pointer

from config.documents import Document, documents_at
from gatewright.cli import main
from gatewright.tools.export import export
from gatewright.tools.export.counterparts import COUNTERPARTS
from gatewright.tools.export.native import TOLERATED
from tests.config.regenerate import ROOT
from tests.controlplane.plane import ControlPlane
from tests.policies.on_a_cluster.apiserver import ApiServer, Said, api_server
from tests.policies.on_a_cluster.beforehand import beforehand
from tests.policies.on_a_cluster.objects import EVERYBODY
from tests.policies.on_a_cluster.requests import Ask, creation, path_of, request_for
from tests.waiting import eventually
from webhook.engine import NAMESPACE_LABELS, Params
from webhook.engine.request import NAME_LABEL
from webhook.harness.bases import has_smallest, merge, smallest
from webhook.harness.cases import Trial, load_trials
from webhook.harness.derived import derive
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
CONNECTIONS = Path(__file__).parent / "connections.yaml"
AT_ONCE = (("gracePeriodSeconds", "0"), ("propagationPolicy", "Background"))
WAIT = 60
PARTS = 10
# Built-in policies of which updates and deletions are tried, too; others have the same match.
# Of the kinds with a pod template, one for each place of it.
TEMPLATES = (
    "Pod",
    "PodTemplate",
    "CronJob",
    "Deployment",
    "HorizontalPodAutoscaler",
    "Scale",
    "Service",
    "Ingress",
    "StatefulSet",
    "PersistentVolumeClaim",
    "PodDisruptionBudget",
    # which Kubernetes itself creates, in part
    "Namespace",
    "ServiceAccount",
    "ClusterRole",
)
CHANGED = ("privileged-containers", "host-namespaces", "service-types")


@dataclass(slots=True)
class Comparison:
    """Cases by operation and verdict, tolerated ones by policy, and what was decided otherwise."""

    compared: Counter[tuple[str, str]] = field(default_factory=Counter)
    tolerated: Counter[str] = field(default_factory=Counter)
    unexplained: list[str] = field(default_factory=list)


def trials(path: Path) -> list[Trial]:
    """Return the cases, each with its changes as well, and with a namespace for its labels."""
    found = [_placed(each) for each in load_trials(path, catalogue())]
    created = [e for e in found if e.admission.operation == "CREATE" and not e.derived]
    return [*found, *(change for each in created for change in changes(each))]


def _placed(trial: Trial) -> Trial:
    labels = _namespace_labels(trial)
    if not labels:
        return trial
    words = "-".join(["labelled", *map("-".join, sorted(labels.items()))])
    name = re.sub("[^a-z0-9]", "-", words)[-63:].strip("-")
    about = trial.admission
    old, new = (
        object and {**object, "metadata": {**object["metadata"], "namespace": name}}
        for object in (about.old_object, about.object)
    )
    looked_up = trial.looked_up | {NAMESPACE_LABELS: {NAME_LABEL: name, **labels}}
    admission = replace(about, namespace=name, old_object=old, object=new)
    return replace(trial, admission=admission, looked_up=looked_up)


def _namespace_labels(trial: Trial) -> dict[str, str]:
    given = trial.looked_up.get(NAMESPACE_LABELS) or {}
    return {key: value for key, value in given.items() if key != NAME_LABEL}


def changes(trial: Trial) -> Iterator[Trial]:
    """Yield requests of another user: a change into this object, an update without a change, and a deletion."""
    about = trial.admission
    if "name" not in about.object["metadata"]:
        return
    old, eve = about.object, replace(about, username="eve", groups=("system:authenticated",))
    changed = {
        "left alone": replace(eve, old_object=old, operation="UPDATE"),
        "deleted": replace(eve, old_object=old, object=None, operation="DELETE"),
    }
    if old["kind"] in has_smallest():
        changed["changed"] = replace(derive(about, "update"), username=eve.username)
    for how, admission in changed.items():
        yield replace(trial, name=f"{trial.name} [{how}]", admission=admission)


def judged(trial: Trial) -> tuple[str, bool]:
    """Return the verdict of the policy set, and whether it tolerates an existing violation."""
    outcomes = ask(trial.engine, trial.admission, trial.looked_up).outcomes
    is_tolerated = any(each.tolerated for each in outcomes)
    is_violated = is_tolerated or any(each.violations for each in outcomes)
    return "denied" if is_violated else "allowed", is_tolerated


def cases_file(name: str) -> Path:
    """Return the file with the cases of a built-in policy."""
    return ROOT / f"tests/policies/{name.replace('-', '_')}.yaml"


def parameters_of(name: str) -> dict[str, dict]:
    """Return the parameters of a built-in policy's cases that have exported rules, by a name."""
    found: list[Params] = []
    for trial in load_trials(cases_file(name), catalogue()):
        params = own_params(trial)
        if params not in found and COUNTERPARTS[name](params):
            found.append(params)
    return {
        f"{name}-{number}" if number else name: policy_params.model_dump(mode="json", by_alias=True)
        for number, policy_params in enumerate(found)
    }


def own_params(trial: Trial) -> Params:
    """Return the parameters of the policy whose case this is."""
    return trial.engine.policies[-1].params


def built_in(policy: str, name: str, params: dict) -> Document:
    """Return an object that names a built-in policy."""
    return Document.of_object(
        {
            "apiVersion": "gatewright.io/v1alpha1",
            "kind": "ClusterAdmissionPolicy",
            "metadata": {"name": name},
            "spec": {"policy": policy, "params": params},
        }
    )


def includes(found, wanted) -> bool:
    """Return whether a value contains another one."""
    if isinstance(wanted, dict):
        return all(includes(found.get(key), each) for key, each in wanted.items())
    return found == wanted


async def put_in_force(api: ApiServer, objects: list) -> None:
    """Create policies and bindings; violations are warnings, so that each policy is seen."""
    for object in objects:
        if object["kind"] == "ValidatingAdmissionPolicyBinding":
            object["spec"]["validationActions"] = ["Warn"]
        await api.make(Ask("POST", f"{API}/{PLURALS[object['kind']]}", object))


async def take_out_of_force(api: ApiServer, objects: list) -> None:
    """Delete the bindings of policies."""
    for object in objects:
        if object["kind"] == "ValidatingAdmissionPolicyBinding":
            path = f"{API}/{PLURALS[object['kind']]}/{object['metadata']['name']}"
            await api(Ask("DELETE", path), dry_run=False)


async def sent(api: ApiServer, trial: Trial) -> Said | None:
    """Send the request of a case as its user; return None if the API server rejects the objects."""
    about = trial.admission
    if about.namespace:
        labels = {"metadata": {"labels": _namespace_labels(trial)}}
        await api.make(creation(merge(smallest("Namespace", about.namespace), labels)))
    old = about.old_object or {}
    request = request_for(about, about.namespace)
    is_dry = about.operation != "CONNECT"  # which knows no dry run, and finds no pod here
    try:
        for object in beforehand(trial, "", about.namespace):
            await api.make(object)
        said = await api(request, about.username, about.groups, dry_run=is_dry)
    except ValueError:
        return None  # the object as it was
    finally:
        if old.get("metadata"):
            gone = path_of(old, old["metadata"]["name"], about.namespace)
            await api(Ask("DELETE", gone, query=AT_ONCE), dry_run=False)
    if said.is_refused and is_dry and not said.warnings:
        return None
    assert said.code in (200, 201, 404, 409, 422), f"{trial.where}: {trial.name}: {said.message}"
    return said


async def verdict(api: ApiServer, name: str, trial: Trial) -> str:
    """Return whether an exported policy denies; "invalid" if the API server itself rejects the object."""
    said = await sent(api, trial)
    if said is None:
        return "invalid"
    is_denied = any(f"Policy '{name}'" in each for each in said.warnings)
    return "denied" if is_denied else "allowed"


async def compare(api: ApiServer, cases: dict[str, list[Trial]], found: Comparison) -> None:
    """Compare the verdicts of the API server with those of the policy set."""
    for name, trials_of in cases.items():
        for trial in trials_of:
            expected, is_tolerated = judged(trial)
            actual = await verdict(api, name, trial)
            operation = trial.admission.operation
            if actual == "invalid":
                continue
            found.compared[operation, expected] += 1
            found.tolerated[name] += is_tolerated
            if actual != expected:
                found.unexplained.append(f"{trial.where}: {trial.name}: {actual}, not {expected}")


async def until_denied(api: ApiServer, cases: dict[str, list[Trial]]) -> None:
    """Wait until each policy denies a case that it must deny."""

    async def denies(name: str, bad: list[Trial]) -> bool:
        for trial in bad:
            actual = await verdict(api, name, trial)
            if actual != "invalid":
                return actual == "denied"
        return True  # the API server takes none of them

    for name, each in cases.items():
        bad = [trial for trial in each if judged(trial)[0] == "denied"]
        await eventually(partial(denies, name, bad), within=WAIT)


@pytest.mark.controlplane
def test_exported_rules_decide_as_the_policy_set_does(empty_plane) -> None:
    """Rules in CEL of the documentation, and built-in policies, with their own cases."""
    sets = [*SETS, CONNECTIONS]
    found = [each for each in export(documents_at(sets)) if each.objects]
    parameters = {policy: parameters_of(policy) for policy in COUNTERPARTS}
    found += export(
        [
            built_in(policy, name, params)
            for policy, by_name in parameters.items()
            for name, params in by_name.items()
        ]
    )
    objects = [object for each in found for object in each.objects]
    validating = {
        e["metadata"]["name"] for e in objects if e["kind"] == "ValidatingAdmissionPolicy"
    }
    cases = {
        path.stem: trials(path.with_suffix(".cases.yaml"))
        for path in sets
        if path.stem in validating
    }
    for policy, by_name in parameters.items():
        path = cases_file(policy)
        tried = trials(path) if policy in CHANGED else map(_placed, load_trials(path, catalogue()))
        judged_alike = [
            trial
            for trial in tried
            if not trial.admission.about["apiVersion"].startswith(("apps.gatewright", "shop."))
            and (policy in CHANGED or trial.admission.about["kind"] in TEMPLATES)
        ]
        for name, params in by_name.items():
            of_params = catalogue()[policy].params.model_validate(params)
            cases[name] = [each for each in judged_alike if own_params(each) == of_params]

    async def run() -> Comparison:
        async with api_server(empty_plane) as api:
            await api.make(creation(EVERYBODY))
            comparison = Comparison()
            # A part at a time: the API server cuts the warnings of one answer at 4 KiB.
            for part in range(PARTS):
                names = [*cases][part::PARTS]
                some = [object for each in found if each.name in names for object in each.objects]
                await put_in_force(api, some)
                of_part = {name: cases[name] for name in names}
                await until_denied(api, of_part)
                await compare(api, of_part, comparison)
                await take_out_of_force(api, some)
            return comparison

    comparison = asyncio.run(run())
    assert comparison.unexplained == []
    # what only the API server denies is listed where it was exported
    lost = {each.name: each.lost for each in found}
    assert [
        name for name, n in comparison.tolerated.items() if n and TOLERATED not in lost[name]
    ] == []
    for operation in ("CREATE", "UPDATE", "DELETE", "CONNECT"):
        for expected in ("allowed", "denied"):
            assert comparison.compared[operation, expected], f"no {operation} is {expected}"
    assert comparison.compared.total() > 800


@pytest.mark.controlplane
def test_exported_mutations_change_what_the_policy_set_changes(empty_plane) -> None:
    """A JSONPatch and an ApplyConfiguration of the documentation."""
    sets = [ROOT / f"docs/cel/{name}.yaml" for name in ("default-labels", "no-latest")]
    objects = [object for each in export(documents_at(sets)) for object in each.objects]
    tried = [each for path in sets for each in trials(path.with_suffix(".cases.yaml"))]
    cases = [each for each in tried if each.admission.operation in ("CREATE", "UPDATE")]
    assert {each.admission.operation for each in cases} == {"CREATE", "UPDATE"}

    async def changed(api: ApiServer, trial: Trial) -> bool:
        said = await sent(api, trial)
        if said is None:
            return True
        wanted = ask(trial.engine, trial.admission, trial.looked_up).object
        patch = jsonpatch.make_patch(trial.admission.object, wanted)
        return all(includes(resolve_pointer(said.body, e["path"], {}), e["value"]) for e in patch)

    async def run() -> list[str]:
        async with api_server(empty_plane) as api:
            await api.make(creation(EVERYBODY))
            await put_in_force(api, objects)
            for case in cases:
                await eventually(partial(changed, api, case), within=WAIT)
            return []

    asyncio.run(run())


@pytest.mark.controlplane
def test_an_api_server_judges_by_the_static_files_from_its_first_request(
    own_control_plane, tmp_path
) -> None:
    """KEP-5793: the files of --static, before any policy object exists; no user can remove them."""
    sets = [str(ROOT / f"docs/cel/{name}.yaml") for name in ("replica-range", "default-labels")]
    with pytest.raises(SystemExit) as ended:
        main(["export", "vap", *sets, "--static", str(tmp_path / "static")])
    assert ended.value.code == 0
    plane: ControlPlane = own_control_plane(
        parts=("etcd", "kube-apiserver"),
        audit=False,
        api_server_flags=(
            f"--admission-control-config-file={tmp_path / 'static/admission.yaml'}",
            "--feature-gates=ManifestBasedAdmissionControlConfig=true,MutatingAdmissionPolicy=true",
        ),
    )
    many = smallest("Deployment", "many", "default")
    many["spec"]["replicas"] = 99

    async def run() -> None:
        async with api_server(plane) as api:
            said = await api(creation(many), dry_run=True)
            assert said.code == 422
            assert "Policy 'replica-range.static.k8s.io' with binding" in said.message
            many["spec"]["replicas"] = 3
            said = await api(creation(many), dry_run=True)
            assert said.code == 201, said.message
            assert said.body["metadata"]["labels"]["created_by"] == "admin"
            for plural in PLURALS.values():
                said = await api(Ask("GET", f"{API}/{plural}"), dry_run=False)
                assert said.body["items"] == []

    asyncio.run(run())
