"""A request has its pod, its containers, and its look-ups."""

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
def test_a_pod_is_found_in_every_kind(kind, path):
    """All three container lists are found, each with the whole path."""
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
    assert (container.string("image"), container.path("image"), request.pod()) == (
        "x",
        "spec.image",
        None,
    )


@pytest.mark.parametrize(
    ("kind", "subresource"), [("HorizontalPodAutoscaler", ""), ("Deployment", "scale")]
)
def test_kinds_without_pods_have_no_containers(kind, subresource):
    """An autoscaler or a Scale has neither pod nor containers."""
    request = ask({"spec": CONTAINERS}, kind, subresource)
    assert (request.pod(), list(request.containers())) == (None, [])


def test_a_deleted_object_is_the_old_object():
    """Without an object the old one is used; without either there are no fields."""
    assert ask(None, old_object={"a": 1}, operation="DELETE").integer("a") == 1
    assert ask({"a": 2}, old_object={"a": 1}).integer("a") == 2
    assert ask(None, operation="CONNECT").integer("a") is None


def test_a_look_up_may_be_empty_but_not_missing():
    """A missing look-up is an error with its name."""
    request = ask({}, looked_up={"limit_ranges": []})
    assert request.lookup("limit_ranges") == []
    with pytest.raises(NotLookedUpError, match=r"^parent$"):
        request.lookup("parent")


def test_another_state_of_the_object_has_the_same_request():
    """User, operation and look-ups are equal."""
    request = ask({"a": 1}, old_object={"a": 0}, looked_up={"x": 1})
    other = request.with_object({"a": 2})
    assert (other.attributes, other.integer("a"), other.old_object, other.lookup("x")) == (
        request.attributes,
        2,
        {"a": 0},
        1,
    )


@pytest.mark.parametrize(
    ("sent", "metadata", "name"),
    [
        ("web", {"name": "other"}, "web"),
        ("", {"name": "web", "generateName": "shop-"}, "web"),
        ("", {"generateName": "shop-"}, "shop-xxxxx"),
        ("", {}, ""),
    ],
)
def test_the_name_is_that_of_the_request_or_of_the_object(sent, metadata, name):
    """A deletecollection has names only in the old object; a generateName counts as an incomplete name."""
    assert ask({"metadata": metadata}, name=sent).name == name
    assert ask(None, old_object={"metadata": metadata}, operation="DELETE", name=sent).name == name


@pytest.mark.parametrize("subresource", ["", "ephemeralcontainers"])
def test_selectors_select_by_the_labels_of_the_objects(subresource):
    """An object that is not there has no labels that a selector could miss."""
    pod = {"metadata": {"labels": {"a": "new"}}}
    assert list(ask(pod, "Pod", subresource).selectable()) == [{"a": "new"}]
    assert list(ask(pod, "Pod", subresource, old_object={"metadata": {}}).selectable()) == [
        {"a": "new"},
        {},
    ]
    assert list(ask(None, "Pod", subresource, old_object=pod, operation="DELETE").selectable()) == [
        {"a": "new"}
    ]
