"""A request knows its pod, its containers, and what was looked up for it."""

import pytest

from tests.webhook.asking import ask
from webhook.engine import NotLookedUpError

CONTAINERS = {
    "containers": [{"name": "a"}],
    "initContainers": [{"name": "b"}],
    "ephemeralContainers": [{"name": "c"}],
}


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("Pod", "spec"),
        ("PodTemplate", "template.spec"),
        ("ReplicationController", "spec.template.spec"),
        ("DaemonSet", "spec.template.spec"),
        ("Deployment", "spec.template.spec"),
        ("ReplicaSet", "spec.template.spec"),
        ("StatefulSet", "spec.template.spec"),
        ("Job", "spec.template.spec"),
        ("CronJob", "spec.jobTemplate.spec.template.spec"),
    ],
)
def test_a_pod_is_found_wherever_a_kind_carries_it(kind, path):
    """All three sorts of containers are found, each with its whole path."""
    object = CONTAINERS
    for step in reversed(path.split(".")):
        object = {step: object}
    request = ask(object, kind)
    assert request.pod().value == CONTAINERS
    assert [container.path() for container in request.containers()] == [
        f"{path}.containers[name=a]",
        f"{path}.initContainers[name=b]",
        f"{path}.ephemeralContainers[name=c]",
    ]
    assert len(list(request.containers(ephemeral=False))) == 2


def test_a_webapp_is_a_container():
    """Its spec is the one container, and there is no pod."""
    request = ask({"spec": {"image": "x"}}, "WebApp")
    (container,) = request.containers()
    assert (container.string("image"), container.path("image"), request.pod()) == ("x", "spec.image", None)


@pytest.mark.parametrize(("kind", "subresource"), [("HorizontalPodAutoscaler", ""), ("Deployment", "scale")])
def test_what_carries_no_pod_has_no_containers(kind, subresource):
    """An autoscaler or a Scale has neither pod nor containers."""
    request = ask({"spec": CONTAINERS}, kind, subresource)
    assert (request.pod(), list(request.containers())) == (None, [])


def test_what_is_deleted_is_read_from_the_old_object():
    """Without an object the old one is read; without either there are no fields."""
    assert ask(None, old_object={"a": 1}, operation="DELETE").integer("a") == 1
    assert ask({"a": 2}, old_object={"a": 1}).integer("a") == 2
    assert ask(None, operation="CONNECT").integer("a") is None


def test_what_was_looked_up_can_be_empty_but_not_missing():
    """An empty answer is an answer; none is an error that names what is missing."""
    request = ask({}, looked_up={"limit_ranges": []})
    assert request.lookup("limit_ranges") == []
    with pytest.raises(NotLookedUpError, match=r"^parent$"):
        request.lookup("parent")


def test_another_state_of_the_object_is_the_same_request():
    """What is said beside the object stays."""
    request = ask({"a": 1}, old_object={"a": 0}, looked_up={"x": 1})
    other = request.with_object({"a": 2})
    assert (other.attributes, other.integer("a"), other.old_object, other.lookup("x")) == (
        request.attributes,
        2,
        {"a": 0},
        1,
    )
