"""Versions, engines, kinds and functions that no converter knows are named; nothing is guessed."""

import pytest
import yaml

from gatewright.tools.migrate.library_rules import probes_rules
from tests.gatewright.tools.migrate.converted import cluster_policy, converted, reasons, verdict

GATEKEEPER = "templates.gatekeeper.sh"
CEL = """
apiVersion: templates.gatekeeper.sh/{version}
kind: ConstraintTemplate
metadata: {{name: k8sours}}
spec:
  crd: {{spec: {{names: {{kind: K8sOurs}}}}}}
  targets:
  - code: [{{engine: K8sNativeValidation, source: {{validations: [{{expression: "false"}}]}}}}]
---
apiVersion: constraints.gatekeeper.sh/{constraint}
kind: K8sOurs
metadata: {{name: ours}}
spec: {{match: {{kinds: [{{apiGroups: [""], kinds: [Pod]}}]}}}}
"""
NO_POLICY = "not a policy of Kyverno, Gatekeeper or Pod Security"
ABSENT = "the ConstraintTemplate of K8sOurs is not among the FILEs, so its rules are unknown"


def gatekeeper(version, constraint="v1beta1"):
    """Return the migration of a template and its constraint of these versions."""
    return converted(*yaml.safe_load_all(CEL.format(version=version, constraint=constraint)))


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1", "v1"])
def test_a_template_of_a_known_version_is_converted(version):
    """Gatekeeper serves these."""
    assert [each.name for each in gatekeeper(version).converted] == ["ours"]


@pytest.mark.parametrize(
    ("version", "constraint"),
    [("v2", "v1beta1"), ("v1beta2", "v1"), ("v1alpha2", "v1alpha1"), ("1", "v1"), ("V1", "v1")],
)
def test_a_template_of_an_unknown_version_is_named(version, constraint):
    """Its rules may mean something else there; its constraint is named, too."""
    found = gatekeeper(version, constraint)
    assert found.converted == []
    assert [each.reason for each in found.skipped] == [
        f"unknown version {version} of {GATEKEEPER}; known: v1alpha1, v1beta1, v1"
    ]
    assert [each.reason for each in found.unconverted] == [ABSENT]


@pytest.mark.parametrize(
    ("api_version", "kind", "reason"),
    [
        ("config.gatekeeper.sh/v2", "Config", "unknown version v2 of config.gatekeeper.sh"),
        ("config.gatekeeper.sh/v1beta1", "Config", "unknown version v1beta1 of config"),
        ("apiextensions.k8s.io/v2", "CustomResourceDefinition", "unknown version v2 of apiext"),
        ("v2", "Namespace", "unknown version v2; known: v1"),
        ("kyverno.io/v3", "ClusterPolicy", "unknown version v3 of kyverno.io; known: v1"),
        ("policies.kyverno.io/v2", "ValidatingPolicy", "unknown version v2 of policies.kyverno"),
        ("mutations.gatekeeper.sh/v2", "Assign", "unknown version v2 of mutations.gatekeeper.sh"),
        ("constraints.gatekeeper.sh/v2", "K8sOurs", "unknown version v2 of constraints.gatekee"),
        ("templates.example.com/v1", "ConstraintTemplate", NO_POLICY),
        ("v1", "Config", NO_POLICY),
        ("policies.kubewarden.io/v1", "ClusterAdmissionPolicy", NO_POLICY),
        ("policy.example.com/v1", "ClusterPolicy", NO_POLICY),
        ("expansion.gatekeeper.sh/v1beta1", "ExpansionTemplate", NO_POLICY),
        ("connaisseur.policy/v1", "ImagePolicy", NO_POLICY),
        ("datree.io/v1", "Policy", NO_POLICY),
    ],
)
def test_what_no_converter_knows_is_named(api_version, kind, reason):
    """Beside a policy that is converted."""
    other = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}, "spec": {}}
    pattern = {"pattern": {"metadata": {"labels": {"team": "?*"}}}}
    found = converted(other, cluster_policy(pattern, kinds=["ConfigMap"]))
    assert [each.name for each in found.converted] == ["p"]
    (skipped,) = found.skipped
    assert skipped.reason.startswith(reason)


