"""The difference between a stored object and the desired one."""

from typing import Any

import pytest

from controller.runtime.diff import difference, digest

PORT = {"port": 80, "protocol": "TCP"}
BINDING = {"apiVersion": "rbac.authorization.k8s.io/v1"}
POLICY = {"apiVersion": "networking.k8s.io/v1"}
MOUNTS = [{"name": "data", "mountPath": "/a"}, {"name": "data", "mountPath": "/b"}]


@pytest.mark.parametrize(
    ("stored", "desired", "path"),
    [
        ({"a": 1, "b": 2}, {"a": 1}, None),
        ({"a": 1}, {"a": 2}, "a"),
        ({}, {"a": {"b": 1}}, "a"),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, "a.b"),
        ({}, {"a": {}, "b": [], "c": None}, None),
        ({"selector": {"app": "a", "hand": "made"}}, {"selector": {"app": "a"}}, "selector"),
        ({"labels": {"app": "a", "hand": "made"}}, {"labels": {"app": "a"}}, None),
        (
            {"limits": {"cpu": "1", "memory": "1Gi"}},
            {"limits": {"cpu": "1000m", "memory": "1024Mi"}},
            None,
        ),
        ({"limits": {"cpu": "1"}}, {"limits": {"cpu": 2}}, "limits.cpu"),
        (
            {"env": [{"name": "B"}, {"name": "A", "value": "1"}]},
            {"env": [{"name": "A", "value": "1"}]},
            None,
        ),
        (
            {"env": [{"name": "A", "value": "1"}]},
            {"env": [{"name": "A", "value": "2"}]},
            "env[0].value",
        ),
        ({"env": [{"name": "B"}]}, {"env": [{"name": "A"}]}, "env"),
        ({"env": [{"name": "A"}]}, {"env": [{"name": "A", "value": ""}]}, None),
        (
            {"env": [{"name": "A", "value": "x"}]},
            {"env": [{"name": "A", "value": ""}]},
            "env[0].value",
        ),
        ({"data": {}}, {"data": {"key": ""}}, "data.key"),
        ({"ports": [PORT | {"targetPort": 8080}]}, {"ports": [{"port": 80}]}, None),
        ({"ports": [PORT]}, {"ports": [PORT | {"protocol": "UDP"}]}, "ports"),
        ({"volumeMounts": MOUNTS}, {"volumeMounts": MOUNTS}, None),
        (
            {"volumeMounts": [*MOUNTS, {"name": "x", "mountPath": "/c"}]},
            {"volumeMounts": MOUNTS[::-1]},
            None,
        ),
        ({"volumeMounts": MOUNTS[:1]}, {"volumeMounts": MOUNTS}, "volumeMounts"),
        ({"args": ["a", "b"]}, {"args": ["a"]}, "args"),
        ({"args": ["a"]}, {"args": ["b"]}, "args[0]"),
        (
            {**BINDING, "subjects": [{"name": "devs"}, {"name": "mallory"}]},
            {**BINDING, "subjects": [{"name": "devs"}]},
            "subjects",
        ),
        (
            {**POLICY, "spec": {"ingress": [{"ports": [PORT, {"port": 22}]}]}},
            {**POLICY, "spec": {"ingress": [{"ports": [PORT]}]}},
            "spec.ingress[0].ports",
        ),
        (
            {**BINDING, "metadata": {"ownerReferences": [{"uid": "1"}, {"uid": "2"}]}},
            {**BINDING, "metadata": {"ownerReferences": [{"uid": "2"}]}},
            None,
        ),
    ],
)
def test_a_stored_object_must_contain_what_is_desired(
    stored: Any, desired: Any, path: str | None
) -> None:
    """Defaults and other writers' fields do not count; the first field that differs is named."""
    assert difference(stored, desired) == path


def test_a_digest_is_the_same_in_every_process() -> None:
    """The digest is stored in an annotation: neither the order of keys nor the process changes it."""
    assert digest({"a": 1, "b": [2]}) == digest({"b": [2], "a": 1}) == "bc4dd3b9c65854fc"
