"""Planned children are judged with their parent: by every policy, for every kind, as if they were applied."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.api.webapp import WebApp
from config.defaulting import fill_crd_defaults
from config.documents import parse_documents, read_documents
from config.settings import Settings, planner_settings
from controller.reconcilers import planned_kinds
from controller.runtime.kind import PlannedKind
from gatewright.processes.planners import planner, planners_of
from tests.webhook.asking import in_force
from tests.webhook.test_any_review import PLANNERS, TEXT
from webhook.engine import (
    NAMESPACE_LABELS,
    NOW,
    SERVED,
    Engine,
    Params,
    Planners,
    Policy,
    Request,
    Violation,
)
from webhook.engine.image_look_ups import IMAGE_LOOK_UPS
from webhook.engine.kinds import KINDS
from webhook.engine.look_ups import LOOK_UPS, with_object
from webhook.harness.reviews import Admission, ask
from webhook.policy_sets.catalogue import catalogue
from webhook.policy_sets.policy_set import load

SAMPLES = Path(__file__).parents[3] / "config" / "samples"
RULE = re.compile(r"; (.*?)\. ")
TODAY = datetime(2026, 11, 21, tzinfo=UTC)
POLICIES = [  # except those that read registries
    policy
    for policy in load(parse_documents(TEXT.encode(), "all.yaml"), catalogue())
    if IMAGE_LOOK_UPS.isdisjoint(policy.needs)
]
OBJECTS = [
    fill_crd_defaults(document.value)
    for file in sorted(SAMPLES.glob("*.yaml"))
    for document in read_documents(file)
    if document.value["kind"] in {kind.resource.kind for kind in planned_kinds()}
]
PRODUCTION = load(read_documents(SAMPLES.parent / "policies" / "production.yaml"), catalogue())
IMAGES = ("nginx:latest", f"mirror.company.com/hub/app@sha256:{'a' * 64}")
USER = {"username": PLANNERS.controller_user.username, "groups": PLANNERS.controller_user.groups}
LOOKED_UP = {NAMESPACE_LABELS: {}, NOW: TODAY, SERVED: ()} | {name: [] for name in LOOK_UPS}


def found(answer):
    """Return policy and rule of each denial, without field names."""
    causes = answer.response.get("status", {}).get("details", {}).get("causes", ())
    return [(cause["reason"], RULE.search(cause["message"])[1]) for cause in causes]


def children(object, namespace):
    """Return the planned children of an object, complete with their namespace."""
    group = object["apiVersion"].partition("/")[0]
    (about,) = (
        planner
        for planner in PLANNERS
        if (planner.kind.group, planner.kind.kind) == (group, object["kind"])
    )
    return [
        child.object
        for child in about.plan(
            object | {"metadata": object["metadata"] | {"namespace": namespace}}, TODAY, ()
        ).children
    ]


@pytest.mark.long
@given(
    st.sampled_from(OBJECTS),
    st.lists(st.sampled_from(POLICIES), unique_by=lambda each: each.name),
    st.data(),
)
def test_parent_and_children_have_one_verdict(parent, policies, data):
    """A parent is denied if and only if it, or one of its children, would be denied alone, for the same reasons."""
    always = [policy for policy in POLICIES if policy.policy.always and policy not in policies]
    whole, alone = (Engine([*policies, *always], planners) for planners in (PLANNERS, Planners()))
    parent = parent | {"spec": _changed(parent["spec"], data)}
    admission = Admission(object=parent, namespace="shop")
    answer, expected = ask(whole, admission, LOOKED_UP), found(ask(alone, admission, LOOKED_UP))
    looked_up = LOOKED_UP
    for child in children(answer.object, "shop"):
        sent = ask(
            whole, Admission(object=fill_crd_defaults(child), namespace="shop", **USER), looked_up
        )
        expected += found(sent)
        looked_up = with_object(looked_up, sent.object, "shop")
    assert set(found(answer)) == set(expected)
    assert answer.allowed is (not expected)


def _changed(spec, data):
    """Return a spec with some numbers and images changed."""
    changed = {}
    for name, value in spec.items():
        if isinstance(value, dict):
            changed[name] = _changed(value, data)
        elif name == "image":
            changed[name] = data.draw(st.sampled_from([value, *IMAGES]))
        elif name == "replicas":
            changed[name] = data.draw(st.sampled_from([1, value, 5]))
        else:
            changed[name] = value
    return changed


def test_children_are_judged_with_the_controllers_settings():
    """Images come from the same registry in both processes, and the account is that of the installation."""
    settings = Settings(registry="registry.company.com", controller_account="maker")
    assert planner_settings(settings) == {"registry": "registry.company.com"}
    assert (
        planners_of(settings, "gates").controller_user.username
        == "system:serviceaccount:gates:maker"
    )
    assert [each.kind.kind for each in planners_of(Settings(kinds=["webapp"]), "gates")] == [
        "WebApp"
    ]


@pytest.mark.parametrize("sample", OBJECTS, ids=lambda each: each["metadata"]["name"])
def test_every_sample_can_be_planned(sample):
    """Its children have the kinds that its planner declares, and the API server's defaults."""
    group = sample["apiVersion"].partition("/")[0]
    (about,) = (
        planner
        for planner in PLANNERS
        if (planner.kind.group, planner.kind.kind) == (group, sample["kind"])
    )
    children = about.plan(sample, TODAY, ()).children
    assert all(each.kind in about.child_kinds for each in children)
    assert [each.object for each in children] == [
        fill_crd_defaults(child.object) for child in children
    ]


