"""A field that no converter knows is never dropped: the policy is not converted."""

import copy
import random

import pytest

from gatewright.tools.migrate.known_fields import unknown_fields
from tests.gatewright.tools.migrate.converted import cluster_policy, converted
from tests.gatewright.tools.migrate.test_gatekeeper import constraint, template

CONSTRAINTS = {
    "resourceRules": [
        {
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "operations": ["CREATE"],
            "resources": ["configmaps"],
        }
    ],
    "namespaceSelector": {"matchLabels": {"a": "b"}},
}
CHECKS = (
    {"pattern": {"metadata": {"labels": {"a": "?*"}}}},
    {"deny": {"conditions": {"all": [{"key": "{{request.object.metadata.name}}", "operator": "Equals",
                                     "value": "a"}]}}},
    {"podSecurity": {"level": "baseline", "version": "latest"}},
    {"cel": {"expressions": [{"expression": "true", "message": "m"}]}},
    {"foreach": [{"list": "request.object.spec.containers", "pattern": {"image": "a*"}}]},
)  # fmt: skip
# Their values are free: names of labels, patterns, parameters.
FREE = {"metadata", "pattern", "matchLabels", "parameters", "status"}


def policies():
    """Return policies of each sort, all of which are converted."""
    found = [
        cluster_policy(check | {"message": "m"}, name=f"p{at}") for at, check in enumerate(CHECKS)
    ]
    preconditions = {"all": [{"key": "{{request.operation}}", "operator": "Equals",
                              "value": "CREATE"}]}  # fmt: skip
    found.append(cluster_policy(CHECKS[0], exclude={"any": [{"resources": {"namespaces": ["a"]}}]},
                                preconditions=preconditions, name="q"))  # fmt: skip
    found.append(
        {
            "apiVersion": "policies.kyverno.io/v1",
            "kind": "ValidatingPolicy",
            "metadata": {"name": "v"},
            "spec": {
                "matchConstraints": CONSTRAINTS,
                "validations": [{"expression": "true"}],
                "variables": [{"name": "a", "expression": "1"}],
                "evaluation": {"admission": {"enabled": True}},
                "autogen": {"podControllers": {"controllers": []}},
            },
        }
    )
    found.append(
        {
            "apiVersion": "mutations.gatekeeper.sh/v1",
            "kind": "Assign",
            "metadata": {"name": "m"},
            "spec": {
                "applyTo": [{"groups": [""], "kinds": ["Pod"], "versions": ["v1"]}],
                "location": "spec.hostNetwork",
                "parameters": {
                    "assign": {"value": False},
                    "pathTests": [{"subPath": "spec", "condition": "MustExist"}],
                },
            },
        }
    )
    selected = {"kinds": [{"apiGroups": [""], "kinds": ["Pod"]}],
                "labelSelector": {"matchLabels": {"a": "b"}}}  # fmt: skip
    found.append(constraint("K8sImageDigests", match=selected))
    return found


def places(value, free=False):
    """Yield the mappings whose fields have a meaning."""
    if isinstance(value, dict):
        if not free:
            yield value
        for key, each in value.items():
            yield from places(each, free or key in FREE)
    elif isinstance(value, list):
        for item in value:
            yield from places(item, free)


@pytest.mark.parametrize("given", policies(), ids=lambda each: each["metadata"]["name"])
def test_no_policy_with_an_unknown_field_is_converted(given):
    """Wherever the field is."""
    beside = [template("K8sImageDigests")] if given["kind"] == "K8sImageDigests" else []
    assert [each.reason for each in converted(given, *beside).unconverted] == []
    for at in range(len(list(places(given)))):
        changed = copy.deepcopy(given)
        list(places(changed))[at]["unknownField"] = random.choice([1, True, "a", ["a"], {"a": 1}])
        migration = converted(changed, *beside)
        assert migration.converted == [], changed
        reasons = [each.reason for each in migration.unconverted + migration.skipped]
        assert len(reasons) == 1
        assert "unknownField" in reasons[0]


def test_the_paths_of_unknown_fields():
    """They name the item of a list."""
    value = {"a": [{"b": 1}, {"c": {"d": 2}}], "e": 1}
    assert list(unknown_fields(value, {"a": {"b": None, "c": {}}})) == ["a[1].c.d", "e"]
