"""What exists, as plain values."""

from controller.runtime.given import Given
from kube.resource import Resource

CONFIGMAP = Resource("", "v1", "configmaps", "ConfigMap")


def test_given_finds_children_by_resource_and_name() -> None:
    """Plain values stand in for the caches."""
    child = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    seen = Given(children=[child])
    assert seen.child(CONFIGMAP, "a") == child
    assert seen.child(CONFIGMAP, "b") is None