def test_available_apis_decide_the_plan():
    """A ServiceMonitor if its API is served, otherwise annotations on the Services."""
    sample = next(each for each in OBJECTS if each["kind"] == "EcommercePlatform")
    platforms = PLANNERS.of(KINDS["platform.example.com", "EcommercePlatform"])
    monitors = {("monitoring.coreos.com", "servicemonitors")}
    made = {
        bool(served): platforms.plan(sample, TODAY, served).children for served in ((), monitors)
    }
    kinds = {served: {each.object["kind"] for each in found} for served, found in made.items()}
    annotated = {
        served: any(
            "annotations" in child.object["metadata"]
            for child in found
            if child.object["kind"] == "Service"
        )
        for served, found in made.items()
    }
    assert kinds[True] - kinds[False] == {"ServiceMonitor"}
    assert annotated == {True: False, False: True}


def test_a_type_error_is_a_violation_of_its_field():
    """Each invalid field is a separate violation."""
    webapp = {"metadata": {"name": "shop"}, "spec": {"replicas": 11, "port": "http"}}
    planned = PLANNERS.of(KINDS["example.com", "WebApp"]).plan(webapp, TODAY, ())
    assert [each.message for each in planned.refused] == [
        "spec.replicas: 11; should be less than or equal to 10. Correct it.",
        "spec.image: missing; it is required. Add it.",
        'spec.port: "http"; should be a valid integer. Correct it.',
    ]


def test_text_that_no_child_can_have_is_a_violation_of_its_field():
    """A value that the API server would reject in the CronJob, or in its pods, is denied in the Backup."""
    backup = {
        "metadata": {"name": "shop"},
        "spec": {
            "serviceAccountName": "Bad Name!",
            "destination": {"secretRef": {"name": "Shop", "key": "a/b"}},
        },
    }
    planned = PLANNERS.of(KINDS["backup.example.com", "Backup"]).plan(backup, TODAY, ())
    name = "not a valid object name. Use lower-case letters, digits, '-' and '.'."
    key = "not a valid key of a Secret or a ConfigMap. Use letters, digits, '-', '_' and '.'."
    assert [each.message for each in planned.refused] == [
        f'spec.destination.secretRef.name: "Shop"; {name}',
        f'spec.destination.secretRef.key: "a/b"; {key}',
        f'spec.serviceAccountName: "Bad Name!"; {name}',
    ]


