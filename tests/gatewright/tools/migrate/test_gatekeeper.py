"""Gatekeeper's constraints and its Config; labels of Pod Security."""

import copy

import pytest
import yaml

from tests.gatewright.tools.migrate.constraint_cases import RECORDED, case_of
from tests.gatewright.tools.migrate.converted import converted, verdict

LIBRARY = yaml.load(RECORDED.read_text(), yaml.CSafeLoader)

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


def template(kind, change=""):
    """Return the template of Gatekeeper's library for a kind of constraint, with more Rego."""
    found = copy.deepcopy(LIBRARY[kind]["template"])
    target = found["spec"]["targets"][0]
    if "rego" in target:
        target["rego"] += change
    else:
        target["code"][0]["source"]["rego"] += change
    return found


def test_constraints_of_the_library_become_rules_for_each_list_of_containers():
    """Parameters, match and action are converted; messages and paths name the containers."""
    given = constraint(
        "K8sAllowedRepos",
        {"repos": ["registry.example.com/team/"]},
        MATCH | {"namespaces": ["shop"]},
        enforcementAction="warn",
    )
    (policy,) = converted(template("K8sAllowedRepos"), given).converted
    message = "images must begin with registry.example.com/team/"
    assert policy.spec["match"] == {
        "any": [
            {"kinds": ["Pod"], "namespaces": ["shop"], "subresources": ["", "ephemeralcontainers"]}
        ]
    }
    assert policy.spec["validationActions"] == ["Warn"]
    assert policy.spec["variables"][0] == {
        "name": "violatingContainers",
        "expression": "object.spec.?containers.orValue([]).filter(container,\n"
        "  !(['registry.example.com/team/'].exists(repo, container.image.startsWith(repo))))",
    }
    assert policy.spec["validations"][0] == {
        "expression": "variables.violatingContainers.size() == 0",
        "message": message,
        "messageExpression": "variables.violatingContainers.map(container, container.name)"
        f".join(', ') + ': {message}'",
        "path": "spec.containers",
    }
    assert [each["path"] for each in policy.spec["validations"]] == [
        "spec.containers",
        "spec.initContainers",
        "spec.ephemeralContainers",
    ]


@pytest.mark.parametrize(
    ("kind", "seed"),
    [
        pytest.param(
            kind, seed, marks=[pytest.mark.long] if seed != min(library["verdicts"]) else []
        )
        for kind, library in sorted(LIBRARY.items())
        for seed in library["verdicts"]
    ],
)
def test_conversions_decide_what_gatekeeper_decided(kind, seed):
    """Its verdicts on random objects by random constraints were recorded; quickly, of one each."""
    case = case_of(LIBRARY[kind]["template"], seed)
    verdicts = case.verdicts()
    assert not isinstance(verdicts, str), verdicts
    decided = "".join("d" if is_denied else "a" for is_denied in verdicts)
    assert decided == LIBRARY[kind]["verdicts"][seed], case.constraint


def pods(*images):
    """Return the spec of a Pod with a container for each image and its resources."""
    return {
        "containers": [
            {"name": f"c{at}", "image": image, "resources": resources}
            for at, (image, resources) in enumerate(images)
        ]
    }


SMALL = {"limits": {"cpu": "100m", "memory": "1Mi"}}


@pytest.mark.parametrize(
    ("given", "spec"),
    [
        (constraint("K8sDisallowedTags", {"tags": ["dev"]}), pods(("nginx", {}))),
        (
            constraint("K8sContainerLimits", {"cpu": "200m"}),
            pods(("a:1", {"limits": {"cpu": "100m"}})),
        ),
        (constraint("K8sContainerLimits", {"cpu": "-1", "memory": "-1"}), pods(("a:1", {}))),
        (
            constraint("K8sContainerLimits", {"cpu": "1", "memory": "1Gi"}),
            pods(("a:1", {})) | {"resources": SMALL},
        ),
        (
            constraint("K8sRequiredResources", {"limits": ["cpu"]}),
            pods(("a:1", {})) | {"resources": SMALL},
        ),
        (constraint("K8sAllowedRepos", {"repos": ["docker.io/"]}), pods(("nginx", {}))),
        (
            constraint("K8sPSPReadOnlyRootFilesystem"),
            pods(("a:1", {})) | {"os": {"name": "windows"}},
        ),
    ],
)
def test_what_gatekeeper_denies_is_denied(given, spec):
    """Built-in policies of the same purpose allow these."""
    assert verdict(converted(template(given["kind"]), given), spec=spec) == "denied"


@pytest.mark.parametrize(
    ("given", "spec"),
    [
        (constraint("K8sPSPHostNamespace"), pods(("a:1", {})) | {"hostNetwork": True}),
        (constraint("K8sDisallowedTags", {"tags": ["*", "v?"]}), pods(("a:v1", {}))),
        (constraint("K8sContainerLimits", {"cpu": "200m"}), pods(("a:1", SMALL))),
    ],
)
def test_what_gatekeeper_allows_is_allowed(given, spec):
    """No wildcards, and no namespace of the node more than it names."""
    assert verdict(converted(template(given["kind"]), given), spec=spec) == "allowed"


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (
            [constraint("K8sImageDigests")],
            "the ConstraintTemplate of K8sImageDigests is not among the FILEs, so its rules are "
            "unknown",
        ),
        (
            [template("K8sImageDigests", "\nviolation[1] { true }"), constraint("K8sImageDigests")],
            "its template is in Rego, and no known version of the one in Gatekeeper's library",
        ),
        (
            [template("K8sImageDigests"), constraint("K8sImageDigests", {"newer": 1})],
            "the parameter newer has no equivalent",
        ),
        (
            [template("K8sImageDigests"), constraint("K8sImageDigests", newer=1)],
            "it has a field that no converter knows: spec.newer",
        ),
        (
            [template("K8sImageDigests"), constraint("K8sImageDigests", match={"newer": 1})],
            "it has a field that no converter knows: spec.match.newer",
        ),
        (
            [template("K8sContainerLimits"), constraint("K8sContainerLimits", {"cpu": "1k"})],
            'cpu "1k" is no number that its template can read',
        ),
        (
            [template("K8sReplicaLimits"), constraint("K8sReplicaLimits", match={}, parameters={
                "ranges": [{"min_replicas": 1, "max_replicas": 2}]})],
            "it has no kinds, and its template judges every kind",
        ),
    ],
)  # fmt: skip
def test_a_constraint_without_an_equal_is_listed(given, reason):
    """Nothing is converted to less than it was."""
    migration = converted(*given)
    assert migration.converted == []
    assert [each.reason for each in migration.unconverted] == [reason]


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
    own = {
        "apiVersion": "templates.gatekeeper.sh/v1",
        "kind": "ConstraintTemplate",
        "metadata": {"name": "ourown"},
        "spec": {
            "crd": {"spec": {"names": {"kind": "OurOwn"}}},
            "targets": [{"code": [{"engine": "K8sNativeValidation", "source": source}]}],
        },
    }
    migration = converted(own, constraint("OurOwn", {"most": 1}))
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
    migration = converted(config, template("K8sImageDigests"), given)
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
