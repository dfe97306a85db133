"""Custom kinds with pods: registered at startup, then judged like built-in kinds."""

from datetime import UTC, datetime

import pytest

from webhook.engine import Attributes, Engine, Request
from webhook.engine.conflicts import without_conflicts
from webhook.engine.exceptions import AppliedExceptions
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
        violation.path
        for outcome in engine.validate(request).outcomes
        for violation in outcome.violations
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
        judged
        for judged in Engine([bind(POLICY, catalogue())]).judged_kinds
        if judged.kind == "Rollout"
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


VOLCANO = "batch.volcano.sh/v1alpha1/Job=spec.tasks[].template.spec"
RAY = "ray.io/v1/RayCluster=spec.{}.template.spec"


def whole(kind, spec, old=None, **metadata):
    """Return a request about an object of a kind in volcano.sh or ray.io."""
    group, version = {"Job": ("batch.volcano.sh", "v1alpha1")}.get(kind, ("ray.io", "v1"))
    operation = "CREATE" if old is None else "UPDATE"
    plural = f"{kind.lower()}s"
    about = (group, version, kind, group, plural)
    attributes = Attributes("u-1", operation, *about, name="it", namespace="shop")
    objects = [
        None if content is None else {"kind": kind, "metadata": metadata, "spec": content}
        for content in (spec, old)
    ]
    return Request(attributes, *objects)


def template(image, **spec):
    """Return a template of a pod with one container."""
    pod = {"containers": [{"name": "app", "image": image}], **spec}
    return {"metadata": {"labels": {"of": image}}, "spec": pod}


def task(name, image, **spec):
    """Return a task of a Volcano Job."""
    return {"name": name, "template": template(image, **spec)}


def engine_of(policy, params=None, **spec):
    """Return an engine of one built-in policy."""
    value = {"policy": policy, "params": params or {}, **spec}
    return Engine([bind(POLICY | {"spec": value}, catalogue())])


def violations(engine, request):
    """Return the paths of new violations and of tolerated ones."""
    found = engine.validate(request).outcomes
    assert not any(each.error or each.malformed for each in found), found
    return (
        [each.path for outcome in found for each in outcome.violations],
        [each.path for outcome in found for each in outcome.tolerated],
    )


def test_each_pod_of_a_list_is_judged():
    """Violations name the item of the list; a list that is absent has no pods."""
    add_pod_kind(VOLCANO)
    tasks = [task("one", "a.io/a"), task("two", "b.io/b"), {"name": "none"}]
    assert denied(whole("Job", {"tasks": tasks})) == [
        "spec.tasks[name=two].template.spec.containers[name=app].image"
    ]
    assert denied(whole("Job", {})) == []


def test_a_kind_may_have_several_paths():
    """Named one after the other; a path with a list and one without."""
    add_pod_kind(RAY.format("headGroupSpec"))
    add_pod_kind(RAY.format("workerGroupSpecs[]"))
    groups = [{"template": template("b.io/b")}]
    spec = {"headGroupSpec": {"template": template("c.io/c")}, "workerGroupSpecs": groups}
    assert denied(whole("RayCluster", spec)) == [
        "spec.headGroupSpec.template.spec.containers[name=app].image",
        "spec.workerGroupSpecs[0].template.spec.containers[name=app].image",
    ]


def test_an_item_of_a_wrong_type_is_malformed():
    """As a container of a wrong type is."""
    add_pod_kind(VOLCANO)
    (outcome,) = Engine([bind(POLICY, catalogue())]).validate(whole("Job", {"tasks": [1]})).outcomes
    assert outcome.malformed.path == "spec.tasks[0]"


def test_an_update_tolerates_what_the_same_pod_had():
    """Not what another pod of the list had, and neither what a new one has."""
    add_pod_kind(VOLCANO)
    engine = engine_of("host-namespaces")
    old = {"tasks": [task("one", "a", hostPID=True), task("two", "a")]}
    new = {"tasks": [task("two", "a", hostPID=True), task("one", "b", hostPID=True)]}
    new["tasks"].append(task("three", "a", hostPID=True))
    path = "spec.tasks[name={}].template.spec.hostPID".format
    assert violations(engine, whole("Job", new, old)) == (
        [path("two"), path("three")],
        [path("one")],
    )


