"""Security contexts of the pod and of each container; containers inherit the pod's."""

import pytest

from tests.webhook.asking import ask
from webhook.policies._security_contexts import contexts, in_user_namespace, is_windows, missing

PATH = "securityContext.runAsUser"


def test_contexts_of_the_pod_and_of_each_container():
    """Init and ephemeral containers may set one too; a WebApp has only its container's."""
    context = {"securityContext": {"runAsUser": 1}}
    lists = {
        "containers": ("a", context),
        "initContainers": ("b", context),
        "ephemeralContainers": ("c", context),
    }
    pod = {each: [{"name": name, **set}, {"name": "none"}] for each, (name, set) in lists.items()}
    template = {"spec": {"template": {"spec": pod | context}}}
    assert [each.path() for each in contexts(ask(template, "Deployment"))] == [
        "spec.template.spec",
        "spec.template.spec.containers[name=a]",
        "spec.template.spec.initContainers[name=b]",
        "spec.template.spec.ephemeralContainers[name=c]",
    ]
    assert [each.path() for each in contexts(ask({"spec": context}, "WebApp"))] == ["spec"]
    assert contexts(ask({"spec": {}}, "WebApp")) == []


@pytest.mark.parametrize(
    ("pod", "windows", "user_namespace"),
    [
        ({}, False, False),
        ({"os": {"name": "linux"}, "hostUsers": True}, False, False),
        ({"os": {"name": "windows"}, "hostUsers": None}, True, False),
        ({"os": None, "hostUsers": False}, False, True),
    ],
)
def test_pods_that_rules_skip(pod, windows, user_namespace):
    """Only fields of the pod count; null is absent."""
    spec = ask({"spec": pod}).pod()
    assert (is_windows(spec), in_user_namespace(spec)) == (windows, user_namespace)
    assert (is_windows(None), in_user_namespace(None)) == (False, False)


def test_a_field_of_the_pod_is_inherited():
    """Without it, each container that does not set the field is reported."""
    containers = [
        {"name": "a", "securityContext": {"runAsUser": 0}},
        {"name": "b", "securityContext": None},
    ]
    unset = ask({"spec": {"containers": containers}})
    assert [(each.path, each.found, each.fix) for each in missing(unset, PATH, "must be")] == [
        (f"spec.containers[name=b].{PATH}", "unset here and on the pod", "set it, best on the pod")
    ]
    on_the_pod = ask({"spec": {"containers": containers, "securityContext": {"runAsUser": 5}}})
    assert list(missing(on_the_pod, PATH, "must be")) == []


def test_a_webapp_has_no_pod_context():
    """Only its container is reported."""
    (found,) = missing(ask({"spec": {}}, "WebApp"), PATH, "must be")
    assert (found.path, found.found, found.fix) == (f"spec.{PATH}", "unset", "set it")
