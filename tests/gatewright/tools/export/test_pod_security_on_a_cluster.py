"""The exported levels of Pod Security decide on a real API server as Kubernetes' library does."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml

from config.documents import Document
from gatewright.tools.export import export
from tests.controlplane.fixtures import available
from tests.gatewright.tools.export.sets import policy
from tests.gatewright.tools.export.test_on_a_cluster import put_in_force
from tests.policies.on_a_cluster.apiserver import ApiServer, api_server
from tests.policies.on_a_cluster.requests import creation
from tests.policies.test_pod_security_fixtures import library_of_pods
from tests.waiting import eventually
from tests.webhook.asking import ask
from webhook.policies import pod_security
from webhook.policies.pod_security import PodSecurity

VERSION = "1.36"
LEVELS = ("baseline", "restricted")
FEWEST = 170  # pods of both levels
BAD = {"hostNetwork": True, "containers": [{"name": "a", "image": "a"}]}


def pods(directory: Path, level: str) -> dict[str, dict[str, Any]]:
    """Return the pods of a level in Kubernetes' own tests, by verdict and name."""
    found = {}
    for file in sorted(directory.glob(f"{level}/v{VERSION}/*/*.yaml")):
        pod = yaml.safe_load(file.read_text())
        pod["metadata"]["namespace"] = "default"
        found[f"{file.parent.name}/{level}/{file.stem}"] = pod
    return found


def deployment_of(pod: dict[str, Any]) -> dict[str, Any]:
    """Return a Deployment of a pod, which always restarts."""
    labels = {"app": "a"}
    metadata = {"labels": labels, "annotations": pod["metadata"].get("annotations") or {}}
    spec = {key: each for key, each in pod["spec"].items() if key != "restartPolicy"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "a", "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": metadata, "spec": spec},
        },
    }


def levels() -> list[Document]:
    """Return a policy for each level."""
    return [
        Document.of_object(
            policy(level, policy="pod-security", params={"level": level, "version": VERSION})
        )
        for level in LEVELS
    ]


async def denied(api: ApiServer, object: dict[str, Any]) -> set[str] | None:
    """Return the levels that deny an object; None if the API server refuses it itself."""
    said = await api(creation(object), dry_run=True)
    found = {each for each in LEVELS if any(f"Policy '{each}'" in line for line in said.warnings)}
    return None if said.code not in (200, 201) and not found else found


@pytest.mark.controlplane
def test_exported_levels_decide_as_kubernetes_does(
    empty_plane, pytestconfig: pytest.Config
) -> None:
    """Each pod, and a Deployment of it, is denied where the library and the policy deny it."""
    directory = available(pytestconfig, library_of_pods)
    objects = [object for each in export(levels()) for object in each.objects]
    bad = {"apiVersion": "v1", "kind": "Pod", "spec": BAD,
           "metadata": {"name": "a", "namespace": "default"}}  # fmt: skip

    async def run() -> tuple[list[str], int]:
        differences, compared = list[str](), 0
        async with api_server(empty_plane) as api:
            await put_in_force(api, objects)

            async def is_in_force() -> bool:
                return await denied(api, bad) == {*LEVELS}

            await eventually(is_in_force, within=60)
            for level in LEVELS:
                params = PodSecurity(level=level, version=VERSION)
                for name, pod in pods(directory, level).items():
                    for object in (pod, deployment_of(pod)):
                        found = await denied(api, object)
                        if found is None:
                            continue
                        compared += 1
                        ours = list(pod_security.validate(ask(object, object["kind"]), params))
                        verdicts = (level in found, bool(ours), name.startswith("fail"))
                        if len({*verdicts}) > 1:
                            differences.append(f"{name}: {object['kind']}: {verdicts}")
        return differences, compared

    differences, compared = asyncio.run(run())
    assert differences == []
    assert compared >= FEWEST
