"""Contradicting policies are found when they come into force."""

from dataclasses import replace

import pytest

from config.documents import parse_documents
from webhook.engine import Engine, Params, Patch, Policy
from webhook.engine.conflicts import ConflictingPoliciesError
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
def test_two_values_for_one_field_are_rejected(one, other):
    """The message has both policies, the kind, the field and the values."""
    with pytest.raises(ConflictingPoliciesError) as error:
        Engine(in_force(one, other))
    assert str(error.value).splitlines() == [
        "a and b set Pod /metadata/labels/tier to different values: 'gold' and 'iron'",
        "a and b set WebApp /metadata/labels/tier to different values: 'gold' and 'iron'",
    ]


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
    with pytest.raises(ConflictingPoliciesError) as error:
        Engine(
            in_force("{policy: zones}", "{policy: fields}", "{policy: tiers, params: {tier: iron}}")
        )
    assert (
        str(error.value)
        == "a and c set Pod /metadata/labels/tier to different values: 'gold' and 'iron'"
    )


def test_policies_with_conditions_may_set_different_values():
    """Their conditions may exclude each other."""
    one, other = in_force("{policy: tiers}", "{policy: tiers, params: {tier: iron}}")
    for pair in (
        [one, replace(other, condition=lambda _: False)],
        [replace(one, condition=lambda _: False), other],
    ):
        assert len(Engine(pair).policies) == 2