@pytest.mark.parametrize("kind", ["Backup", "WebApp", "Cache", "PolicyException", "Schedule"])
def test_a_kind_of_another_group_is_not_that_of_gatewright(kind):
    """A rule about Velero's Backup, say: without its definition, the kind is unknown."""
    ((_, reason, nearest),) = reasons(cluster_policy({"deny": {}}, kinds=[kind]))
    unknown = "its kind is unknown, since no CustomResourceDefinition of it is among the FILEs"
    assert (reason, nearest) == (
        f"{unknown}: {kind}",
        "add its CustomResourceDefinition to the FILEs",
    )


def test_a_kind_with_its_definition_is_that_one():
    """Also if Gatewright has a kind of the same name."""
    names = {"kind": "Backup", "plural": "backups"}
    spec = {"group": "velero.io", "names": names, "versions": [{"name": "v1"}]}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "backups.velero.io"},
        "spec": spec | {"scope": "Namespaced"},
    }
    (policy,) = converted(definition, cluster_policy({"deny": {}}, kinds=["Backup"])).converted
    assert [each["kinds"] for each in policy.spec["match"]["any"]] == [["velero.io/v1/Backup"]]


def validating(expression="true", kind="ValidatingPolicy", resource="pods", **fields):
    """Return a policy of Kyverno in CEL."""
    group = {"pods": "", "configmaps": "", "deployments": "apps"}[resource]
    rule = {
        "apiGroups": [group],
        "apiVersions": ["v1"],
        "resources": [resource],
        "operations": ["CREATE", "UPDATE"],
    }
    spec = {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": expression}],
    }
    return {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": kind,
        "metadata": {"name": "p"},
        "spec": spec | fields,
    }


def condition(expression, name="c"):
    """Return match conditions."""
    return [{"name": name, "expression": expression}]


@pytest.mark.parametrize(
    ("function", "expression"),
    [
        ("Get", "resource.Get('v1', 'configmaps', 'a', 'b').data.a == 'b'"),
        ("List", "resource.List('v1', 'pods', 'a').items.size() == 0"),
        ("Post", "resource.Post('v1', 'pods', {}).a == ''"),
        ("GetMetadata", "image.GetMetadata('a').b == ''"),
        ("parseServiceAccount", "parseServiceAccount(request.userInfo.username).Name == ''"),
    ],
)
@pytest.mark.parametrize("resource", ["pods", "configmaps"])
def test_a_function_of_kyverno_is_named(function, expression, resource):
    """Kubernetes' CEL does not have it."""
    ((_, reason, nearest),) = reasons(validating(expression, resource=resource))
    assert (reason, nearest) == (
        f"it calls a function that Kubernetes' CEL does not have: {function}()",
        "the original tool, for this policy",
    )


def test_invalid_cel_says_what_to_do():
    """The API server would refuse it, too."""
    ((_, reason, nearest),) = reasons(
        validating("object.metadata.nam == ''", resource="configmaps")
    )
    assert reason.startswith("its CEL is invalid: line 1, column 17: undefined field 'nam'")
    assert nearest == "correct the original, and convert it again"


@pytest.mark.parametrize(
    "conditions",
    [
        {"matchConditions": condition("has(object.spec.hostNetwork) && object.spec.hostNetwork")},
        {
            "variables": [
                {"name": "there", "expression": "has(object.spec.hostNetwork)"},
                {"name": "on", "expression": "variables.there && object.spec.hostNetwork"},
            ],
            "matchConditions": condition("variables.on || 'variables.on' == ''"),
        },
        {
            "matchConditions": condition(
                "object.spec.?hostNetwork.orValue(false) == true", "no name"
            )
        },
    ],
    ids=["the pod", "variables of variables", "a name with blanks"],
)
def test_match_conditions_read_the_pod_and_variables(conditions):
    """Those of Gatewright, as the API server's, have no variables: the expressions stand there."""
    found = converted(validating("false", **conditions))
    pod = {"spec": {"hostNetwork": True}}
    template = {"spec": {"template": pod}}
    for kind, fields in (
        ("Pod", pod),
        ("Deployment", template),
        ("CronJob", {"spec": {"jobTemplate": template}}),
    ):
        assert verdict(found, kind, **fields) == "denied"
        assert verdict(found, kind) == "unmatched"