def polite(request: Request, params: Params) -> Iterator[Violation]:
    """Report an upper-case question."""
    if (question := request.string("data.question")) and question.isupper():
        yield Violation(
            "data.question", f'"{question}"', "must not shout", "write it in lower case"
        )


@pytest.mark.parametrize(
    ("version", "field"), [("v1", "spec.poll.question"), ("v1alpha1", "spec.question")]
)
def test_a_denial_names_the_fields_of_the_request_version(version, field):
    """The API server converts the object before it is judged; message and cause name the sender's field."""
    engine = Engine([in_force(Policy("polite", validate=polite, kinds=("ConfigMap",)))], PLANNERS)
    group, kind = "voting.schoolofdevops.com", "VoteConfig"
    spec = {"poll": {"question": "WHICH?"}, "options": [{"id": "cats"}]}
    vote = {"apiVersion": f"{group}/v1", "kind": kind, "metadata": {"name": "pets"}, "spec": spec}
    admission = Admission(object=vote, namespace="shop", sent=(group, version, kind))
    status = ask(engine, admission, LOOKED_UP).response["status"]
    said = f'{field}: "WHICH?"; must not shout. Write it in lower case.'
    assert status["message"] == f"1 violation\n- polite: {said}"
    assert status["details"]["causes"] == [{"reason": "polite", "message": said, "field": field}]


RULES = """
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata: {name: required-labels}
spec: {policy: required-labels, params: {labels: {team: "team-*"}}}
---
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata: {name: pods-labels}
spec: {policy: required-labels, params: {where: pods, labels: {team: "team-*", company.com/cost: "*"}}}
---
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata: {name: storage-classes}
spec: {policy: storage-classes, params: {allowed: [fast]}}
"""


def told(parent, *names):
    """Return the verdict of the named policies of RULES, and of those always in force."""
    policies = list(load(parse_documents(RULES.encode(), "rules.yaml"), catalogue()))
    engine = Engine(
        [each for each in policies if each.name in names or each.policy.always], PLANNERS
    )
    answer = ask(engine, Admission(object=parent, namespace="shop"), LOOKED_UP)
    return [
        cause["message"]
        for cause in answer.response.get("status", {}).get("details", {}).get("causes", ())
    ]


def images(object):
    """Yield every image in an object."""
    for key, value in object.items() if isinstance(object, dict) else enumerate(object):
        if key == "image":
            yield value
        elif isinstance(value, dict | list):
            yield from images(value)


@pytest.mark.parametrize("registry", ["", "r.example"])
def test_every_image_chosen_by_a_planner_is_known(registry):
    """These images are in a child but not in its parent."""
    planners = planners_of(Settings(registry=registry), "gates")
    kinds = {(each.kind.group, each.kind.kind): each for each in planners}
    left, chosen = list(OBJECTS), set()
    while left:
        parent = left.pop()
        kind = kinds.get((parent["apiVersion"].partition("/")[0], parent["kind"]))
        for made in kind.plan(fill_crd_defaults(parent), TODAY, ()).children if kind else ():
            chosen |= set(images(made.object)) - set(images(parent))
            left.append(made.object)
    assert [each for each in sorted(chosen) if not planners.is_chosen(each)] == []
    names = {each.rpartition("/")[2].partition(":")[0] for each in chosen}
    assert names == {
        "pause",
        "gatewright-postgresql",
        "postgres-exporter",
        "rabbitmq",
        "valkey",
        "gatewright-backup-postgresql",
    }


PUSH = "Push it there, or ask for an exception."
SET = PUSH.replace(
    ",", " and set Gatewright's registry to it (chart value registry, flag --registry),"
)


