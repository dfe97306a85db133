"""Contradicting policies are found when they come into force."""

import re
from copy import deepcopy
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from config.documents import parse_documents
from webhook.engine import Engine, Params, Patch, Policy, Request
from webhook.engine.bound import outcomes_of
from webhook.engine.conflicts import (
    ConflictingPoliciesError,
    refuse_conflict,
    without_conflicts,
)
from webhook.engine.jsonpatch import Patcher
from webhook.engine.request import Attributes
from webhook.engine.violation import UNSET
from webhook.policy_sets.policy_set import load


class Tier(Params):
    """The label's value."""

    tier: str = "gold"


def mutate(request, params):
    """Set the label `tier`, and another without conflict."""
    yield Patch(("metadata", "labels", "tier"), params.tier)
    yield Patch(("metadata", "labels", "seen"), "yes")


def mutate_with_look_up(request, params):
    """Set the label `tier`, and one that must be looked up."""
    yield Patch(("metadata", "labels", "tier"), params.tier)
    yield Patch(("metadata", "labels", "zone"), request.lookup("zone"))


def mutate_by_another_field(request, _):
    """Set the label `tier` to the value of a field that the smallest object lacks."""
    yield Patch(("metadata", "labels", "tier"), request.object["spec"]["tier"])


CATALOGUE = {
    "tiers": Policy("tiers", Tier, mutate=mutate, kinds=("Pod", "WebApp")),
    "zones": Policy("zones", Tier, mutate=mutate_with_look_up, kinds=("Pod",), needs=("zone",)),
    "fields": Policy("fields", mutate=mutate_by_another_field, kinds=("Pod",)),
}
POLICY = "apiVersion: gatewright.io/v1alpha1\nkind: ClusterAdmissionPolicy\nmetadata: {{name: {}}}\nspec: {}\n"


def in_force(*specs):
    """Return the policies of these specs, named a, b, … in order."""
    text = "---\n".join(POLICY.format(name, spec) for name, spec in zip("abc", specs, strict=False))
    return load(parse_documents(text.encode(), "policies.yaml"), CATALOGUE)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("{policy: tiers}", "{policy: tiers, params: {tier: iron}}"),
        (
            "{policy: tiers}",
            "{policy: tiers, params: {tier: iron}, match: {any: [{namespaces: [a]}]}}",
        ),
        (
            "{policy: tiers, match: {any: [{namespaces: [a]}]}}",
            "{policy: tiers, params: {tier: iron}}",
        ),
        (
            "{policy: tiers, match: {any: [{namespaces: [a]}, {namespaces: [b]}]}}",
            "{policy: tiers, params: {tier: iron}, match: {any: [{namespaces: [b]}]}}",
        ),
    ],
)
def test_of_two_values_for_one_field_the_first_is_in_force(one, other):
    """The message has both policies, the kind, the field and the values."""
    engine = Engine(in_force(one, other))
    assert [each.title for each in engine.policies] == ["a"]
    ((policy, text),) = engine.conflicts
    assert policy.title == "b"
    assert text.splitlines() == [
        'a and b set Pod and WebApp metadata.labels.tier to different values: "gold" and "iron"',
    ]
    with pytest.raises(ConflictingPoliciesError, match="a and b set Pod"):
        refuse_conflict(policy, (*engine.policies, policy))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("{policy: tiers}", "{policy: tiers}"),
        (
            "{policy: tiers, match: {any: [{namespaces: [a]}]}}",
            "{policy: tiers, params: {tier: iron}, match: {any: [{namespaces: [b]}]}}",
        ),
        (
            "{policy: tiers, match: {any: [{kinds: [Pod]}]}}",
            "{policy: tiers, params: {tier: iron}, match: {any: [{kinds: [WebApp]}]}}",
        ),
    ],
)
def test_equal_values_and_other_fields_are_no_conflict(one, other):
    """Only contradictions are rejected."""
    assert len(Engine(in_force(one, other)).policies) == 2


def test_a_policy_that_needs_more_than_the_emptiest_object_comes_into_force():
    """Patches without a look-up, or before a failure, are compared; the policy still mutates real objects."""
    assert (
        len(Engine(in_force("{policy: zones}", "{policy: fields}", "{policy: tiers}")).policies)
        == 3
    )
    engine = Engine(
        in_force("{policy: zones}", "{policy: fields}", "{policy: tiers, params: {tier: iron}}")
    )
    (conflict,) = engine.conflicts
    assert (
        conflict.text
        == 'a and c set Pod metadata.labels.tier to different values: "gold" and "iron"'
    )


