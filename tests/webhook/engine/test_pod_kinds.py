"""Custom kinds with pods: registered at startup, then judged like built-in kinds."""

import pytest

from webhook.engine import Attributes, Engine, Request
from webhook.engine.kinds import KINDS, add_pod_kind, targets
from webhook.policy_sets.bound_objects import bind
from webhook.policy_sets.catalogue import catalogue

ROLLOUT = "rollouts.argoproj.io/v1alpha1/Rollout=spec.template.spec"
SERVICE = "services.serving.knative.dev/v1/Service=spec.template.spec"
POLICY = {
    "apiVersion": "gatewright.io/v1alpha1",
    "kind": "ClusterAdmissionPolicy",
    "metadata": {"name": "images"},
    "spec": {"policy": "image-registries", "params": {"registries": ["a.io"]}},
}


@pytest.fixture(autouse=True)
def own(monkeypatch):
    """A table of kinds for one test."""
    for key in list(KINDS):
        monkeypatch.setitem(KINDS, key, KINDS[key])
    known = set(KINDS)
    yield
    for key in KINDS.keys() - known:
        del KINDS[key]


def created(group, version, kind, resource, *containers):
    """Return a request that creates an object with a pod template."""
    attributes = Attributes(
        "u-1", "CREATE", group, version, kind, group, resource, name="it", namespace="shop"
    )
    return Request(
        attributes, {"kind": kind, "spec": {"template": {"spec": {"containers": list(containers)}}}}
    )


def denied(request):
    """Return the paths at which the images of a request are not from registry a.io."""
    engine = Engine([bind(POLICY, catalogue())])
    return [
        each.path for outcome in engine.validate(request).outcomes for each in outcome.violations
    ]


def test_a_custom_kind_is_judged_by_policies_about_pods():
    """Containers are found at the configured path; before that the object is not judged."""
    request = created(
        "argoproj.io", "v1alpha1", "Rollout", "rollouts", {"name": "app", "image": "b.io/app"}
    )
    assert denied(request) == []
    add_pod_kind(ROLLOUT)
    assert denied(request) == ["spec.template.spec.containers[name=app].image"]


def test_a_custom_kind_is_among_the_judged_kinds():
    """With its group, version and plural."""
    add_pod_kind(ROLLOUT)
    (kind,) = [
        each for each in Engine([bind(POLICY, catalogue())]).judged_kinds if each.kind == "Rollout"
    ]
    assert (kind.group, kind.versions, kind.plural) == ("argoproj.io", ("v1alpha1",), "rollouts")


@pytest.mark.parametrize(
    ("text", "resources"),
    [
        ("argoproj.io/v1alpha1/Rollout=spec.template.spec", {"rollouts.argoproj.io"}),
        ("keda.sh/v1alpha1/ScaledJob=spec.jobTargetRef.template.spec", {"scaledjobs.keda.sh"}),
        ("services.serving.knative.dev/v1/Service=spec.template.spec", {SERVICE.partition("/")[0]}),
        # Either a group of three parts, or an unusual plural before one of two.
        (
            "serving.knative.dev/v1/Service=spec.template.spec",
            {"services.serving.knative.dev", "serving.knative.dev"},
        ),
    ],
)
def test_a_custom_kind_is_named_as_in_match(text, resources):
    """By apiVersion and kind, with or without the plural."""
    known = set(KINDS)
    add_pod_kind(text)
    added = [kind for key, kind in KINDS.items() if key not in known]
    assert {f"{each.plural}.{each.group}" for each in added} == resources


def test_a_path_through_a_list_is_an_error():
    """The message says what judges those pods."""
    with pytest.raises(ValueError, match="a path through a list cannot be judged here"):
        add_pod_kind("batch.volcano.sh/v1alpha1/Job=spec.tasks[].template.spec")


def test_the_path_ends_in_spec():
    """It may have any depth; the pods' metadata is beside it."""
    add_pod_kind("clones.apps.kruise.io/v1alpha1/CloneSet=spec.jobs.template.spec")
    kind = KINDS["apps.kruise.io", "CloneSet"]
    assert (kind.pod_spec, kind.pod_metadata) == (
        "spec.jobs.template.spec",
        "spec.jobs.template.metadata",
    )


def test_a_custom_kind_may_share_a_name_with_a_built_in_one():
    """A Knative Service is judged by its pods, and policies for Services still select the core kind only."""
    add_pod_kind(SERVICE)
    request = created(
        "serving.knative.dev", "v1", "Service", "services", {"name": "app", "image": "b.io/app"}
    )
    assert denied(request) == ["spec.template.spec.containers[name=app].image"]
    assert [each.keys[0] for each in targets(("Service",), ("CREATE",))] == [
        ("", "services", "", "CREATE")
    ]
    assert [each.kind.group for each in catalogue()["service-types"].targets] == [""]


@pytest.mark.parametrize(
    "text",
    ["deployments.apps/v1/Deployment=spec.template.spec", "webapps.example.com/v1/WebApp=spec"],
)
def test_a_built_in_kind_cannot_be_redefined(text):
    """Its other properties, such as /scale, would be lost."""
    known = dict(KINDS)
    with pytest.raises(
        ValueError,
        match=r"^(Deployment of apps|WebApp of example\.com) is built in; register only custom kinds",
    ):
        add_pod_kind(text)
    assert known == KINDS


def test_a_kind_may_be_registered_twice():
    """The settings file and a flag may both name it."""
    add_pod_kind(ROLLOUT)
    add_pod_kind(ROLLOUT)
    assert len([each for each in targets("pods") if each.kind.kind == "Rollout"]) == 1