def test_a_denied_default_image_names_the_setting():
    """The setting is named in a denial of the parent and of the child; never for a user's image."""
    engine = Engine([each for each in PRODUCTION if each.name == "image-registries"], PLANNERS)
    cache = {"resources": {"limits": {"memory": "1Gi"}}}
    spec = {"database": {"type": "mysql"}, "cache": cache, "frontend": {"image": "nginx:1.21"}}
    stack = {
        "apiVersion": "app.example.com/v1",
        "kind": "AppStack",
        "metadata": {"name": "shop"},
        "spec": spec,
    }
    (deployment,) = (
        child
        for child in children(stack, "production")
        if child["metadata"]["name"] == "shop-cache" and child["kind"] == "Deployment"
    )

    def said(object, **user):
        answer = ask(
            engine,
            Admission(object=fill_crd_defaults(object), namespace="production", **user),
            LOOKED_UP,
        )
        return [each["message"] for each in answer.response["status"]["details"]["causes"]]

    rule = "comes from docker.io; images must come from approved registry registry.company.com"
    image = "spec.template.spec.containers[name=cache].image"
    assert said(stack) == [
        f'spec.database.version: "mysql:8.4" {rule}. {SET}',
        f'Deployment/shop-cache: {image}: "valkey/valkey:8.1" {rule}. {SET}',
        f'spec.frontend.image: "nginx:1.21" {rule}. {PUSH}',
    ]
    assert said(deployment, **USER) == [f'{image}: "valkey/valkey:8.1" {rule}. {SET}']
    assert said(deployment) == [f'{image}: "valkey/valkey:8.1" {rule}. {PUSH}']


@pytest.mark.parametrize("sample", OBJECTS, ids=lambda each: each["metadata"]["name"])
def test_a_required_label_is_reported_for_the_parent_only(sample):
    """Without it there is one violation, of the parent's label; with it, all children have it too."""
    missing = (
        "metadata.labels[team]: missing; the label is required, with a value like team-*. Add it."
    )
    assert told(sample, "required-labels") == [missing]
    labelled = sample | {"metadata": sample["metadata"] | {"labels": {"team": "team-shop"}}}
    assert told(labelled, "required-labels") == []


def test_a_label_that_is_not_inherited_is_reported_for_the_child():
    """A prefixed label is missing on the Deployment, even if the WebApp has it."""
    labels = {"team": "team-shop", "company.com/cost": "7"}
    webapp = {
        "apiVersion": "example.com/v1",
        "kind": "WebApp",
        "metadata": {"name": "shop", "labels": labels},
    }
    assert told(webapp | {"spec": {"replicas": 1, "image": "nginx"}}, "pods-labels") == [
        "Deployment/shop: spec.template.metadata.labels[company.com/cost]: missing; the label is required. "
        "Add it."
    ]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"storageClassName": "slow"}, 'spec.storageClassName: "slow"'),
        ({"backup": {"enabled": True}}, "spec.storageClassName: missing"),
    ],
)
def test_a_storage_class_is_reported_once(spec, field):
    """One field of the parent sets the class of all claims, so there is one violation."""
    database = {
        "apiVersion": "database.example.com/v1",
        "kind": "PostgreSQL",
        "metadata": {"name": "db"},
    }
    said = told(database | {"spec": spec}, "storage-classes")
    assert [line.partition(";")[0] for line in said] == [field]


def test_a_planner_that_raises_is_an_error():
    """A kind whose plan fails denies its objects, because its children are unknown."""

    def plan(webapp, observed, now):
        raise ZeroDivisionError(webapp.name)

    engine = Engine([], Planners([planner(PlannedKind(WebApp, plan=plan), {})]))
    webapp = {"apiVersion": "example.com/v1", "kind": "WebApp", "metadata": {"name": "shop"}}
    answer = ask(
        engine,
        Admission(object=webapp | {"spec": {"replicas": 1, "image": "x"}}, namespace="shop"),
        LOOKED_UP,
    )
    assert (answer.response["status"]["code"], answer.response["status"]["message"]) == (
        500,
        "1 policy failure\n- webapp-plan: failed with an internal error (ZeroDivisionError). "
        "Tell those who run Gatewright.",
    )