def test_policies_with_conditions_may_set_different_values():
    """Their conditions may exclude each other."""
    one, other = in_force("{policy: tiers}", "{policy: tiers, params: {tier: iron}}")
    for pair in (
        [one, replace(other, condition=lambda _: False)],
        [replace(one, condition=lambda _: False), other],
    ):
        assert len(Engine(pair).policies) == 2


def setting(*patches):
    """Return a policy that overwrites fields of Pods, or adds items to a list of theirs."""

    def mutate(request, _):
        for (*path, last), value in patches:
            if last == "-":
                items = [*request.object.get("spec", {}).get(path[-1], ()), value]
                yield Patch(tuple(path), items, overwrite=True)
            else:
                yield Patch((*path, last), value, overwrite=True)

    return Policy("setting", mutate=mutate, kinds=("Pod",))


LABELS, CONTAINERS = ("metadata", "labels"), ("spec", "containers")
CONTEXT, TOLERATIONS = ("spec", "securityContext"), ("spec", "tolerations")
SIDECAR = {"name": "sidecar", "image": "sidecar:1"}


@pytest.mark.parametrize(
    ("one", "other", "path"),
    [
        (((*LABELS, "a"), "x"), ((*LABELS, "b"), "y"), None),
        (((*CONTEXT, "fsGroup"), 1), ((*CONTEXT, "runAsGroup"), 1), None),
        (((*CONTEXT, "sysctls", "-"), {"name": "a"}), ((*CONTEXT, "fsGroup"), 1), None),
        ((LABELS, UNSET), (CONTEXT, {"fsGroup": 1}), None),
        ((LABELS, {"a": "x"}), (LABELS, {"a": "x"}), None),
        ((LABELS, {"a": "x"}), ((*LABELS, "a"), "x"), None),
        ((CONTEXT, {}), (CONTEXT, UNSET), None),
        (((*CONTAINERS, 0, "tty"), True), ((*CONTAINERS, "-"), SIDECAR), None),
        (((*CONTAINERS, "-"), SIDECAR), ((*CONTAINERS, "-"), {**SIDECAR, "name": "b"}), None),
        (((*TOLERATIONS, "-"), {"key": "a"}), ((*TOLERATIONS, "-"), {"key": "b"}), None),
        (
            (TOLERATIONS, [{"key": "a"}, {"key": "b"}]),
            (TOLERATIONS, [{"key": "b"}, {"key": "a"}]),
            None,
        ),
        (
            ((*CONTAINERS, 0, "image"), "a"),
            ((*CONTAINERS, 0, "image"), "b"),
            'spec.containers[name=container].image to different values: "a" and "b"',
        ),
        (
            (CONTEXT, {"runAsUser": True}),
            (CONTEXT, {"runAsUser": 1}),
            "spec.securityContext.runAsUser to different values: true and 1",
        ),
        (
            ((*LABELS, "a.b/c"), "a"),
            ((*LABELS, "a.b/c"), "b"),
            'metadata.labels[a.b/c] to different values: "a" and "b"',
        ),
        (
            (TOLERATIONS, [{"key": "a"}]),
            (TOLERATIONS, [{"key": "b"}]),
            'spec.tolerations to different values: [{"key":"a"}] and [{"key":"b"}]',
        ),
        # A whole map or list, against a part of it.
        (
            (LABELS, {"a": "x"}),
            ((*LABELS, "b"), "y"),
            'metadata.labels.b to different values: nothing and "y"',
        ),
        (
            ((*LABELS, "b"), "y"),
            (LABELS, UNSET),
            'metadata.labels.b to different values: "y" and nothing',
        ),
        (
            ((*LABELS, "b"), "y"),
            ((*LABELS, "b"), UNSET),
            'metadata.labels.b to different values: "y" and nothing',
        ),
        (
            (CONTEXT, {"fsGroup": 1}),
            (CONTEXT, {"runAsGroup": 1}),
            "spec.securityContext.runAsGroup to different values: nothing and 1\n"
            "a and b set Pod spec.securityContext.fsGroup to different values: 1 and nothing",
        ),
        (
            (CONTEXT, {}),
            ((*CONTEXT, "windowsOptions", "runAsUserName"), "me"),
            "spec.securityContext.windowsOptions.runAsUserName to different values: "
            'nothing and "me"',
        ),
        (
            (CONTEXT, None),
            ((*CONTEXT, "fsGroup"), 1),
            "spec.securityContext.fsGroup to different values: nothing and 1\n"
            "a and b set Pod spec.securityContext to different values: null and nothing",
        ),
        (
            (CONTAINERS, [SIDECAR]),
            ((*CONTAINERS, "-"), {**SIDECAR, "name": "b"}),
            'spec.containers[name=b].name to different values: nothing and "b"\n'
            "a and b set Pod spec.containers[name=b].image to different values: "
            'nothing and "sidecar:1"',
        ),
    ],
)
def test_only_an_order_that_decides_a_value_is_a_conflict(one, other, path):
    """Other keys of a map, other items of a list and equal values fit together."""
    (bound,) = in_force("{policy: tiers}")
    policies = [
        replace(bound, name=name, policy=setting(patch))
        for name, patch in (("a", one), ("b", other))
    ]
    for pair in (policies, policies[::-1]):
        assert len(Engine(pair).policies) == (2 if path is None else 1)
    found = [each.text for each in Engine(policies).conflicts]
    assert found == ([] if path is None else [f"a and b set Pod {path}"])