def test_a_field_beside_the_pods_is_one_violation():
    """New, or as it was before a pod was added."""
    add_pod_kind(VOLCANO)
    engine = engine_of("required-labels", {"labels": {"team": "*"}})
    old, new = ({"tasks": [task(name, "a") for name in names]} for names in ("ab", "bcd"))
    assert violations(engine, whole("Job", new)) == (["metadata.labels[team]"], [])
    assert violations(engine, whole("Job", new, old)) == ([], ["metadata.labels[team]"])


def test_policies_about_two_pods_compare_the_same_one():
    """An update may not change the account of a pod; a new pod has none before."""
    add_pod_kind(VOLCANO)
    engine = engine_of("service-account-changes")
    old = {"tasks": [task("one", "a", serviceAccountName="x"), task("two", "a")]}
    new = {"tasks": [task("two", "a"), task("one", "a", serviceAccountName="y"), task("new", "a")]}
    assert violations(engine, whole("Job", new, old)) == (
        ["spec.tasks[name=one].template.spec.serviceAccountName"],
        [],
    )


def test_labels_of_each_pod_are_selected():
    """A policy with a podSelector judges the object if it selects one of its pods."""
    add_pod_kind(VOLCANO)
    match = {"any": [{"podSelector": {"matchLabels": {"of": "b"}}}]}
    engine = engine_of("host-namespaces", match=match)
    for image, number in (("b", 1), ("c", 0)):
        tasks = [task("one", "a"), task("two", image, hostPID=True)]
        assert len(violations(engine, whole("Job", {"tasks": tasks}))[0]) == number


def test_an_exception_covers_one_container():
    """By its name, in each pod of the list."""
    add_pod_kind(VOLCANO)
    exception = {
        "apiVersion": "gatewright.io/v1alpha1",
        "kind": "PolicyException",
        "metadata": {"name": "old", "namespace": "gatewright-system"},
        "spec": {
            "reason": "old",
            "expires": "2100-01-01T00:00:00Z",
            "exceptions": [{"policy": "images", "containers": ["app"]}],
        },
    }
    policy, bound = (bind(each, catalogue()) for each in (POLICY, exception))
    engine = Engine(AppliedExceptions("gatewright-system").apply((policy,), (bound,)))
    tasks = [task("one", "b.io/b"), task("two", "b.io/b")]
    tasks[1]["template"]["spec"]["containers"][0]["name"] = "other"
    request = whole("Job", {"tasks": tasks}).with_looked_up(
        {"now": datetime(2026, 1, 1, tzinfo=UTC)}
    )
    assert violations(engine, request) == (
        ["spec.tasks[name=two].template.spec.containers[name=other].image"],
        [],
    )


def test_each_pod_of_a_list_is_changed():
    """Defaults are set in all of them, once; a second request changes nothing."""
    add_pod_kind(VOLCANO)
    engine = engine_of("security-defaults")
    object = {"kind": "Job", "metadata": {}, "spec": {"tasks": [task("a", "a"), task("b", "a")]}}
    request = whole("Job", object["spec"])
    patched = engine.mutate(request)
    assert {each["path"].split("/")[3] for each in patched.operations} == {"0", "1"}
    for each in request.object["spec"]["tasks"]:
        assert each["template"]["spec"]["securityContext"]["runAsNonRoot"] is True
    assert engine.mutate(whole("Job", request.object["spec"])).operations == []


def test_expressions_see_the_object_once():
    """A rule in CEL is evaluated for the object, not for each of its pods."""
    add_pod_kind(VOLCANO)
    rule = {"expression": "object.spec.tasks.size() > 2", "message": "too few"}
    spec = {"match": {"any": [{"kinds": ["batch.volcano.sh/v1alpha1/Job"]}]}, "validations": [rule]}
    engine = Engine([bind(POLICY | {"spec": spec}, catalogue())])
    (outcome,) = engine.validate(whole("Job", {"tasks": [task("a", "a"), task("b", "a")]})).outcomes
    assert [each.message for each in outcome.violations] == ["too few"]


def test_policies_that_set_one_field_of_a_listed_pod_conflict():
    """They are compared in an object with one pod at each path."""
    add_pod_kind(VOLCANO)
    match = {"any": [{"kinds": ["batch.volcano.sh/v1alpha1/Job"]}]}
    one, other = (
        bind(
            POLICY
            | {
                "metadata": {"name": f"add-{limit}"},
                "spec": {
                    "policy": "resource-defaults",
                    "params": {"limits": {"cpu": limit}},
                    "match": match,
                },
            },
            catalogue(),
        )
        for limit in ("1", "2")
    )
    (conflict,) = without_conflicts([one, other])[1]
    assert "spec.tasks" in conflict.text
