"""Gatekeeper's constraints, its Config and mutators; labels of Pod Security."""

import pytest

from tests.gatewright.migrate.converted import converted, mutated, reasons, verdict

MATCH = {"kinds": [{"apiGroups": [""], "kinds": ["Pod"]}]}


def constraint(kind, parameters=None, match=MATCH, **spec):
    """Return a constraint."""
    return {
        "apiVersion": "constraints.gatekeeper.sh/v1beta1",
        "kind": kind,
        "metadata": {"name": "c"},
        "spec": {"match": match, "parameters": parameters or {}} | spec,
    }


def pod(image):
    """Return the spec of a Pod with one container."""
    return {"containers": [{"name": "app", "image": image}]}


def test_constraints_of_the_library_become_built_in_policies():
    """With their parameters, match and action."""
    (policy,) = converted(
        constraint(
            "K8sAllowedRepos",
            {"repos": ["registry.example.com/team/"]},
            MATCH | {"namespaces": ["shop"]},
            enforcementAction="warn",
        )
    ).converted
    assert policy.spec == {
        "policy": "image-registries",
        "params": {"registries": ["registry.example.com/team"]},
        "match": {"any": [{"kinds": ["Pod"], "namespaces": ["shop"]}]},
        "validationActions": ["Warn"],
    }


@pytest.mark.parametrize(
    ("given", "reason", "nearest"),
    [
        (
            constraint("K8sAllowedRepos", {"repos": ["registry"]}),
            "registry is compared as the beginning of a text",
            "`image-registries`, which compares the parts of a reference",
        ),
        (
            constraint("K8sImageDigests", {"exemptImages": ["a*"]}),
            "the parameter exemptImages has no equal",
            "`image-digests`",
        ),
        (
            constraint("K8sPodDisruptionBudget"),
            "its template is in Rego, and no policy is known to decide the same",
            "`disruption-budgets` `{workloads: true}`",
        ),
        (
            constraint("OurOwn"),
            "its template is in Rego, and no policy is known to decide the same",
            "",
        ),
    ],
)
def test_a_constraint_without_an_equal_is_listed(given, reason, nearest):
    """With the built-in policy that comes nearest."""
    assert reasons(given) == [(f"{given['kind']} c", reason, nearest)]


def test_a_template_in_cel_is_converted_with_its_parameters():
    """Whatever it is called."""
    source = {
        "variables": [{"name": "most", "expression": "variables.params.most"}],
        "validations": [
            {
                "expression": "variables.anyObject.spec.containers.size() <= variables.most",
                "message": "too many",
            }
        ],
    }
    template = {
        "apiVersion": "templates.gatekeeper.sh/v1",
        "kind": "ConstraintTemplate",
        "metadata": {"name": "ourown"},
        "spec": {
            "crd": {"spec": {"names": {"kind": "OurOwn"}}},
            "targets": [{"code": [{"engine": "K8sNativeValidation", "source": source}]}],
        },
    }
    migration = converted(template, constraint("OurOwn", {"most": 1}))
    assert verdict(migration, spec=pod("a:1")) == "allowed"
    two = {"containers": [{"name": "a", "image": "a:1"}, {"name": "b", "image": "a:1"}]}
    assert verdict(migration, spec=two) == "denied"


def test_excluded_namespaces_of_config_and_constraint_are_not_judged():
    """Both, with wildcards."""
    config = {
        "apiVersion": "config.gatekeeper.sh/v1alpha1",
        "kind": "Config",
        "metadata": {"name": "config"},
        "spec": {
            "match": [
                {"processes": ["*"], "excludedNamespaces": ["bank"]},
                {"processes": ["audit"], "excludedNamespaces": ["web"]},
            ]
        },
    }
    given = constraint("K8sImageDigests", match=MATCH | {"excludedNamespaces": ["shop-*"]})
    migration = converted(config, given)
    for namespace, expected in (("bank", "unmatched"), ("shop-1", "unmatched"), ("web", "denied")):
        assert verdict(migration, namespace=namespace, spec=pod("a:1")) == expected


def test_a_label_that_is_assigned_becomes_a_mutation():
    """Only where it is missing; other mutators are listed."""
    assign = {
        "apiVersion": "mutations.gatekeeper.sh/v1",
        "kind": "AssignMetadata",
        "metadata": {"name": "owner"},
        "spec": {
            "match": MATCH,
            "location": "metadata.labels.owner",
            "parameters": {"assign": {"value": "team"}},
        },
    }
    assert verdict(converted(assign)) == "mutated"
    assert verdict(converted(assign), metadata={"labels": {"owner": "me"}}) == "allowed"
    assert reasons(assign | {"kind": "ModifySet"}) == [
        ("ModifySet owner", "it changes more than fields at fixed paths",
         "a mutation in CEL, `security-defaults` or `resource-defaults`"),
    ]  # fmt: skip


def assign(location, **parameters):
    """Return an Assign of a Pod."""
    return {
        "apiVersion": "mutations.gatekeeper.sh/v1",
        "kind": "Assign",
        "metadata": {"name": "a"},
        "spec": {
            "applyTo": [{"groups": [""], "versions": ["v1"], "kinds": ["Pod"]}],
            "location": location,
            "parameters": {"assign": {"value": "team-a"}} | parameters,
        },
    }


def test_a_field_that_is_assigned_becomes_a_mutation():
    """Also where its parents are missing; with MustNotExist only where it is not set."""
    location = 'spec.nodeSelector."example.com/pool"'
    changed = {"nodeSelector": {"example.com/pool": "team-a"}}
    migration = converted(assign(location))
    assert mutated(migration)["spec"].items() >= changed.items()
    other = {"nodeSelector": {"example.com/pool": "b", "c": "d"}}
    assert mutated(migration, spec=other)["spec"]["nodeSelector"] == {
        "example.com/pool": "team-a",
        "c": "d",
    }
    tests = [{"subPath": location, "condition": "MustNotExist"}]
    kept = converted(assign(location, pathTests=tests))
    assert mutated(kept, spec=other)["spec"]["nodeSelector"] == other["nodeSelector"]
    assert mutated(kept)["spec"].items() >= changed.items()


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (assign("spec.containers[name:*].imagePullPolicy"),
         "the location spec.containers[name:*].imagePullPolicy is in a list"),
        (assign("spec.dnsPolicy", assign={"fromMetadata": {"field": "name"}}),
         "it changes more than fields at fixed paths"),
        (assign("spec.dnsPolicy", pathTests=[{"subPath": "spec", "condition": "MustExist"}]),
         "it tests other paths"),
    ],
)  # fmt: skip
def test_a_mutator_that_cannot_be_shown_equal_is_listed(given, reason):
    """With what comes nearest."""
    nearest = "a mutation in CEL, `security-defaults` or `resource-defaults`"
    assert reasons(given) == [("Assign a", reason, nearest)]


def test_labels_of_pod_security_are_judged_by_one_policy_for_each_mode():
    """Each namespace by its own label; without one, nothing is judged."""
    labels = {"pod-security.kubernetes.io/enforce": "baseline"}
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "a", "labels": labels},
    }
    migration = converted(namespace)
    assert [each.name for each in migration.converted] == ["pod-security-enforce"]
    assert verdict(migration, labels=labels, spec={"hostNetwork": True}) == "denied"
    assert verdict(migration, labels={}, spec={"hostNetwork": True}) == "allowed"
