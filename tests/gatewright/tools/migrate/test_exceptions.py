"""Exceptions of Kyverno, of both of its API groups."""

import pytest

from gatewright.tools.migrate.writing import files_of, write_files
from tests.gatewright.tools.migrate.converted import cluster_policy, converted, reasons, verdict
from webhook.policy_sets.catalogue import catalogue
from webhook.server.policy_files import policy_set_of

PATTERN = {"pattern": {"metadata": {"labels": {"team": "?*"}}}}
NEAREST = "a PolicyException with `kinds`, `names` and `namespaces`"


def test_an_exception_names_the_policies_that_came_of_its_rules():
    """It has kinds, names and namespaces, and ends on the chosen day."""
    exception = {
        "apiVersion": "kyverno.io/v2",
        "kind": "PolicyException",
        "metadata": {"name": "legacy", "namespace": "kyverno"},
        "spec": {
            "exceptions": [{"policyName": "p", "ruleNames": ["r", "autogen-r"]}],
            "match": {"any": [{"resources": {"kinds": ["Pod"], "names": ["we*"]}}]},
        },
    }
    migration = converted(cluster_policy(PATTERN), exception)
    assert migration.converted[-1].spec == {
        "reason": "PolicyException kyverno/legacy of Kyverno",
        "expires": "2027-01-01T00:00:00Z",
        "exceptions": [{"policy": "p", "kinds": ["Pod"], "names": ["we*"]}],
    }
    assert verdict(migration) == "unmatched"


def test_an_exception_for_a_subresource_does_not_cover_its_object():
    """It is listed: `kinds` of an exception name no subresources."""
    exception = {
        "apiVersion": "kyverno.io/v2",
        "kind": "PolicyException",
        "metadata": {"name": "debug", "namespace": "kyverno"},
        "spec": {
            "exceptions": [{"policyName": "p", "ruleNames": ["r"]}],
            "match": {"any": [{"resources": {"kinds": ["Pod", "Pod/ephemeralcontainers"]}}]},
        },
    }
    assert reasons(cluster_policy(PATTERN), exception) == [
        ("PolicyException kyverno/debug", "it is about a subresource", NEAREST)
    ]


def test_an_exception_from_a_tenants_policy_is_in_its_namespace(tmp_path):
    """It takes effect only there; a cluster policy of the same name is not affected."""
    cluster_wide = cluster_policy(PATTERN)
    of_shop = cluster_policy(PATTERN) | {"kind": "Policy"}
    of_shop["metadata"] = of_shop["metadata"] | {"namespace": "shop"}
    exception = {
        "apiVersion": "kyverno.io/v2",
        "kind": "PolicyException",
        "metadata": {"name": "both", "namespace": "kyverno"},
        "spec": {
            "exceptions": [{"policyName": "shop/p"}, {"policyName": "p"}],
            "match": {"any": [{"resources": {"names": ["web"]}}]},
        },
    }
    migration = converted(cluster_wide, of_shop, exception)
    assert [
        (converted_object.namespace, converted_object.name, converted_object.spec["exceptions"])
        for converted_object in migration.converted[2:]
    ] == [
        ("shop", "both", [{"policy": "p", "names": ["web"]}]),
        ("", "both", [{"policy": "p", "names": ["web"]}]),
    ]
    write_files(files_of(migration), tmp_path / "ours")
    policy_set_of([tmp_path / "ours"], catalogue())
    assert verdict(migration) == "unmatched"
    assert verdict(converted(cluster_wide, of_shop)) == "denied"


def cel_policy(kind="ValidatingPolicy"):
    """Return a policy of policies.kyverno.io that wants a label, or sets it."""
    rule = {
        "apiGroups": ["apps"],
        "apiVersions": ["v1"],
        "resources": ["deployments"],
        "operations": ["CREATE"],
    }
    labels = "Object{metadata: Object.metadata{labels: {'team': 'web'}}}"
    merge = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": labels}}
    rules = {
        "ValidatingPolicy": {"validations": [{"expression": "has(object.metadata.labels.team)"}]},
        "MutatingPolicy": {"mutations": [merge]},
    }
    return {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": kind,
        "metadata": {"name": "v"},
        "spec": {"matchConstraints": {"resourceRules": [rule]}} | rules[kind],
    }


def cel_exception(*conditions, kind="ValidatingPolicy", **spec):
    """Return an exception of policies.kyverno.io."""
    named = [{"name": f"c{n}", "expression": each} for n, each in enumerate(conditions)]
    return {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "PolicyException",
        "metadata": {"name": "e", "namespace": "kyverno"},
        "spec": {"policyRefs": [{"name": "v", "kind": kind}], "matchConditions": named} | spec,
    }


@pytest.mark.parametrize(
    ("conditions", "selected", "expected"),
    [
        ((), {}, "unmatched"),
        (("object.metadata.name == 'web'",), {"names": ["web"]}, "unmatched"),
        (("object.metadata.name == 'other'",), {"names": ["other"]}, "denied"),
        (
            ('request.name in ["web", "db"]', "request.namespace == 'shop'"),
            {"names": ["web", "db"], "namespaces": ["shop"]},
            "unmatched",
        ),
        (
            ("object.metadata.name == 'web' && object.metadata.namespace == 'bank'",),
            {"names": ["web"], "namespaces": ["bank"]},
            "denied",
        ),
    ],
)
def test_conditions_about_names_and_namespaces_are_selected_by_these(
    conditions, selected, expected
):
    """All conditions must hold."""
    migration = converted(cel_policy(), cel_exception(*conditions))
    assert migration.converted[-1].spec == {
        "reason": "PolicyException kyverno/e of Kyverno",
        "expires": "2027-01-01T00:00:00Z",
        "exceptions": [{"policy": "v"} | selected],
    }
    assert verdict(migration, "Deployment") == expected


def test_an_exception_from_a_mutation_that_ends_when_kyvernos_does():
    """Its objects stay unchanged until then."""
    exception = cel_exception(
        "object.metadata.name == 'web'", kind="MutatingPolicy", expiresAt="2026-12-01T00:00:00Z"
    )
    migration = converted(cel_policy("MutatingPolicy"), exception)
    assert migration.converted[-1].spec["expires"] == "2026-12-01T00:00:00Z"
    assert verdict(migration, "Deployment") == "unmatched"
    assert verdict(converted(cel_policy("MutatingPolicy")), "Deployment") == "mutated"


@pytest.mark.parametrize(
    ("given", "reason", "nearest"),
    [
        (
            cel_exception("has(object.metadata.labels)"),
            "it tests more than names and namespaces: has(object.metadata.labels)",
            NEAREST,
        ),
        (
            cel_exception("object.metadata.name == 'a'", "request.name == 'b'"),
            "it tests more than names and namespaces: request.name == 'b'",
            NEAREST,
        ),
        (
            cel_exception(images=["nginx"]),
            "it lists images or values for the expressions of its policies",
            NEAREST,
        ),
        (
            cel_exception(kind="MutatingPolicy"),
            "no rule that it names is converted",
            "an exception from what replaces the rule",
        ),
    ],
)
def test_an_exception_that_cannot_be_shown_equal_is_listed(given, reason, nearest):
    """The nearest equivalent is listed with it."""
    assert reasons(cel_policy(), given) == [("PolicyException kyverno/e", reason, nearest)]
