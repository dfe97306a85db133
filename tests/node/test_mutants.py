"""A version of Gatewright that judges a preset's cases differently does not become ready."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.node.conftest import Figures
from tests.node.installation import WEBHOOK, Installation
from tests.node.release import NAMESPACE

pytestmark = [pytest.mark.node, pytest.mark.long]

ROOT = Path(__file__).parents[2]
# A module, and a change of it like those of `gatewright test --mutate`: text, and other text.
SAME = ("webhook/policies/replica_limits.py", "if number > most:", "if number > most:")
MUTANTS = (
    ("webhook/policies/replica_limits.py", "if number > most:", "if number >= most:"),
    ("webhook/policies/image_registries.py", "in self.parsed[0]:", "in self.parsed[1]:"),
    ("webhook/engine/match.py", "self.names is not None and", "self.names is None and"),
    (
        "webhook/engine/bound.py",
        "if self.namespace is None else",
        "if self.namespace is not None else",
    ),
    ("webhook/engine/containers.py", "if items is None:", "if items is not None:"),
    (
        "webhook/engine/violation.py",
        "return self.field if self.holder is None",
        "return self.field if self.holder is not None",
    ),
)
DEPLOYMENT = "deployment/gatewright-webhook"
MODULE = "module"  # the volume of a changed module
PACKAGES = "import webhook, pathlib; print(pathlib.Path(webhook.__path__[0]).parent)"


@pytest.fixture
def labelled(installed: Installation) -> Iterator[Installation]:
    """An installation; the pods, ConfigMaps and the rollout of the test are undone after it."""
    yield installed
    template = installed.cluster.get(DEPLOYMENT, NAMESPACE)["spec"]["template"]["spec"]
    if any(volume["name"] == MODULE for volume in template.get("volumes", ())):
        installed.cluster.kubectl("rollout", "undo", DEPLOYMENT, "-n", NAMESPACE)
        installed.cluster.kubectl("rollout", "status", DEPLOYMENT, "-n", NAMESPACE)
    installed.cluster.kubectl(
        "delete", "pods,configmaps", "-l", "mutant", "-n", NAMESPACE, "--grace-period=0", "--force"
    )


def test_each_mutant_that_changes_a_verdict_is_not_ready(
    labelled: Installation, figure: Figures
) -> None:
    """Each is a pod of the webhook, with one line of its code changed; the one without is ready.

    The rollout of one stops: the pods before it serve.
    """
    kubectl = labelled.cluster.kubectl
    exec = ("exec", DEPLOYMENT, "-n", NAMESPACE, "--")
    packages = kubectl(*exec, "/opt/gatewright/bin/python", "-c", PACKAGES).strip()
    webhook = labelled.cluster.get(DEPLOYMENT, NAMESPACE)
    for number, change in enumerate((SAME, *MUTANTS)):
        for object in _objects(webhook["spec"]["template"]["spec"], packages, number, *change):
            kubectl("apply", "-f-", input=object)
    same, *mutants = (f"mutant-{number}" for number in range(len(MUTANTS) + 1))
    labelled.until("the pod that is not changed is ready", lambda: _is_ready(labelled, same))
    for name, (module, text, other) in zip(mutants, MUTANTS, strict=True):
        labelled.until(f"{name} names a case", lambda name=name: 'case "' in _why(labelled, name))
        assert not _is_ready(labelled, name)
        case = _why(labelled, name).partition('case "')[2].partition('"')[0]
        figure(f"{module}: `{text}` changed to `{other}`: not ready, case {case!r}")
    assert labelled.verdicts() == [False, False]
    before = {pod["metadata"]["name"] for pod in labelled.pods(WEBHOOK)}
    changed = json.dumps({"spec": {"template": {"spec": _with_module(1, packages, MUTANTS[0][0])}}})
    kubectl("patch", DEPLOYMENT, "-n", NAMESPACE, "-p", changed)

    def new_pods() -> list[str]:
        names = (pod["metadata"]["name"] for pod in labelled.pods(WEBHOOK))
        return [name for name in names if name not in before]

    labelled.until(
        "the new pod names a case",
        lambda: any('case "' in _why(labelled, name) for name in new_pods()),
    )
    (new,) = new_pods()
    assert not _is_ready(labelled, new)
    assert all(_is_ready(labelled, name) for name in before)
    status = labelled.cluster.get(DEPLOYMENT, NAMESPACE)["status"]
    assert (status["availableReplicas"], status["unavailableReplicas"]) == (len(before), 1)
    figure(f"the rollout stops: {len(before)} pods serve, the new one is not ready")


def _with_module(number: int, packages: str, module: str) -> dict[str, Any]:
    """Return what a pod's spec gets, to have the changed module of a mutant."""
    mount = {"name": MODULE, "mountPath": f"{packages}/{module}", "subPath": "module.py"}
    volume = {"name": MODULE, "configMap": {"name": f"mutant-{number}"}}
    return {"containers": [{"name": "webhook", "volumeMounts": [mount]}], "volumes": [volume]}


def _objects(
    spec: dict[str, Any], packages: str, number: int, module: str, text: str, other: str
) -> Iterator[dict[str, Any]]:
    """Yield a ConfigMap with the changed module, and a pod of the webhook that has it."""
    name, source = f"mutant-{number}", (ROOT / module).read_text()
    assert source.count(text) == 1
    metadata = {"name": name, "namespace": NAMESPACE, "labels": {"mutant": str(number)}}
    changed = {"module.py": source.replace(text, other)}
    yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": changed}
    pod = json.loads(json.dumps(spec))
    pod.pop("topologySpreadConstraints", None)
    more = _with_module(number, packages, module)
    pod.setdefault("volumes", []).extend(more["volumes"])
    pod["containers"][0].setdefault("volumeMounts", []).extend(
        more["containers"][0]["volumeMounts"]
    )
    yield {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod}


def _is_ready(installation: Installation, name: str) -> bool:
    status = installation.cluster.get(f"pod/{name}", NAMESPACE).get("status") or {}
    ready = [each["status"] for each in status.get("conditions", ()) if each["type"] == "Ready"]
    return ready == ["True"]


def _why(installation: Installation, name: str) -> str:
    """Return what a pod says about its readiness."""
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/http:{name}:8081/proxy/readyz"
    return installation.cluster.api.request("GET", path)[1].decode()
