"""Kubernetes' own admission policies, read from files unchanged."""

import copy

import pytest
import yaml

from config.documents import parse_documents
from tests.webhook.asking import about, ask
from webhook.engine import NAMESPACE_LABELS, Engine, Request
from webhook.messages import audit_annotations
from webhook.policy_sets.catalogue import catalogue
from webhook.policy_sets.policy_set import PolicySetError, load

DEPLOYMENT = {"metadata": {"name": "web", "labels": {"team": "core"}}, "spec": {"replicas": 5}}
POLICY = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingAdmissionPolicy",
    "metadata": {"name": "replicas"},
    "spec": {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [
                {
                    "apiGroups": ["apps"],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE"],
                    "resources": ["deployments"],
                }
            ]
        },
        "validations": [{"expression": "object.spec.replicas <= 3", "message": "at most 3"}],
    },
}
BINDING = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingAdmissionPolicyBinding",
    "metadata": {"name": "everywhere"},
    "spec": {"policyName": "replicas", "validationActions": ["Deny"]},
}


def loaded(*objects):
    """Return the policies of files with these objects, without those always in force."""
    text = yaml.safe_dump_all(objects).encode()
    return [
        policy
        for policy in load(parse_documents(text, "policies.yaml"), catalogue())
        if not policy.policy.always
    ]


def messages(*objects, object=DEPLOYMENT, **asked):
    """Return the messages about an object, each with its policy's name."""
    outcomes = Engine(loaded(*objects)).validate(ask(object, "Deployment", **asked)).outcomes
    return [f"{each.policy}: {v.message}" for each in outcomes for v in each.violations]


def changed(base, **spec):
    """Return an object with other fields in its spec."""
    made = copy.deepcopy(base)
    made["spec"] |= spec
    return made


def rules(**rule):
    """Return matchConstraints with one rule for every resource, changed by the arguments."""
    everything = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}
    return {"resourceRules": [everything | rule]}


@pytest.mark.parametrize(
    ("scope", "applies"), [("Cluster", True), ("Namespaced", False), ("*", True)]
)
def test_a_namespace_is_cluster_scoped(scope, applies):
    """A request about a Namespace has its name as the namespace."""
    policy = changed(
        POLICY, matchConstraints=rules(scope=scope), validations=[{"expression": "false"}]
    )
    request = ask({"metadata": {"name": "shop"}}, "Namespace", name="shop")
    assert Engine(loaded(policy, BINDING)).validate(request).allowed is not applies


