"""URL paths of API resources."""

import pytest

from kube.resource import Resource, group_kind, group_version_kind

DEPLOYMENT = Resource("apps", "v1", "deployments", "Deployment")
NODE = Resource("", "v1", "nodes", "Node", namespaced=False)


def test_paths() -> None:
    """A path has group, namespace, name and subresource."""
    assert DEPLOYMENT.path() == "/apis/apps/v1/deployments"
    assert DEPLOYMENT.path("a") == "/apis/apps/v1/namespaces/a/deployments"
    assert DEPLOYMENT.path("a", "b", "status") == "/apis/apps/v1/namespaces/a/deployments/b/status"
    assert NODE.path(None, "n") == "/api/v1/nodes/n"
    assert (DEPLOYMENT.api_version, NODE.api_version) == ("apps/v1", "v1")


def test_a_namespace_is_given_where_there_is_one() -> None:
    """A path that would lead elsewhere is an error."""
    with pytest.raises(ValueError, match="a namespace is needed"):
        DEPLOYMENT.path(None, "b")
    with pytest.raises(ValueError, match="not namespaced"):
        NODE.path("a", "n")


def test_keys() -> None:
    """Stores and queues use keys."""
    assert (DEPLOYMENT.key("a", "b"), NODE.key(None, "n")) == ("a/b", "n")


@pytest.mark.parametrize(
    ("api_version", "group", "version"),
    [("v1", "", "v1"), ("apps/v1", "apps", "v1"), ("", "", "")],
)
def test_group_and_version_are_separated(api_version: str, group: str, version: str) -> None:
    """The core group has no name."""
    object = {"apiVersion": api_version, "kind": "X"}
    assert group_version_kind(object) == (group, version, "X")
    assert group_kind(object) == (group, "X")
