"""What mutators become changes Pods on a real API server as it does here, and as Gatekeeper would."""

import json
from typing import Any

import pytest

from config.documents import Document
from gatewright.tools.export import export
from tests.gatewright.tools.migrate.converted import converted
from tests.gatewright.tools.migrate.test_mutators import assign, exists, missing, mutator

USER = "spec.containers[name:*].securityContext.runAsUser"
CAPABILITIES = "spec.containers[name:*].securityContext.capabilities"
MUTATORS = [
    assign(USER, 1000, pathTests=[missing(USER)]),
    assign(
        "spec.containers[name: side].terminationMessagePath",
        "/tmp/end",
        pathTests=[exists("spec.containers[name: side]")],
    ),
    assign("spec.containers[name:*].ports[containerPort:*].protocol", "UDP"),
    assign('spec.nodeSelector."example.com/pool"', "a"),
    mutator("AssignImage", "spec.containers[name:*].image", assignDomain="reg.example.com",
            assignTag=":v2"),
    mutator("ModifySet", f"{CAPABILITIES}.add", values={"fromList": ["KILL", "CHOWN"]}),
    mutator("ModifySet", f"{CAPABILITIES}.drop", values={"fromList": ["ALL"]}, operation="prune"),
]  # fmt: skip
CONTAINERS = [
    {
        "name": "app",
        "image": "localhost:5000/team/app:v1",
        "ports": [{"containerPort": 1}, {"containerPort": 2}],
        "securityContext": {
            "runAsUser": 5,
            "capabilities": {"add": ["CHOWN"], "drop": ["ALL", "NET_RAW"]},
        },
    },
    {"name": "side", "image": "alpine@sha256:" + "a" * 64},
]
CHANGED: list[dict[str, Any]] = [
    {
        "name": "app",
        "image": "reg.example.com/team/app:v2",
        "ports": [
            {"containerPort": 1, "protocol": "UDP"},
            {"containerPort": 2, "protocol": "UDP"},
        ],
        "securityContext": {
            "runAsUser": 5,
            "capabilities": {"add": ["CHOWN", "KILL"], "drop": ["NET_RAW"]},
        },
    },
    {
        "name": "side",
        "image": "reg.example.com/alpine:v2",
        "terminationMessagePath": "/tmp/end",
        "securityContext": {"runAsUser": 1000, "capabilities": {"add": ["KILL", "CHOWN"]}},
    },
]
TRIES = 100


@pytest.mark.controlplane
def test_the_api_server_changes_what_gatekeeper_would(empty_plane):
    """Lists, path tests, parts of images and sets, each beside the others."""
    empty_plane.create_namespace("shop")
    migration = converted(*MUTATORS)
    assert [each.reason for each in migration.unconverted] == []
    exported = list(export(Document.of_object(each.object) for each in migration.converted))
    assert [each.lost for each in exported] == [[]] * len(MUTATORS)
    policies = [object for each in exported for object in each.objects]
    items = {"apiVersion": "v1", "kind": "List", "items": policies}
    empty_plane.kubectl("apply", "-f", "-", input=items)
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"containers": CONTAINERS, "automountServiceAccountToken": False},
    }
    spec = {}
    for _ in range(TRIES):  # the API server has a policy after a moment
        dry_run = ("create", "--dry-run=server", "-o", "json", "-f", "-")
        spec = json.loads(empty_plane.kubectl(*dry_run, input=pod).stdout)["spec"]
        found = [
            {key: each.get(key) for key in wanted}
            for each, wanted in zip(spec["containers"], CHANGED, strict=True)
        ]
        if found == CHANGED and "nodeSelector" in spec:
            break
    assert found == CHANGED
    assert spec["nodeSelector"] == {"example.com/pool": "a"}