@pytest.mark.parametrize(
    ("selector", "applies"),
    [
        ({"matchLabels": {"team": "core"}}, False),
        ({"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}, True),
    ],
)
def test_a_scale_is_selected_by_its_own_labels(selector, applies):
    """The API server matches the labels of the Scale, which has none, and not those of the Deployment."""
    policy = changed(
        POLICY,
        matchConstraints=rules(resources=["deployments/scale"]) | {"objectSelector": selector},
    )
    scale = {"metadata": {"name": "web"}, "spec": {"replicas": 5}}
    assert (
        bool(messages(policy, BINDING, object=scale, subresource="scale", operation="UPDATE"))
        is applies
    )


def test_a_session_has_no_labels_to_select_it_by():
    """Not even a selector for absent labels selects it."""
    selector = {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}
    constraints = rules(operations=["CONNECT"], resources=["pods/exec"])
    validations = [{"expression": "false", "message": "no sessions"}]
    asked = {"kind": "PodExecOptions", "operation": "CONNECT", "subresource": "exec"}
    for spec, denied in ((constraints, True), (constraints | {"objectSelector": selector}, False)):
        policy = loaded(changed(POLICY, matchConstraints=spec, validations=validations), BINDING)
        request = Request(
            about("Pod")._replace(**asked), {"kind": "PodExecOptions", "command": ["sh"]}
        )
        assert Engine(policy).validate(request).allowed is not denied


def test_a_bound_policy_is_in_force():
    """A policy without a binding is not."""
    assert messages(POLICY, BINDING) == ["replicas: at most 3"]
    assert messages(POLICY) == []
    (warning,) = loaded(POLICY, changed(BINDING, validationActions=["Warn", "Audit"]))
    assert warning.actions == {"Warn", "Audit"}


def test_empty_selectors_select_everything():
    """The API server writes them by default; they need no labels of the namespace."""
    constraints = rules() | {"namespaceSelector": {}, "objectSelector": {}}
    (outcome,) = (
        Engine(loaded(changed(POLICY, matchConstraints=constraints), BINDING))
        .validate(ask(DEPLOYMENT, "Deployment"))
        .outcomes
    )
    assert (outcome.error, [each.message for each in outcome.violations]) == (None, ["at most 3"])


@pytest.mark.parametrize(
    ("constraints", "applies"),
    [
        (rules(), True),
        (rules(operations=["UPDATE"]), False),
        (rules(resources=["pods", "deployments"]), True),
        (rules(apiGroups=["batch"]), False),
        (rules(resources=["deployments/scale"]), False),
        (rules(resources=["*/scale"]), False),
        (rules(resources=["deployments/*"]), True),
        (rules(resources=["*/*"]), True),
        (rules(resources=["pods/*"]), False),
        (rules(apiVersions=["v1beta1"]), False),
        (rules(apiVersions=["v1beta1"]) | {"matchPolicy": "Exact"}, False),
        (rules(resourceNames=["other"]), False),
        (rules(scope="Cluster"), False),
        (
            rules() | {"excludeResourceRules": rules(resources=["deployments"])["resourceRules"]},
            False,
        ),
        (rules() | {"objectSelector": {"matchLabels": {"team": "core"}}}, True),
        (rules() | {"objectSelector": {"matchLabels": {"team": "other"}}}, False),
        (rules() | {"namespaceSelector": {"matchLabels": {"env": "prod"}}}, True),
        (rules() | {"namespaceSelector": {"matchLabels": {"env": "test"}}}, False),
    ],
)
def test_constraints_of_policy_and_binding_must_both_match(constraints, applies):
    """The fields of `matchConstraints` and `matchResources` mean the same."""
    looked_up = {NAMESPACE_LABELS: {"env": "prod"}}
    found = ["replicas: at most 3"] if applies else []
    assert (
        messages(
            changed(POLICY, matchConstraints=constraints), BINDING, name="web", looked_up=looked_up
        )
        == found
    )
    bound = changed(BINDING, matchResources=constraints)
    assert (
        messages(changed(POLICY, matchConstraints=rules()), bound, name="web", looked_up=looked_up)
        == found
    )


@pytest.mark.parametrize(
    ("constraints", "needed"),
    [
        ({}, set()),
        ({"namespaceSelector": {}, "objectSelector": {"matchLabels": {"a": "b"}}}, set()),
        ({"namespaceSelector": {"matchLabels": {"env": "prod"}}}, {NAMESPACE_LABELS}),
        (
            {"namespaceSelector": {"matchExpressions": [{"key": "env", "operator": "Exists"}]}},
            {NAMESPACE_LABELS},
        ),
    ],
)
def test_labels_of_the_namespace_are_looked_up_where_they_decide(constraints, needed):
    """The fault is in the policy or in the binding."""
    wide, narrow = rules(), rules() | constraints
    for policy, binding in ((narrow, wide), (wide, narrow)):
        bound = loaded(
            changed(POLICY, matchConstraints=policy), changed(BINDING, matchResources=binding)
        )
        assert Engine(bound).needs(about("Deployment")) == needed


@pytest.mark.parametrize(
    ("resource", "applies"),
    [
        ("deployments/scale", True),
        ("*/scale", True),
        ("deployments/*", True),
        ("*/*", True),
        ("deployments", False),
        ("*", False),
        ("deployments/status", False),
        ("statefulsets/*", False),
    ],
)
def test_a_rule_names_subresources(resource, applies):
    """`pods` means only the resource itself; `pods/*` means it and all its subresources."""
    found = ["replicas: at most 3"] if applies else []
    scale = {"metadata": {"name": "web"}, "spec": {"replicas": 5}}
    policy = changed(POLICY, matchConstraints=rules(resources=[resource]))
    assert messages(policy, BINDING, object=scale, subresource="scale") == found


ROLE, NAMESPACE = (
    {"kind": "ClusterRole", "namespace": ""},
    {"kind": "Namespace", "name": "shop", "namespace": "shop"},
)
THING = {"group": "x.example", "resource_group": "x.example", "resource": "things", "version": "v2"}
PROD, TEST = ({"namespaceSelector": {"matchLabels": {"env": each}}} for each in ("prod", "test"))


@pytest.mark.parametrize(
    ("constraints", "asked", "applies"),
    [
        (rules(scope="Namespaced"), {}, True),
        (rules(scope="Cluster"), {}, False),
        (rules(scope="Namespaced"), ROLE, False),
        (rules(scope="Cluster"), ROLE, True),
        (rules(scope="Namespaced"), NAMESPACE, False),
        (rules(scope="Cluster"), NAMESPACE, True),
        (rules() | TEST, ROLE, True),
        (rules() | PROD, NAMESPACE, True),
        (rules() | TEST, NAMESPACE, False),
        (rules(apiVersions=["v1"]) | {"matchPolicy": "Exact"}, {}, True),
        (rules(resourceNames=["web"]), {}, True),
        (
            {
                "resourceRules": [
                    *rules(operations=["UPDATE"])["resourceRules"],
                    *rules()["resourceRules"],
                ]
            },
            {},
            True,
        ),
        (rules(apiGroups=["x.example"], apiVersions=["v2"], resources=["things"]), THING, True),
        (
            rules(apiGroups=["x.example"], apiVersions=["v2"], resources=["things"]),
            THING | {"resource": "cats"},
            False,
        ),
        (rules(apiGroups=["x.example"], resources=["*"]), THING, False),  # no such kind is known
        (
            rules() | {"objectSelector": {"matchLabels": {"env": "old"}}},
            {"operation": "UPDATE", "old_object": {"metadata": {"labels": {"env": "old"}}}},
            True,
        ),
    ],
)
def test_a_rule_applies_as_in_the_api_server(constraints, asked, applies):
    """A Namespace is cluster-scoped; a namespaceSelector selects only namespaced objects and Namespaces."""
    policy = changed(
        POLICY, matchConstraints=constraints, validations=[{"expression": "false", "message": "no"}]
    )
    object = {"metadata": {"name": asked.get("name", "web"), "labels": {"env": "prod"}}}
    about = {"kind": "Deployment", "name": "web"} | asked
    verdict = Engine(loaded(policy, BINDING)).validate(ask(object, **about))
    assert [
        violation.message for outcome in verdict.outcomes for violation in outcome.violations
    ] == ["no"] * applies
    assert verdict.allowed is not applies


def test_parameters_are_objects_of_the_files():
    """They are selected by name or labels; if there are none, the binding decides."""
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    rule = {
        "expression": "object.spec.replicas <= int(params.data.max)",
        "messageExpression": "string(params.metadata.name)",
    }
    policy = changed(POLICY, paramKind=kind, validations=[rule])
    params = [
        kind
        | {
            "metadata": {"name": name, "namespace": space, "labels": {"tier": tier}},
            "data": {"max": "3"},
        }
        for name, space, tier in (
            ("one", "shop", "a"),
            ("two", "shop", "a"),
            ("three", "other", "b"),
        )
    ]
    by_name = changed(BINDING, paramRef={"name": "one", "parameterNotFoundAction": "Deny"})
    assert messages(policy, by_name, *params) == ["replicas: one"]
    by_label = changed(
        BINDING,
        paramRef={"selector": {"matchLabels": {"tier": "a"}}, "parameterNotFoundAction": "Deny"},
    )
    assert messages(policy, by_label, *params) == ["replicas: one", "replicas: two"]
    elsewhere = changed(BINDING, paramRef={"name": "three", "parameterNotFoundAction": "Allow"})
    assert messages(policy, elsewhere, *params) == []
    for action, outcomes in (("Allow", 0), ("Deny", 1)):
        missing = changed(BINDING, paramRef={"name": "none", "parameterNotFoundAction": action})
        verdict = Engine(loaded(policy, missing)).validate(ask(DEPLOYMENT, "Deployment"))
        assert len([each for each in verdict.outcomes if each.error]) == outcomes


def test_a_policy_with_several_bindings_is_named_after_each():
    """The names distinguish the bindings."""
    other = changed(BINDING, validationActions=["Warn"]) | {"metadata": {"name": "softly"}}
    assert messages(POLICY, BINDING, other) == [
        "replicas:everywhere: at most 3",
        "replicas:softly: at most 3",
    ]


def test_audit_annotations_are_part_of_the_answer():
    """The key is the policy's name and its key.

    An annotation without a value is omitted, and a failing one is a violation.
    """
    annotations = [
        {"key": "replicas", "valueExpression": "' ' + string(object.spec.replicas) + ' '"},
        {"key": "nothing", "valueExpression": "null"},
        {
            "key": "long",
            "valueExpression": "[1, 2, 3, 4].map(i, [1, 2, 3, 4].map(j, 'é' + 'x')).map(l, l.join('')).join('')",
        },
    ]
    engine = Engine(loaded(changed(POLICY, validations=[], auditAnnotations=annotations), BINDING))
    verdict = engine.validate(ask(DEPLOYMENT, "Deployment"))
    assert verdict.allowed
    assert not verdict.is_plain
    assert audit_annotations(verdict) == {"replicas.replicas": "5", "replicas.long": "éx" * 16}
    failing = changed(
        POLICY, auditAnnotations=[{"key": "team", "valueExpression": "string(object.spec.team)"}]
    )
    assert messages(failing, BINDING) == [
        "replicas: at most 3",
        "replicas: audit annotation team: expression 'string(object.spec.team)' resulted in error: no such key: team",
    ]
    assert messages(changed(failing, failurePolicy="Ignore"), BINDING) == ["replicas: at most 3"]
    with pytest.raises(PolicySetError, match=r"must evaluate to string or null but got int"):
        loaded(changed(POLICY, auditAnnotations=[{"key": "one", "valueExpression": "1"}]), BINDING)


def test_a_mutating_policy_changes_objects():
    """The versions v1, v1beta1 and v1alpha1 are read."""
    mutation = {"patchType": "JSONPatch", "jsonPatch": {"expression": PATCH}}
    for version in ("v1", "v1beta1", "v1alpha1"):
        group = {"apiVersion": f"admissionregistration.k8s.io/{version}"}
        policy = POLICY | group | {"kind": "MutatingAdmissionPolicy"}
        policy = changed(policy, mutations=[mutation], reinvocationPolicy="Never")
        del policy["spec"]["validations"]
        binding = (
            BINDING
            | group
            | {"kind": "MutatingAdmissionPolicyBinding", "spec": {"policyName": "replicas"}}
        )
        verdict = Engine(loaded(policy, binding)).mutate(ask(DEPLOYMENT, "Deployment"))
        assert verdict.object["spec"]["replicas"] == 1


PATCH = "[JSONPatch{op: 'replace', path: '/spec/replicas', value: 1}]"


def test_a_field_of_the_wrong_type_is_an_error():
    """A policy and a binding that cannot be read are named, each with the field."""
    with pytest.raises(PolicySetError) as error:
        loaded(changed(POLICY, validations="none"), changed(BINDING, validationActions="Deny"))
    assert [line.partition(": ")[2] for line in str(error.value).split("\n")] == [
        'ValidatingAdmissionPolicy replicas: spec.validations: "none": should be a valid array',
        'ValidatingAdmissionPolicyBinding everywhere: spec.validationActions: "Deny": should be a valid array',
    ]


def test_errors_have_file_and_line():
    """Policies without a binding are checked too; a binding needs its policy."""
    broken = changed(POLICY, validations=[{"expression": "object.spec.replicas <"}])
    lost = changed(BINDING, policyName="nothing")
    with pytest.raises(PolicySetError) as error:
        loaded(broken, lost)
    first, second = str(error.value).split("\n")
    assert first.partition(": ")[2] == (
        "ValidatingAdmissionPolicy replicas: spec.validations[0].expression: line 1, column 23: syntax error: found "
        "'end of expression', expected a value"
    )
    assert second.partition(": ")[2] == (
        'ValidatingAdmissionPolicyBinding everywhere: spec.policyName: no ValidatingAdmissionPolicy "nothing" beside it'
    )


NOTHING = {"validations": [], "auditAnnotations": []}


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        (NOTHING, "spec.validations: missing; give at least one, or auditAnnotations"),
        (
            {"matchConstraints": {}},
            "spec.matchConstraints.resourceRules: missing; name the resources that it is about",
        ),
        (
            {"validations": [{"expression": "true", "reason": "Unauthorized"}]},
            "spec.validations[0].reason: ",
        ),
        (
            {"validations": [{"expression": "true", "message": "a\nb"}]},
            "spec.validations[0].message: ",
        ),
        (
            {"validations": [{"expression": "true", "message": " "}]},
            "spec.validations[0].message: ",
        ),
        (
            {"variables": [{"name": "in", "expression": "1"}]},
            "spec.variables[0].name: ",
        ),
        (
            {"variables": [{"name": "namespace", "expression": "1"}]},
            "spec.variables[0].name: ",
        ),
        (
            {"matchConditions": [{"name": "not valid", "expression": "true"}]},
            "spec.matchConditions[0].name: ",
        ),
        (
            {"matchConditions": [{"name": "a", "expression": each} for each in ("true", "1 == 1")]},
            'spec.matchConditions[1].name: "a" is the name of another condition',
        ),
    ],
)
def test_a_policy_that_the_api_server_rejects_is_an_error(spec, fault):
    """A policy that `check` accepts can be applied."""
    with pytest.raises(PolicySetError) as error:
        loaded(changed(POLICY, **spec), BINDING)
    assert fault in str(error.value)


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        ({"mutations": []}, "spec.mutations: missing; give at least one"),
        (
            {"matchConstraints": rules(operations=["UPDATE", "DELETE"])},
            "spec.matchConstraints.resourceRules: a MutatingAdmissionPolicy changes no object that is deleted",
        ),
    ],
)
def test_a_mutating_policy_without_effect_is_an_error(spec, fault):
    """The API server refuses it too."""
    expression = "[JSONPatch{op: 'remove', path: '/spec/paused'}]"
    mutation = {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}
    policy = changed(POLICY, validations=[], mutations=[mutation]) | {
        "kind": "MutatingAdmissionPolicy"
    }
    binding = changed(BINDING, validationActions=["Deny"]) | {
        "kind": "MutatingAdmissionPolicyBinding"
    }
    del binding["spec"]["validationActions"]
    assert loaded(policy, binding)
    with pytest.raises(PolicySetError) as error:
        loaded(changed(policy, **spec), binding)
    assert fault in str(error.value)
