"""Mutating policies on random pods: the patch yields the mutated object, is idempotent, and changes nothing else."""

import copy
from dataclasses import replace

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.image_references import ImageReferenceError, parse_image
from config.quantities import parse_quantity
from tests.characters import CHARACTERS
from tests.policies.trials import trials_of_policy
from tests.webhook.asking import ask
from webhook.engine import BoundPolicy, Engine
from webhook.engine.jsonpatch import same
from webhook.engine.match import Match
from webhook.engine.request import MIRROR, NODES
from webhook.harness.bases import merge
from webhook.harness.reviews import ask as ask_review
from webhook.policies._images import parse_registry
from webhook.policy_sets.catalogue import catalogue

KINDS = {"Pod": ("spec",), "Deployment": ("spec", "template", "spec")}
LISTS = ("containers", "initContainers", "ephemeralContainers")


def at(value, path):
    """Return the value at a path."""
    for step in path:
        value = value[step]
    return value


def asked(policy, params):
    """Return an engine with one policy in force."""
    known = catalogue()[policy]
    return Engine(
        [BoundPolicy(policy, known, known.params(**params), Match(), frozenset({"Deny"}))]
    )


def mutated(policy, params, kind, pod, old_pod=None):
    """Mutate an object with this pod; check the properties of every mutation, and return its pod."""
    path = KINDS[kind]
    object, old = (carrying(kind, each) for each in (pod, old_pod))
    engine = asked(policy, params)
    request = ask(object, kind, old_object=old, operation="CREATE" if old is None else "UPDATE")
    verdict = engine.mutate(request)
    assert verdict.allowed, verdict
    assert same(jsonpatch.apply_patch(object, verdict.operations), verdict.object)
    assert engine.mutate(request.with_object(verdict.object)).operations == []
    assert same(without(at(verdict.object, path)), without(pod))
    return at(verdict.object, path)


def carrying(kind, pod):
    """Return an object with this pod; None for None."""
    if pod is None:
        return None
    for step in reversed(KINDS[kind]):
        pod = {step: pod}
    return {"kind": kind, "metadata": {"name": "it"}, **copy.deepcopy(pod)}


def without(pod):
    """Return a pod without the fields that mutations set: images, and resources of containers."""
    containers = {
        name: [
            {key: value for key, value in container.items() if key not in ("image", "resources")}
            for container in pod.get(name, [])
        ]
        for name in LISTS
    }
    volumes = [
        {key: value for key, value in volume.items() if key != "image"}
        for volume in pod.get("volumes", [])
    ]
    return pod | containers | {"volumes": volumes}


NAMES = st.sampled_from(["cpu", "memory", "example.com/foo"])
AMOUNTS = st.sampled_from(["0", "1m", "100m", "500m", "1", 2, 0.5, "1Gi", "1e3", "64Mi", "3Ei"])
AMOUNT_MAPS = st.none() | st.dictionaries(NAMES, AMOUNTS | st.none(), max_size=3)


def value(amount):
    """Return an amount as a number."""
    return parse_quantity(str(amount)).millis


def possible(resources):
    """Return whether the API server accepts these resources: no request exceeds its limit."""
    limits, requests = (
        (resources or {}).get("limits") or {},
        (resources or {}).get("requests") or {},
    )
    both = [name for name in limits if limits[name] is not None and requests.get(name) is not None]
    return all(value(requests[name]) <= value(limits[name]) for name in both)


def named(holder, part):
    """Return the names of the limits or requests that a pod or a container sets."""
    amounts = (holder.get("resources") or {}).get(part) or {}
    return {name for name, amount in amounts.items() if amount is not None}


def shared_by_all(pod):
    """Return the pod-level resources.

    With a pod-level limit, the API server sets pod-level requests of the cpu and memory that containers request.
    """
    whole = named(pod, "limits") | named(pod, "requests")
    if not named(pod, "limits"):
        return whole
    containers = [each for name in LISTS for each in pod.get(name, [])]
    requested = {
        name
        for container in containers
        for part in ("limits", "requests")
        for name in named(container, part)
    }
    return whole | requested & {"cpu", "memory"}


RESOURCES = (
    st.none() | st.fixed_dictionaries({}, optional={"limits": AMOUNT_MAPS, "requests": AMOUNT_MAPS})
).filter(possible)
CONTAINERS = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from("abc")}, optional={"resources": RESOURCES}),
    max_size=3,
    unique_by=lambda container: str(container["name"]),
)
PODS = st.fixed_dictionaries(
    {"containers": CONTAINERS},
    optional={"initContainers": CONTAINERS, "resources": RESOURCES, "hostname": st.just("h")},
)
DEFAULTS = st.fixed_dictionaries(
    {
        "limits": st.dictionaries(NAMES, AMOUNTS, min_size=1),
        "requests": st.dictionaries(NAMES, AMOUNTS),
    }
).filter(possible)


@given(DEFAULTS, st.sampled_from(sorted(KINDS)), PODS)
def test_resource_defaults_contradict_nothing(params, kind, pod):
    """Set amounts stay, no request exceeds its limit, and every limit is set unless the pod has a pod-level one."""
    after = mutated("resource-defaults", params, kind, pod)
    shared = shared_by_all(pod)
    for name in LISTS:
        for was, container in zip(pod.get(name, []), after.get(name, []), strict=True):
            assert possible(container.get("resources"))
            for part in ("limits", "requests"):
                said = ((was.get("resources") or {}).get(part)) or {}
                now = ((container.get("resources") or {}).get(part)) or {}
                assert all(now[key] == amount for key, amount in said.items() if amount is not None)
                assert {
                    key for key in now if said.get(key) is None and now[key] is not None
                }.isdisjoint(shared)
            limits = (container.get("resources") or {}).get("limits") or {}
            assert all(limits.get(key) is not None for key in params["limits"] if key not in shared)


