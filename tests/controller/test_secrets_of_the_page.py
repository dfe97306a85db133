"""The policy of docs/operations.md that limits the controller's changes of Secrets, on a real API server."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controlplane.plane import ControlPlane
from tests.waiting import until

pytestmark = pytest.mark.controlplane

PAGE = Path("docs/operations.md").read_text()
USER = "system:serviceaccount:gatewright-system:gatewright-controller-manager"
PARENT = {"gatewright.io/parent": "PostgreSQL.database.example.com/shop"}


@pytest.fixture
def plane(control_plane: ControlPlane, namespace: str) -> Iterator[ControlPlane]:
    """The policy is in force, and the controller may patch the Secrets of the namespace."""
    text = (
        PAGE.partition("**Changes of Secrets.**")[2].partition("```yaml\n")[2].partition("```")[0]
    )
    policy = list(yaml.safe_load_all(text))
    for object in policy:
        control_plane.kubectl("apply", "-f-", input=object)
    role = ("create", "role", "patches", "--verb=get,patch", "--resource=secrets")
    control_plane.kubectl(*role, "-n", namespace)
    binding = ("create", "rolebinding", "patches", "--role=patches", f"--user={USER}")
    control_plane.kubectl(*binding, "-n", namespace)
    yield control_plane
    for object in policy:
        control_plane.kubectl("delete", object["kind"].lower(), object["metadata"]["name"])


def test_only_own_secrets_are_adopted_and_no_data_changes(
    plane: ControlPlane, namespace: str
) -> None:
    """An owner reference on a marked Secret passes; other Secrets, and data, do not."""
    for name, annotations in (("own", PARENT), ("other", {})):
        metadata = {"name": name, "namespace": namespace, "annotations": annotations}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}
        plane.kubectl("create", "-f-", input={**secret, "stringData": {"password": "a"}})

    def patch(name: str, patch: dict[str, Any]) -> str:
        as_controller = ("-n", namespace, f"--as={USER}", "--type=merge", "-p", json.dumps(patch))
        return plane.kubectl("patch", "secret", name, *as_controller, check=False).stderr

    label = {"metadata": {"labels": {"adopted": "yes"}}}
    denied = "the controller changes only Secrets that it created"
    until(lambda: denied in patch("other", label), within=30)
    assert "the controller changes no data" in patch("own", {"data": {"password": "Yg=="}})
    assert "the controller changes no data" in patch("own", {"data": None})
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "shop", "uid": "1"}
    assert patch("own", {"metadata": {"ownerReferences": [owner]}}) == ""