@pytest.mark.parametrize(
    ("controllers", "expression"),
    [
        ("DaemonSet,Deployment", "object.kind == 'Pod' ? object : object.spec.template"),
        (
            "CronJob",
            "object.kind == 'Pod' ? object : object.spec.jobTemplate.spec.template",
        ),
        (
            "CronJob,Job",
            "object.kind == 'Pod' ? object : object.kind == 'CronJob' ? "
            "object.spec.jobTemplate.spec.template : object.spec.template",
        ),
    ],
)
def test_the_pod_is_read_where_the_kinds_have_it(controllers, expression):
    """A field that no kind of the rule has does not compile."""
    noted = {"pod-policies.kyverno.io/autogen-controllers": controllers}
    cel = {"cel": {"expressions": [{"expression": "has(object.spec.hostNetwork)"}]}}
    (policy,) = converted(cluster_policy(cel, annotations=noted)).converted
    assert policy.spec["variables"] == [{"name": "pod", "expression": expression}]


@pytest.mark.parametrize(
    ("kind", "namespace", "expected"),
    [
        ("ValidatingPolicy", "shop", ""),
        ("ValidatingPolicy", None, ""),
        ("NamespacedValidatingPolicy", "shop", "shop"),
        ("NamespacedValidatingPolicy", None, "default"),
    ],
)
def test_a_namespace_counts_where_a_kind_has_one(kind, namespace, expected):
    """The API server ignores it elsewhere."""
    policy = validating(kind=kind, resource="configmaps")
    policy["metadata"] |= {"namespace": namespace} if namespace else {}
    assert [each.namespace for each in converted(policy).converted] == [expected]


@pytest.mark.parametrize(
    "path",
    [
        "request.object.metadata.labels.a",
        'request."object".metadata.labels.a',
        'request."object"."metadata".labels.a',
        'request.object.metadata.labels."a"',
        '"request"."object".metadata.labels.a',
    ],
)
def test_a_quoted_step_of_a_path_is_the_same_step(path):
    """JMESPath allows quotes around each name."""
    condition = {"key": f"{{{{ {path} || '' }}}}", "operator": "Equals", "value": "b"}
    rule = cluster_policy({"deny": {}}, kinds=["ConfigMap"], preconditions={"all": [condition]})
    found = converted(rule)
    assert verdict(found, "ConfigMap", metadata={"labels": {"a": "b"}}) == "denied"
    assert verdict(found, "ConfigMap", metadata={"labels": {"a": "c"}}) == "unmatched"


@pytest.mark.parametrize(
    "path",
    [
        'request."object".metadata.labels.a',
        'request.object."metadata".labels.a',
        '"request".object.metadata.labels.a',
    ],
)
def test_a_quoted_step_keeps_a_path_from_the_pod_template(path):
    """Kyverno replaces the text `request.object.metadata` in rules that it generates."""
    condition = {"key": f"{{{{ {path} || '' }}}}", "operator": "Equals", "value": "b"}
    found = converted(cluster_policy({"deny": {}}, preconditions={"all": [condition]}))
    labelled = {"metadata": {"labels": {"a": "b"}}}
    assert verdict(found, "Deployment", **labelled) == "denied"
    assert verdict(found, "Deployment", spec={"template": labelled}) == "unmatched"


@pytest.mark.parametrize(
    "value",
    [
        {"a": 1, "b": "x"},
        {"a": {"b": 1}, "c": {"d": "x"}},
        [{"a": 1}, {"a": "x"}],
        [1, "x", None, 1.5, True],
        {"a": [1], "b": ["x"], "c": []},
        {"a": [{"b": 1, "c": {"d": True}}]},
    ],
)
def test_constants_of_several_types_are_set(value):
    """CEL wants the items of a list or a map to be of one type, or dyn."""
    merge = {"patchStrategicMerge": {"spec": {"+(a)": value}}}
    names = {"kind": "Thing", "plural": "things"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.org"},
        "spec": {
            "group": "example.org",
            "names": names,
            "scope": "Namespaced",
            "versions": [{"name": "v1", "schema": schema}],
        },
    }
    policy = cluster_policy({}, kinds=["Thing"], mutate=merge)
    del policy["spec"]["rules"][0]["validate"]
    found = converted(definition, policy)
    assert found.unconverted == []


def test_required_probes_read_the_handlers_of_probes():
    """A container with a probe of one of the types passes."""
    given = {"probes": ["readinessProbe"], "probeTypes": ["tcpSocket", "exec"]}
    assert "container.?readinessProbe.?tcpSocket.hasValue()" in str(
        probes_rules(given, "input.review.object.spec.containers[_]").variables
    )