@given(DEFAULTS, PODS, PODS)
def test_resource_defaults_leave_containers_that_an_update_does_not_change(params, old_pod, pod):
    """Containers with unchanged resources, and existing Pods, do not change."""
    after = mutated("resource-defaults", params, "Deployment", pod, old_pod)
    for name in LISTS:
        old = {each["name"]: each.get("resources") or {} for each in old_pod.get(name, [])}
        for was, container in zip(pod.get(name, []), after.get(name, []), strict=True):
            if old.get(was["name"]) == (was.get("resources") or {}):
                assert container == was
    assert mutated("resource-defaults", params, "Pod", pod, old_pod) == pod


TEXT = st.sampled_from(["", "NGINX", "nginx:", "a/../b", "nginx@sha256:1", " nginx"]) | st.text(
    CHARACTERS, max_size=10
)
REFERENCES = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(
        [
            "",
            "docker.io/",
            "index.docker.io/",
            "GHCR.io/",
            "ghcr.io/team/",
            "quay.io/",
            "m.example/hub/",
        ]
    ),
    st.sampled_from(["nginx", "team/app", "team-evil/app", "library/x", "a/b/c"]),
    st.sampled_from(["", ":1", ":latest"]),
    st.sampled_from(["", f"@sha256:{'a' * 64}"]),
)
IMAGED = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from("abc")}, optional={"image": REFERENCES | TEXT | st.none()}
    ),
    max_size=3,
    unique_by=lambda container: str(container["name"]),
)
VOLUMES = st.lists(
    st.fixed_dictionaries(
        {"name": st.just("v"), "image": st.fixed_dictionaries({"reference": REFERENCES | TEXT})}
    )
    | st.just({"name": "w", "emptyDir": {}}),
    max_size=2,
)
IMAGED_PODS = st.fixed_dictionaries(dict.fromkeys(LISTS, IMAGED) | {"volumes": VOLUMES})
MIRRORS = {"docker.io": "m.example/hub", "ghcr.io/team": "[::1]:80", "ghcr.io": "m.example/ghcr"}


def images(pod):
    """Return the images with their paths."""
    found = {
        (name, index): each.get("image") for name in LISTS for index, each in enumerate(pod[name])
    }
    return found | {
        index: each.get("image", {}).get("reference") for index, each in enumerate(pod["volumes"])
    }


@given(st.sampled_from(sorted(KINDS)), IMAGED_PODS)
def test_registry_rewrite_changes_the_registry_and_nothing_else(kind, pod):
    """Tag, digest and the rest of the path stay; no image is left in a registry that has a mirror."""
    after = images(mutated("registry-rewrite", {"mirrors": MIRRORS}, kind, pod))
    for place, was in images(pod).items():
        try:
            old = parse_image(was or "")
        except ImageReferenceError:
            assert after[place] == was
            continue
        new = parse_image(after[place])
        assert (new.tag, new.digest) == (old.tag, old.digest)
        assert new.repository.endswith(old.repository.removeprefix("team/"))
        assert (after[place] == was) == (old.registry not in ("docker.io", "ghcr.io"))
        assert not any(parse_registry(registry).holds(new) for registry in MIRRORS)


@given(IMAGED_PODS, IMAGED_PODS)
def test_registry_rewrite_leaves_images_that_an_update_does_not_change(old_pod, pod):
    """Existing images do not change, with or without a mirror."""
    after = mutated("registry-rewrite", {"mirrors": MIRRORS}, "Deployment", pod, old_pod)
    for name in LISTS:
        old = {each["name"]: each.get("image") for each in old_pod[name]}
        for was, container in zip(pod[name], after[name], strict=True):
            if old.get(was["name"]) == was.get("image"):
                assert container == was


@pytest.mark.parametrize("policy", ["resource-defaults", "registry-rewrite"])
def test_a_pod_without_containers_is_left_alone(policy):
    """Null lists are absent lists."""
    params = {"limits": {"cpu": "1"}} if policy == "resource-defaults" else {"mirrors": MIRRORS}
    pod = dict.fromkeys((*LISTS, "volumes"))
    assert asked(policy, params).mutate(ask(carrying("Pod", pod))).operations == []


MUTATING = [
    name
    for name, policy in catalogue().items()
    if policy.mutate is not None and any(each.kind.kind == "Pod" for each in policy.targets)
]


@pytest.mark.parametrize("name", MUTATING)
def test_no_policy_changes_a_mirror_pod(name):
    """The kubelet runs a static pod as its file says, whatever its mirror shows."""
    annotation = {"metadata": {"annotations": {MIRROR: "1"}}}
    changed = 0
    for trial in trials_of_policy(name):
        own = trial.admission
        if own.operation != "CREATE" or own.about["kind"] != "Pod":
            continue
        pod = merge(own.object, annotation)
        by_user, by_node = (
            ask_review(trial.engine, replace(own, object=pod, groups=groups), trial.looked_up)
            for groups in (own.groups, (NODES,))
        )
        changed += by_user.object not in (pod, None)
        assert by_node.object in (pod, None)
    assert changed
