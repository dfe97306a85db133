"""Gatekeeper's constraints and its Config; labels of Pod Security."""

import pytest

from tests.gatewright.tools.migrate.converted import converted, reasons, verdict

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
    """Parameters, match and action are converted."""
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
            'the entry "registry" matches every image that begins with this text',
            "`image-registries`, which compares the parts of a reference",
        ),
        (
            constraint("K8sImageDigests", {"exemptImages": ["a*"]}),
            "the parameter exemptImages has no equivalent",
            "`image-digests`",
        ),
        (
            constraint("K8sPodDisruptionBudget"),
            "its template is in Rego, and no equivalent policy is known",
            "`disruption-budgets` `{workloads: true}`",
        ),
        (
            constraint("OurOwn"),
            "its template is in Rego, and no equivalent policy is known",
            "a rule of your own in CEL",
        ),
    ],
)
def test_a_constraint_without_an_equal_is_listed(given, reason, nearest):
    """The nearest built-in policy is listed with it."""
    assert reasons(given) == [(f"{given['kind']} c", reason, nearest)]


def test_a_template_in_cel_is_converted_with_its_parameters():
    """The kind may have any name: it need not be one of the library."""
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


def test_labels_of_pod_security_are_judged_by_one_policy_for_each_mode():
    """Each namespace is judged by its own label; without a label, nothing is judged."""
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