def test_the_lines_of_a_conflict_have_one_order():
    """Each replica reports the same text: paths are sorted, not in the order of a set."""
    (bound,) = in_force("{policy: tiers}")
    maps = [("metadata", "annotations", name) for name in "dacbfe"]
    one = replace(bound, name="a", policy=setting(*[((*path, "x"), "y") for path in maps]))
    other = replace(bound, name="b", policy=setting(*[(path, UNSET) for path in maps]))
    ((_, text),) = Engine([one, other]).conflicts
    assert text.splitlines() == [
        f'a and b set Pod metadata.annotations.{name}.x to different values: "y" and nothing'
        for name in "abcdef"
    ]


def test_the_work_is_linear_in_the_policies():
    """Each policy is run twice if all are in one place, and never if each is in its own."""
    calls = []

    def count(request, params):
        calls.append(params.tier)
        return mutate(request, params)

    catalogue = {"tiers": Policy("tiers", Tier, mutate=count, kinds=("Pod",))}
    for spec, runs in (
        ("{{policy: tiers}}", 2),
        ("{{policy: tiers, params: {{tier: t{0}}}, match: {{any: [{{namespaces: [n{0}]}}]}}}}", 0),
    ):
        text = "---\n".join(POLICY.format(f"p{each}", spec.format(each)) for each in range(30))
        policies = load(parse_documents(text.encode(), "policies.yaml"), catalogue)
        calls.clear()
        kept, conflicts = without_conflicts(each for each in policies if each.policy.mutate)
        assert (len(kept), len(conflicts), len(calls)) == (30, 0, runs * 30)


def test_a_conflict_about_many_kinds_is_one_line():
    """Three kinds are named, and the others are counted."""
    catalogue = {"tiers": replace(CATALOGUE["tiers"], kinds="all")}
    text = "---\n".join(
        POLICY.format(name, f"{{policy: tiers, params: {{tier: {name}}}}}") for name in "ab"
    )
    ((_, line),) = Engine(load(parse_documents(text.encode(), "p.yaml"), catalogue)).conflicts
    assert re.fullmatch(
        r"a and b set \w+, \w+, \w+ and \d+ more kinds: metadata.labels.tier to different values: "
        '"a" and "b"',
        line,
    )


def entries(names):
    """Return maps with some of the names, and texts or maps below them."""
    texts = st.sampled_from("xy")
    return st.dictionaries(
        st.sampled_from(names), texts | st.dictionaries(st.sampled_from(names), texts)
    )


def without_empty(value):
    """Return a value without empty maps."""
    if not isinstance(value, dict):
        return value
    return {key: kept for key, item in value.items() if (kept := without_empty(item)) != {}}


PATHS = st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map(
    lambda path: ("metadata", "annotations", *path)
)
SETTINGS = st.tuples(PATHS, st.sampled_from("xy") | entries("abc") | st.just(UNSET))


@settings(max_examples=50)
@given(st.lists(SETTINGS, min_size=2, max_size=2), entries("abc"))
def test_policies_that_fit_together_may_run_in_any_order(patches, annotations):
    """Of two that set, replace or remove a value or a whole map, the order decides nothing."""
    (bound,) = in_force("{policy: tiers}")
    policies = [
        replace(bound, name=name, policy=setting(patch))
        for name, patch in zip("ab", patches, strict=True)
    ]
    kept, conflicts = without_conflicts(policies)

    def mutate_in_turn(policies, annotations):
        object = {"metadata": {"annotations": deepcopy(annotations)}}
        for policy in policies:
            request = Request(Attributes("", "CREATE", "", "v1", "Pod", "", "pods"), object)
            outcomes_of(
                [policy],
                lambda each, request=request: Patcher(request).apply(
                    each.policy.mutate(request, each.params)
                ),
            )
        return without_empty(object)

    if not conflicts:
        assert mutate_in_turn(kept, annotations) == mutate_in_turn(kept[::-1], annotations)
