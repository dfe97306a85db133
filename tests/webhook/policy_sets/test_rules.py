"""Policy objects with rules in CEL."""

import time

import jsonpatch
import orjson
import pytest

from config.faults import FaultsError
from config.schemas import CustomTypes
from tests.webhook.asking import ask
from webhook.engine import NAMESPACE, NAMESPACE_LABELS, SCHEMAS, Engine, Request
from webhook.messages import status
from webhook.policy_sets.bound_objects import bind
from webhook.policy_sets.catalogue import catalogue
from webhook.review import read

CONTAINERS = [
    {"name": "app", "image": "nginx"},
    {"name": "log", "image": "r/log", "env": [{"name": "A", "value": "1"}]},
]
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "labels": {"team": "core"}},
    "spec": {"replicas": 5, "template": {"spec": {"containers": CONTAINERS}}},
}


def bound(kind="ClusterAdmissionPolicy", namespace=None, **spec):
    """Return a policy object named `rules`, in force."""
    metadata = {"name": "rules"} | ({"namespace": namespace} if namespace else {})
    return bind(
        {"apiVersion": "gatewright.io/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec},
        catalogue(),
    )


def messages(object=DEPLOYMENT, kind="Deployment", *, asked=None, **spec):
    """Return the messages of the violations."""
    engine = Engine([bound(**spec)])
    outcomes = engine.validate(ask(object, kind, **(asked or {}))).outcomes
    assert [outcome.error for outcome in outcomes if outcome.error] == []
    return [violation.message for outcome in outcomes for violation in outcome.violations]


def faults(**spec):
    """Return the errors of a policy object; none if it is valid."""
    try:
        bound(**spec)
    except FaultsError as error:
        return error.faults
    return ()


def requirement(key, operator, *values):
    """Write an expression of a label selector."""
    return {"key": key, "operator": operator} | ({"values": list(values)} if values else {})


def changed(object=DEPLOYMENT, *, asked=None, **spec):
    """Return the operations and the object after a mutation; both must agree."""
    verdict = Engine([bound(**spec)]).mutate(ask(object, "Deployment", **(asked or {})))
    assert verdict.allowed, verdict.outcomes
    assert jsonpatch.apply_patch(object, verdict.operations) == verdict.object
    return verdict.operations, verdict.object


def applied(expression):
    """Return a mutation by ApplyConfiguration."""
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def patched(expression):
    """Return a mutation by JSONPatch."""
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


def test_false_rules_are_violations():
    """Each has a message (given, computed, or the expression) and the value at its path."""
    assert messages(
        validations=[
            {
                "expression": "object.spec.replicas <= 3",
                "path": "spec.replicas",
                "message": "at most 3 replicas",
            },
            {"expression": "object.metadata.name == 'web'"},
            {
                "expression": "'owner' in object.metadata.labels",
                "path": "metadata.labels[owner]",
                "message": "set it",
            },
            {
                "expression": "object.spec.template.spec.containers.all(c, c.image.contains(':'))",
                "messageExpression": "'no tag: ' + object.spec.template.spec.containers[0].image",
            },
            {"expression": "object.spec.replicas == 1"},
        ]
    ) == [
        "spec.replicas: 5; at most 3 replicas",
        "metadata.labels[owner]: missing; set it",
        "no tag: nginx",
        "failed expression: object.spec.replicas == 1",
    ]


def test_a_failing_message_expression_falls_back_to_the_message():
    """So does one that returns several lines, only whitespace, or more than 5 KiB."""
    rule = {"expression": "false", "message": " the message "}
    for expression in ("object.nope", "'a\\nb'", "' '", f"'{'é' * 2561}'"):
        assert messages(validations=[rule | {"messageExpression": f"string({expression})"}]) == [
            "the message"
        ]
    assert messages(validations=[rule | {"messageExpression": f"'{'é' * 2560}'"}]) == ["é" * 2560]


def test_an_error_is_a_violation_with_fail_and_none_with_ignore():
    """The rule fails like in the API server; the other rules are evaluated."""
    rules = [{"expression": "object.spec.nope == 1"}, {"expression": "false", "message": "second"}]
    assert messages(validations=rules) == [
        "expression 'object.spec.nope == 1' resulted in error: no such key: nope",
        "second",
    ]
    assert messages(validations=rules, failurePolicy="Ignore") == ["second"]


def test_rules_can_read_variables_and_params():
    """A variable can read earlier ones."""
    assert messages(
        params={"maximum": 3},
        variables=[
            {"name": "containers", "expression": "object.spec.template.spec.containers"},
            {"name": "images", "expression": "variables.containers.map(c, c.image)"},
        ],
        validations=[
            {
                "expression": "object.spec.replicas <= params.maximum && variables.images.size() < 2",
                "messageExpression": "variables.images.join(' ') + ' ' + string(params.maximum)",
            }
        ],
    ) == ["nginx r/log 3"]


def test_rules_can_read_the_request_and_the_namespace():
    """`request` has the API's fields; `namespaceObject` the known ones."""
    asked = {
        "looked_up": {NAMESPACE_LABELS: {"env": "prod"}},
        "username": "jane",
        "groups": ("devs",),
    }
    rules = [
        "request.userInfo.username == 'jane' && 'devs' in request.userInfo.groups && request.operation == 'CREATE'",
        "request.resource.resource == 'deployments' && request.kind.kind == 'Deployment' && !has(request.subResource)",
        "namespaceObject.metadata.labels.env == 'prod' && namespaceObject.metadata.name == request.namespace",
    ]
    assert messages(asked=asked, validations=[{"expression": each} for each in rules]) == []
    assert messages(
        asked=asked, validations=[{"expression": "has(namespaceObject.metadata.annotations)"}]
    ) == [
        "expression 'has(namespaceObject.metadata.annotations)' resulted in error: "
        "namespaceObject.metadata.annotations is known to the API server only"
    ]
    assert messages(asked=asked, validations=[{"expression": "has(request.userInfo.extra)"}]) == [
        "expression 'has(request.userInfo.extra)' resulted in error: "
        "request.userInfo.extra is known to the API server only"
    ]


@pytest.mark.parametrize(
    "field", ["request.options", "namespaceObject.spec", "namespaceObject.status.phase"]
)
def test_a_field_unknown_offline_is_an_error(field):
    """It is treated neither as a value nor as absent."""
    asked = {"looked_up": {NAMESPACE_LABELS: {"env": "prod"}}}
    (message,) = messages(asked=asked, validations=[{"expression": f"!has({field})"}])
    unknown = ".".join(field.split(".")[:2])
    assert (
        message
        == f"expression '!has({field})' resulted in error: {unknown} is known to the API server only"
    )


@pytest.mark.parametrize(
    ("key", "value", "unknown"),
    [
        ("options", "request", "request.options"),
        ("spec", "namespaceObject", "namespaceObject.spec"),
    ],
)
def test_a_key_unknown_offline_is_an_error(key, value, unknown):
    """It is an error even without type checks; a key that is known to be absent is not an error."""
    asked = {"looked_up": {NAMESPACE_LABELS: {}}}
    rules = [
        f"!('{key}' in dyn({value}))",
        "!('subResource' in dyn(request)) && 'kind' in dyn(request)",
    ]
    assert messages(asked=asked, validations=[{"expression": each} for each in rules]) == [
        f"expression '{rules[0]}' resulted in error: {unknown} is known to the API server only"
    ]


def test_a_review_of_the_api_server_has_all_fields():
    """The variable `request` is what the API server sent, and `namespaceObject` what it stores."""
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": "shop",
            "labels": {"env": "prod"},
            "annotations": {"owner": "core"},
            "managedFields": [],
        },
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }
    user = {"username": "jane", "uid": "7", "groups": ["devs"], "extra": {"scopes": ["a", "b"]}}
    review = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u",
            "kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
            "resource": {"group": "apps", "version": "v1", "resource": "deployments"},
            "requestKind": {"group": "extensions", "version": "v1beta1", "kind": "Deployment"},
            "requestResource": {
                "group": "extensions",
                "version": "v1beta1",
                "resource": "deployments",
            },
            "name": "web",
            "namespace": "shop",
            "operation": "CREATE",
            "userInfo": user,
            "object": DEPLOYMENT | {"kind": "Deployment"},
            "dryRun": True,
            "options": {
                "kind": "CreateOptions",
                "apiVersion": "meta.k8s.io/v1",
                "fieldManager": "kubectl",
            },
        },
    }
    rules = [
        "request.options.fieldManager == 'kubectl' && request.dryRun",
        "request.userInfo.uid == '7' && request.userInfo.extra == {'scopes': ['a', 'b']}",
        "request.requestResource.group == 'extensions' && request.resource.group == 'apps'",
        "!has(request.subResource) && !has(request.requestSubResource) && request.name == 'web'",
        "namespaceObject.metadata.annotations.owner == 'core' && namespaceObject.spec.finalizers == ['kubernetes']",
        "namespaceObject.status.phase == 'Active' && !has(namespaceObject.metadata.deletionTimestamp)",
    ]
    request = read(orjson.dumps(review)).with_looked_up({NAMESPACE: namespace})
    (outcome,) = (
        Engine([bound(validations=[{"expression": each} for each in rules])])
        .validate(request)
        .outcomes
    )
    assert (outcome.error, [each.message for each in outcome.violations]) == (None, [])


@pytest.mark.parametrize(
    ("changes", "rules"),
    [
        (
            {},
            [
                "request.kind.group == 'apps' && request.kind.version == 'v1' && request.kind.kind == 'Deployment'",
                "request.resource.group == 'apps' && request.resource.version == 'v1'",
                "request.requestKind.group == 'apps' && request.requestKind.version == 'v1'",
                "request.requestKind.kind == 'Deployment' && request.requestResource.resource == 'deployments'",
                "request.requestResource.group == 'apps' && request.requestResource.version == 'v1'",
                "!has(request.subResource) && !has(request.requestSubResource) && !request.dryRun",
                "request.name == 'web'",
            ],
        ),
        ({"name": "sent"}, ["request.name == 'sent'"]),
        (
            {"subresource": "status"},
            ["request.subResource == 'status' && request.requestSubResource == 'status'"],
        ),
        (
            {"requested": ("extensions", "v1beta1", "Deploy")},
            [
                "request.requestKind.group == 'extensions' && request.requestKind.version == 'v1beta1'",
                "request.requestKind.kind == 'Deploy' && request.kind.kind == 'Deployment'",
                "request.requestResource.group == 'extensions' && request.requestResource.version == 'v1beta1'",
                "request.requestResource.resource == 'deployments' && request.resource.group == 'apps'",
            ],
        ),
    ],
)
def test_the_request_has_the_fields_of_the_api_offline(changes, rules):
    """The fields are set as far as a file or a recorded review contains them."""
    match = {"any": [{"kinds": ["Deployment"], "subresources": [changes.get("subresource", "")]}]}
    asked = {"name": ""} | changes
    assert (
        messages(asked=asked, match=match, validations=[{"expression": each} for each in rules])
        == []
    )


def test_a_review_without_options_is_not_complete():
    """The API server sends options with every request, so that other unknown fields are errors, too."""
    about = {"group": "apps", "version": "v1"}
    sent = {"uid": "u", "operation": "CREATE", "object": DEPLOYMENT, "userInfo": {"uid": "7"}}
    sent |= {
        "kind": about | {"kind": "Deployment"},
        "resource": about | {"resource": "deployments"},
    }
    request = read(
        orjson.dumps(
            {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": sent}
        )
    )
    (outcome,) = (
        Engine([bound(validations=[{"expression": "has(request.options)"}])])
        .validate(request)
        .outcomes
    )
    unknown = "expression 'has(request.options)' resulted in error: request.options is known to the API server only"
    assert [each.message for each in outcome.violations] == [unknown]


@pytest.mark.parametrize(
    ("kind", "namespace"), [("ClusterRole", ""), ("Namespace", "shop"), ("PersistentVolume", "")]
)
def test_cluster_scoped_objects_have_no_namespace_object(kind, namespace):
    """A Namespace has no namespaceObject either; nothing is looked up."""
    asked = {"name": "shop", "namespace": namespace}
    match = {"any": [{"kinds": [kind]}]}
    object = {"kind": kind, "metadata": {"name": "shop", "labels": {"a": "b"}}}
    assert (
        messages(
            object,
            kind,
            asked=asked,
            match=match,
            validations=[{"expression": "namespaceObject == null"}],
        )
        == []
    )


def test_an_update_tolerates_an_existing_violation():
    """The same rule with the same value; another value at its path is a new violation."""
    rule = {
        "expression": "object.spec.replicas <= 3",
        "path": "spec.replicas",
        "message": "at most 3",
    }
    engine = Engine([bound(validations=[rule])])
    for before, new, tolerated in ((5, 0, 1), (4, 1, 0), (1, 1, 0)):
        old = DEPLOYMENT | {"spec": {"replicas": before}}
        (outcome,) = engine.validate(
            ask(DEPLOYMENT, "Deployment", old_object=old, operation="UPDATE")
        ).outcomes
        assert (len(outcome.violations), len(outcome.tolerated)) == (new, tolerated)


NONE_IS_1 = "object.metadata.labels.all(key, object.metadata.labels[key] != '1')"


@pytest.mark.parametrize(
    ("expression", "path", "change", "is_denied"),
    [
        ("object.spec.replicas <= 3", "metadata.name", {"spec": {"replicas": 500}}, True),
        ("object.spec.replicas <= 3", "metadata.name", {"spec": {"paused": True}}, False),
        ("object.spec.replicas <= 3", "spec", {"spec": {"paused": True}}, True),
        ("variables.replicas <= 3", "metadata.name", {"spec": {"replicas": 500}}, True),
        ("'x' in object.metadata.labels", "metadata.labels[b]", {"labels": {"a": "2"}}, False),
        ("'x' in object.metadata.labels", "metadata.labels[b]", {"labels": {"b": "2"}}, True),
        ("'x' in object.metadata.labels", "metadata.name", {"labels": {"a": "2"}}, True),
        ("'x' in variables.labels", "metadata.labels[b]", {"labels": {"a": "2"}}, False),
        (NONE_IS_1, "metadata.name", {"labels": {"a": "2"}}, True),
        (NONE_IS_1, "metadata.labels[b]", {"labels": {"a": "evil"}}, True),
        (NONE_IS_1, "metadata.labels[b]", {"spec": {"paused": True}}, False),
        (
            NONE_IS_1.replace("object.metadata", "variables"),
            "metadata.labels[b]",
            {"labels": {"a": "evil"}},
            True,
        ),
        (
            "has(object.metadata.labels) && 'x' in object.metadata.labels",
            "metadata.labels[x]",
            {"labels": {"a": "2"}},
            False,
        ),
        (
            "has(object.metadata.labels) && size(object.metadata.labels) > 5",
            "metadata.labels[x]",
            {"labels": {"a": "2"}},
            True,
        ),
        (
            "object.metadata.?labels.orValue({})['b'] == '2'",
            "metadata.labels[b]",
            {"labels": {"a": "2"}},
            False,
        ),
        ("has(object.spec.x)", "metadata.name", {"spec": {"replicas": 500}}, False),
        ("'c' in object.spec.list", "spec.list[0]", {"spec": {"list": ["a", "d"]}}, True),
        ("!has(object.spec.replicas)", "metadata.name", {"spec": {"replicas": 500}}, True),
        ("object.spec == {}", "spec.replicas", {"spec": {"paused": True}}, True),
        ("!('b' in object.spec.list)", "spec.list[0]", {"spec": {"list": ["a", "b", "b"]}}, True),
        ("!('b' in object.spec.list)", "spec.list[0]", {"spec": {"paused": True}}, False),
    ],
)
def test_a_path_beside_the_field_that_a_rule_reads_hides_no_change(
    expression, path, change, is_denied
):
    """Otherwise each update of a violating object would be tolerated, however much worse."""
    labels = {"a": "1", "b": "1"}
    old = DEPLOYMENT | {
        "metadata": DEPLOYMENT["metadata"] | {"labels": labels},
        "spec": {"replicas": 5, "list": ["a", "b"]},
    }
    metadata = old["metadata"] | {"labels": labels | change.get("labels", {})}
    new = old | {"metadata": metadata, "spec": old["spec"] | change.get("spec", {})}
    variables = [
        {"name": "replicas", "expression": "object.spec.replicas"},
        {"name": "labels", "expression": "object.metadata.?labels.orValue({})"},
    ]
    rule = {"expression": expression, "path": path}
    engine = Engine([bound(validations=[rule], variables=variables)])
    verdict = engine.validate(ask(new, "Deployment", old_object=old, operation="UPDATE"))
    assert (verdict.allowed, len(verdict.outcomes)) == (not is_denied, 1)


CHANGED = "request.operation == 'CREATE' || object.spec != oldObject.spec"


@pytest.mark.parametrize("condition", [CHANGED, "object.spec != oldObject.spec"])
@pytest.mark.parametrize("failure_policy", ["Fail", "Ignore"])
def test_a_condition_on_the_old_object_hides_no_violation(condition, failure_policy):
    """The old object is judged like a creation: if the condition then fails, nothing is tolerated."""
    rule = {
        "expression": "object.spec.replicas <= 3",
        "path": "spec.replicas",
        "message": "at most 3",
    }
    conditions = [{"name": "changed", "expression": condition}]
    engine = Engine(
        [bound(validations=[rule], matchConditions=conditions, failurePolicy=failure_policy)]
    )
    old = DEPLOYMENT | {"spec": {"replicas": 1}}
    (outcome,) = engine.validate(
        ask(DEPLOYMENT, "Deployment", old_object=old, operation="UPDATE")
    ).outcomes
    assert (outcome.error, [each.message for each in outcome.violations]) == (
        None,
        ["spec.replicas: 5; at most 3"],
    )


def test_a_condition_for_creations_selects_the_object_as_it_was():
    """The old object is judged like a creation, so that its violation is tolerated."""
    rule = {"expression": "object.spec.replicas <= 3", "path": "spec.replicas"}
    changed = "oldObject == null || object.spec != oldObject.spec"
    engine = Engine(
        [bound(validations=[rule], matchConditions=[{"name": "changed", "expression": changed}])]
    )
    old = DEPLOYMENT | {"spec": DEPLOYMENT["spec"] | {"paused": True}}
    (outcome,) = engine.validate(
        ask(DEPLOYMENT, "Deployment", old_object=old, operation="UPDATE")
    ).outcomes
    assert (outcome.violations, len(outcome.tolerated)) == ((), 1)


def test_an_error_is_never_tolerated():
    """An error has no old state to compare with."""
    engine = Engine([bound(validations=[{"expression": "object.nope == 1"}])])
    verdict = engine.validate(
        ask(DEPLOYMENT, "Deployment", old_object=DEPLOYMENT, operation="UPDATE")
    )
    assert not verdict.allowed


def test_match_conditions_decide_where_a_policy_applies():
    """A false one decides even beside an error; an error alone fails the policy. Built-in policies may have them."""
    rule = {"expression": "false", "message": "denied"}
    applies = {"name": "big", "expression": "object.spec.replicas > 3"}
    small = {"name": "small", "expression": "object.spec.replicas < 3"}
    broken = {"name": "broken", "expression": "object.nope"}
    with pytest.raises(FaultsError):
        bound(validations=[rule], matchConditions=[broken])
    broken["expression"] += " == 1"
    assert messages(validations=[rule], matchConditions=[applies]) == ["denied"]
    assert messages(validations=[rule], matchConditions=[broken, small]) == []
    request = ask(DEPLOYMENT, "Deployment")
    verdict = Engine([bound(validations=[rule], matchConditions=[applies, broken])]).validate(
        request
    )
    assert status(request, verdict)["message"] == (
        "1 policy failure\n- rules: matchCondition broken: no such key: nope"
    )
    assert (
        len(messages(policy="replica-limits", params={"maximum": 4}, matchConditions=[applies]))
        == 1
    )
    assert messages(policy="replica-limits", params={"maximum": 4}, matchConditions=[small]) == []


def test_match_names_kinds_operations_and_subresources():
    """An unknown kind is named in full; a clause without kinds matches every known kind."""
    match = {
        "any": [
            {"kinds": ["things.example.com/v1/Thing"]},
            {"kinds": ["Deployment"], "operations": ["DELETE"]},
            {"kinds": ["Deployment"], "subresources": ["scale"]},
            {"kinds": ["Pod"], "subresources": ["exec", "attach"]},
        ]
    }
    policy = bound(match=match, validations=[{"expression": "true"}])
    targets = {
        (target.kind.plural, target.subresource, target.operations)
        for target in policy.policy.targets
    }
    assert targets == {
        ("things", "", ("CREATE", "UPDATE")),
        ("deployments", "", ("DELETE",)),
        ("deployments", "scale", ("UPDATE",)),
        ("pods", "exec", ("CONNECT",)),
        ("pods", "attach", ("CONNECT",)),
    }
    everywhere = bound(validations=[{"expression": "true"}]).policy.targets
    assert {"pods", "namespaces", "webapps"} <= {each.kind.plural for each in everywhere}


@pytest.mark.parametrize(
    ("other", "asked"),
    [
        ({"operations": ["DELETE"]}, {"operation": "DELETE"}),
        ({"subresources": ["status"]}, {"subresource": "status", "operation": "UPDATE"}),
        (
            {"kinds": ["Lease"]},
            {"resource_group": "coordination.k8s.io", "resource": "leases"},
        ),
    ],
)
def test_the_defaults_of_a_clause_do_not_depend_on_other_clauses(other, asked):
    """It matches whole objects of known kinds that are created or updated."""
    match = {"any": [{"namespaces": ["shop"]}, {"namespaces": ["lab"], **other}]}
    engine = Engine([bound(match=match, validations=[{"expression": "false"}])])

    def is_judged(namespace, **about):
        request = ask({}, "Deployment", namespace=namespace, **about)
        return engine.requirements(request.attributes) is not None

    assert is_judged("shop")
    assert is_judged("lab", **asked)
    assert not is_judged("shop", **asked)


@pytest.mark.parametrize(
    ("clause", "fault"),
    [
        (
            {"kinds": ["Pod"], "subresources": ["exce"]},
            ("spec.match.any[0].subresources", 'unknown subresource "exce"; did you mean "exec"?'),
        ),
        (
            {"kinds": ["Pod"], "subresources": ["*"]},
            ("spec.match.any[0].subresources", 'unknown subresource "*"'),
        ),
        (
            {"kinds": ["Pod"], "subresources": ["log"]},  # a GET, which has no admission
            ("spec.match.any[0].subresources", 'unknown subresource "log"'),
        ),
        (
            {"kinds": ["Pod"], "subresources": ["exec", "attach"], "operations": ["CREATE"]},
            (
                "spec.match.any[0].operations",
                "matches nothing: with the rest of the clause, operations can only be CONNECT",
            ),
        ),
        (
            {"kinds": ["Pod"], "operations": ["CONNECT"]},
            (
                "spec.match.any[0].operations",
                "matches nothing: with the rest of the clause, operations can only be CREATE, DELETE, UPDATE",
            ),
        ),
        (
            {"kinds": ["Pod"], "subresources": ["", "exec"], "operations": ["CREATE"]},
            (
                "spec.match.any[0].subresources",
                '"exec" matches nothing: with it, operations can only be CONNECT',
            ),
        ),
        (
            {"kinds": ["Pod"], "subresources": ["exec"], "operations": ["CREATE", "CONNECT"]},
            (
                "spec.match.any[0].operations",
                '"CREATE" matches nothing: with it, subresources can only be "", binding, eviction',
            ),
        ),
        (
            {"kinds": ["Pod"], "subresources": ["", "exec"], "operations": ["CREATE", "CONNECT"]},
            None,
        ),
        (
            {"kinds": ["Pod"], "subresources": ["scale"]},
            (
                "spec.match.any[0].subresources",
                'matches nothing: with the rest of the clause, subresources can only be "", attach, binding, '
                "ephemeralcontainers, eviction, exec, portforward, proxy, resize, status",
            ),
        ),
        (
            {"kinds": ["ConfigMap"], "subresources": ["status"]},
            (
                "spec.match.any[0].subresources",
                'matches nothing: with the rest of the clause, subresources can only be ""',
            ),
        ),
        (
            {
                "kinds": ["Pod", "ConfigMap"],
                "subresources": ["", "status"],
                "operations": ["UPDATE"],
            },
            None,
        ),
        (
            {"kinds": ["Node", "v1/Pod"], "subresources": ["resize"]},
            (
                "spec.match.any[0].kinds",
                '"Node" matches nothing: with it, subresources can only be "", proxy, status',
            ),
        ),
        (
            {"kinds": ["WebApp"], "subresources": ["exec"]},
            (
                "spec.match.any[0].subresources",
                'matches nothing: with the rest of the clause, subresources can only be "", scale, status',
            ),
        ),
        ({"subresources": ["scale"], "objectSelector": {}}, None),
        (
            {"subresources": ["approval"]},  # of no kind that a rule judges without naming it
            (
                "spec.match.any[0].subresources",
                'matches nothing: with the rest of the clause, subresources can only be "", attach, binding, '
                "ephemeralcontainers, eviction, exec, finalize, portforward, proxy, resize, scale, status, token",
            ),
        ),
        ({"kinds": ["Service"], "subresources": ["proxy"], "objectSelector": {}}, None),
        *(
            (
                {"kinds": [kind], "subresources": [subresource], "objectSelector": {}},
                (
                    "spec.match.any[0].objectSelector",
                    "matches nothing: the webhook does not look up what these subresources belong to; use "
                    "`names` or `namespaceSelector`",
                ),
            )
            for kind, subresource in (
                ("Node", "proxy"),
                ("ServiceAccount", "token"),
                ("example.com/v1/Gadget", "scale"),
            )
        ),
        (
            {"kinds": ["Pod", "Node"], "subresources": ["", "proxy"], "podSelector": {}},
            ("spec.match.any[0].kinds", '"Node" matches nothing: these objects have no pods'),
        ),
        ({"kinds": ["Pod"], "subresources": ["eviction"], "operations": ["CREATE"]}, None),
        ({"kinds": ["Namespace"], "namespaces": ["shop"]}, None),
        (
            {"kinds": ["ClusterRole"], "namespaces": ["shop"]},
            (
                "spec.match.any[0].namespaces",
                "matches nothing: cluster-scoped objects have no namespace",
            ),
        ),
        (
            {"kinds": ["virtualmachines.kubevirt.io/v1/VirtualMachine"], "subresources": ["start"]},
            None,
        ),
        (
            {
                "kinds": ["virtualmachines.kubevirt.io/v1/VirtualMachine"],
                "subresources": ["portforward"],
                "operations": ["UPDATE"],
            },
            None,
        ),
        (
            {"kinds": ["virtualmachines.kubevirt.io/v1/VirtualMachine"], "subresources": ["*"]},
            ("spec.match.any[0].subresources", 'unknown subresource "*"'),
        ),
    ],
)
def test_a_clause_that_matches_nothing_is_an_error(clause, fault):
    """The rule would silently never apply. Other API servers may have other subresources."""
    spec = {"match": {"any": [clause]}, "validations": [{"expression": "true"}]}
    if fault is None:
        bound(**spec)
    else:
        assert [(path, text.partition("; known")[0]) for path, text in faults(**spec)] == [fault]


@pytest.mark.long
def test_a_large_match_is_checked_in_linear_time():
    """At most ten reasons are looked for: each takes time."""
    kinds = [f"g{number}.io/v1/K{number}" for number in range(2000)]
    words = [f"s{number}" for number in range(5000)]
    wrong = {"subresources": ["exec"], "operations": ["CREATE"]}
    rules = {"validations": [{"expression": "true"}]}
    begin = time.process_time()
    assert faults(match={"any": [{"kinds": kinds, "podSelector": {}}]}, **rules)
    assert not faults(match={"any": [{"kinds": kinds[:1], "subresources": words}]}, **rules)
    assert len(faults(match={"any": [wrong] * 1000}, **rules)) == 10
    assert time.process_time() - begin < 3


def test_a_mutation_of_deletions_is_an_error():
    """They have no object to change."""
    match = {"any": [{"kinds": ["Pod"], "operations": ["DELETE"]}]}
    mutation = patched("[JSONPatch{op: 'remove', path: '/spec'}]")
    assert faults(match=match, mutations=[mutation]) == (
        (
            "spec.match.any[0].operations",
            "matches nothing: with the rest of the clause, operations can only be CREATE, UPDATE",
        ),
    )


@pytest.mark.parametrize("field", ["namespaceSelector", "objectSelector", "podSelector"])
@pytest.mark.parametrize(
    ("selector", "is_wrong"),
    [
        ({}, False),
        (
            {"matchLabels": {"tier": "web"}, "matchExpressions": [requirement("tier", "Exists")]},
            False,
        ),
        (
            {
                "matchLabels": {"tier": "web"},
                "matchExpressions": [requirement("app", "DoesNotExist")],
            },
            False,
        ),
        (
            {
                "matchExpressions": [
                    requirement("tier", "Exists"),
                    requirement("tier", "NotIn", "web"),
                ]
            },
            False,
        ),
        (
            {
                "matchExpressions": [
                    requirement("tier", "In", "a", "b"),
                    requirement("tier", "NotIn", "a"),
                ]
            },
            False,
        ),
        (
            {
                "matchExpressions": [
                    requirement("tier", "In", "a"),
                    requirement("tier", "NotIn", "a"),
                ]
            },
            True,
        ),
        (
            {"matchLabels": {"tier": "web"}, "matchExpressions": [requirement("tier", "In", "db")]},
            True,
        ),
        (
            {
                "matchLabels": {"tier": "web"},
                "matchExpressions": [requirement("tier", "DoesNotExist")],
            },
            True,
        ),
        (
            {
                "matchExpressions": [
                    requirement("tier", "Exists"),
                    requirement("tier", "DoesNotExist"),
                ]
            },
            True,
        ),
    ],
)
def test_labels_that_no_object_can_have_are_an_error(field, selector, is_wrong):
    """For rules in CEL and for built-in policies."""
    fault = (
        f"spec.match.any[0].{field}",
        "matches nothing: no labels meet all of these conditions",
    )
    match = {"any": [{"kinds": ["Pod"], field: selector}]}
    for rules in ({"policy": "host-ports"}, {"validations": [{"expression": "true"}]}):
        assert faults(match=match, **rules) == ((fault,) if is_wrong else ())


def test_a_selector_of_namespaces_that_other_fields_exclude_is_an_error():
    """A namespace has its name as a label."""
    fault = (
        "spec.match.any[0].namespaceSelector",
        "matches nothing: no labels meet all of these conditions",
    )
    selector = {
        "matchExpressions": [requirement("kubernetes.io/metadata.name", "In", "shop", "lab")]
    }
    rules = {"validations": [{"expression": "true"}]}

    def of(kind="ClusterAdmissionPolicy", namespace=None, **clause):
        match = {"any": [{"kinds": ["Pod"], "namespaceSelector": selector, **clause}]}
        return faults(kind=kind, namespace=namespace, match=match, **rules)

    assert of() == of(namespaces=["sh*"]) == of("AdmissionPolicy", "lab") == ()
    assert of(namespaces=["prod"]) == of("AdmissionPolicy", "prod") == (fault,)


@pytest.mark.parametrize(
    ("exclude", "path"),
    [
        ({"users": ["alice", "*"]}, "spec.match.exclude.users"),
        ({"groups": ["system:*"]}, "spec.match.exclude.groups"),
        ({"groups": ["*"]}, "spec.match.exclude.groups"),
        (
            {"groups": ["system:authenticated", "system:unauthenticated"]},
            "spec.match.exclude.groups",
        ),
        ({"groups": ["system:authenticated"], "users": ["system:*"]}, None),
    ],
)
def test_a_policy_that_excludes_every_user_is_an_error(exclude, path):
    """Each user is in the group system:authenticated or in system:unauthenticated."""
    wrong = ((path, "excludes every user; the policy would match nothing"),) if path else ()
    for rules in ({"policy": "host-ports"}, {"validations": [{"expression": "true"}]}):
        assert faults(match={"exclude": exclude}, **rules) == wrong


def deployment(replicas, image="nginx", **labels):
    """Write a Deployment."""
    pod = {"containers": [{"name": "app", "image": image}]}
    spec = {"replicas": replicas, "template": {"spec": pod}}
    return {"kind": "Deployment", "metadata": {"name": "web", "labels": labels}, "spec": spec}


@pytest.mark.parametrize(
    ("expression", "new", "is_denied"),
    [
        ("object.spec.replicas <= 3", deployment(500), True),
        ("object.spec.replicas <= 3", deployment(5, "other"), False),
        ("variables.number <= 3", deployment(500), True),
        ("variables.number <= 3", deployment(5, "other"), False),
        (
            "has(object.spec.replicas) && object.spec['replicas'] <= 3",
            deployment(5, "other"),
            False,
        ),
        ("object.?spec.?replicas.orValue(0) <= 3", deployment(5, "other"), False),
        ("object.?spec.?replicas.orValue(0) <= 3", deployment(6), True),
        ("object.spec.template.spec.containers.all(c, c.image == 'a')", deployment(9), False),
        ("object.spec.template.spec.containers.all(c, c.image == 'a')", deployment(5, "b"), True),
        ("'team' in object.metadata.labels", deployment(9), False),
        ("'team' in object.metadata.labels", deployment(5, tier="a"), True),
        ("object == oldObject", deployment(5), False),
        ("object == oldObject", deployment(6), True),
        ("object.spec.replicas <= 3 && request.namespace == 'shop'", deployment(5, "other"), False),
    ],
)
def test_without_a_path_an_update_may_change_nothing_that_a_broken_rule_reads(
    expression, new, is_denied
):
    """Whether another value is worse is unknown: 500 replicas instead of 5 are a new violation."""
    variables = [{"name": "number", "expression": "object.spec.replicas"}]
    request = ask(new, "Deployment", old_object=deployment(5), operation="UPDATE")
    verdict = Engine(
        [bound(validations=[{"expression": expression}], variables=variables)]
    ).validate(request)
    assert (verdict.allowed, len(verdict.outcomes)) == (not is_denied, 1)


@pytest.mark.parametrize(
    "who",
    [
        "request.userInfo.username == 'root'",
        "request.?userInfo.?groups.orValue([]).exists(g, g == 'admins')",
        "request.operation == 'CREATE' && false",
        "request.dryRun",
        "dyn(request).userInfo.username == 'root'",
        "!(oldObject == null || has(oldObject.spec))",
        "variables.is_root",
        "dyn(variables).is_root",
    ],
)
@pytest.mark.parametrize("at", ["rule", "condition"])
def test_a_rule_that_reads_user_or_operation_tolerates_nothing(who, at):
    """A user who may not change an object still may not if another user created it."""
    is_root = {"name": "is_root", "expression": "request.userInfo.username == 'root'"}
    rule = {"expression": f"object.spec.replicas <= 3 || {who}", "path": "spec.replicas"}
    spec = {"validations": [rule], "variables": [is_root]}
    if at == "condition" and "variables" not in who and "oldObject" not in who:
        rule["expression"] = "object.spec.replicas <= 3"
        spec["matchConditions"] = [{"name": "who", "expression": f"!({who})"}]
    request = ask(deployment(5), "Deployment", old_object=deployment(5), operation="UPDATE")
    (outcome,) = Engine([bound(**spec)]).validate(request).outcomes
    assert ([each.path for each in outcome.violations], outcome.tolerated) == (
        ["spec.replicas"],
        (),
    )


@pytest.mark.parametrize(
    "expression", ["false", "namespaceObject.metadata.name != 'shop'", "params.size() == 0"]
)
def test_a_rule_that_does_not_read_the_object_tolerates_nothing(expression):
    """Its values are not part of the object: it denies the change itself."""
    rule = {"expression": expression, "path": "spec.replicas"}
    engine = Engine([bound(validations=[rule], params={"a": 1})])
    looked_up = {NAMESPACE: {"metadata": {"name": "shop"}}, NAMESPACE_LABELS: {}}
    request = ask(
        deployment(5),
        "Deployment",
        old_object=deployment(5),
        operation="UPDATE",
        looked_up=looked_up,
    )
    assert not engine.validate(request).allowed


@pytest.mark.parametrize(
    "path", [".spec.replicas", "$.spec.replicas", "/spec/replicas", "object.spec.replicas"]
)
def test_a_path_in_another_notation_is_an_error(path):
    """Otherwise every message would report a missing field."""
    text = (
        f'"{path}": expected a path from the object, such as spec.replicas or metadata.labels[team]'
    )
    assert faults(validations=[{"expression": "true", "path": path}]) == (
        ("spec.validations[0].path", text),
    )


def test_a_path_without_a_value_is_compared_as_none():
    """A typo in `path` tolerates nothing more."""
    rule = {"expression": "object.spec.replicas <= 3", "path": "spec.replcias"}
    for new, is_denied in ((deployment(500), True), (deployment(5, "other"), False)):
        request = ask(new, "Deployment", old_object=deployment(5), operation="UPDATE")
        assert Engine([bound(validations=[rule])]).validate(request).allowed is not is_denied


def test_every_error_has_line_and_column():
    """All errors are reported when the object is applied."""
    assert faults(
        match={"any": [{"kinds": ["Deploymnt"]}]},
        variables=[
            {"name": "a", "expression": "objct.x"},
            {"name": "b", "expression": "variables.c"},
        ],
        matchConditions=[{"name": "c", "expression": "'yes'"}],
        validations=[
            {"expression": "object.spec.replicas <=\n  'a' + 1"},
            {"expression": "params.x == 1"},
            {"expression": "true", "messageExpression": "1"},
        ],
    ) == (
        (
            "spec.matchConditions[0].expression",
            "line 1, column 1: must evaluate to bool but got string",
        ),
        (
            "spec.variables[0].expression",
            "line 1, column 1: undeclared reference to 'objct'; did you mean \"object\"?",
        ),
        (
            "spec.variables[1].expression",
            "line 1, column 11: undefined field 'c' of 'variables'; known: a",
        ),
        (
            "spec.validations[0].expression",
            "line 2, column 7: found no matching overload for '_+_' applied to '(string, int)'",
        ),
        (
            "spec.validations[1].expression",
            "line 1, column 1: undeclared reference to 'params'; known: authorizer, namespaceObject, object, "
            "oldObject, request, variables",
        ),
        (
            "spec.validations[2].messageExpression",
            "line 1, column 1: must evaluate to string but got int",
        ),
        ("spec.match.any[0].kinds", 'unknown kind "Deploymnt"; did you mean "Deployment"?'),
    )


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        (
            {},
            (
                "spec.policy",
                "missing; name a built-in policy, or give validations or mutations in CEL",
            ),
        ),
        (
            {"policy": "replica-limits", "validations": [{"expression": "true"}]},
            ("spec.validations", "not beside `policy`; use one object for each"),
        ),
        (
            {"policy": "replica-limits", "variables": [{"name": "a", "expression": "1"}]},
            ("spec.variables", "not beside `policy`; a built-in policy reads no variables"),
        ),
        (
            {
                "mutations": [
                    {"patchType": "JSONPatch", "applyConfiguration": {"expression": "Object{}"}}
                ]
            },
            ("spec.mutations[0].jsonPatch", "patchType JSONPatch needs this, and nothing else"),
        ),
        (
            {"mutations": [applied("object")]},
            (
                "spec.mutations[0].applyConfiguration.expression",
                "line 1, column 1: must evaluate to Object but got dyn",
            ),
        ),
        (
            {
                "variables": [{"name": "a", "expression": "Object{}"}],
                "mutations": [applied("Object{}")],
            },
            ("spec.variables[0].expression", "line 1, column 1: undeclared reference to 'Object'"),
        ),
        (
            {"mutations": [patched("[JSONPatch{op: 'add', pth: '/x'}]")]},
            (
                "spec.mutations[0].jsonPatch.expression",
                "line 1, column 23: undefined field 'pth' of 'JSONPatch'; did you mean \"path\"?",
            ),
        ),
    ],
)
def test_invalid_combinations_are_rejected(spec, fault):
    """A policy object names a built-in policy, or has validations, or mutations."""
    assert faults(**spec) == (fault,)


def test_a_tenants_rules_cannot_mutate():
    """An AdmissionPolicy validates objects of its namespace."""
    policy = bound(
        "AdmissionPolicy", "shop", validations=[{"expression": "false", "message": "no"}]
    )
    assert all(each.kind.namespaced for each in policy.policy.targets)
    assert not Engine([policy]).validate(ask(DEPLOYMENT, "Deployment")).allowed
    assert Engine([policy]).validate(ask(DEPLOYMENT, "Deployment", namespace="other")).allowed
    with pytest.raises(FaultsError, match="an AdmissionPolicy can only deny"):
        bound("AdmissionPolicy", "shop", mutations=[applied("Object{}")])


@pytest.mark.parametrize(
    ("kind", "namespace", "failed"),
    [("ClusterAdmissionPolicy", None, 0), ("AdmissionPolicy", "shop", 2)],
)
def test_the_policies_of_a_tenant_share_a_budget(kind, namespace, failed):
    """The number of its policies does not multiply the cost of a review."""
    costly = {"expression": "lists.range(90000).size() > 0"}
    policies = [bound(kind, namespace, validations=[costly]) for _ in range(6)]
    outcomes = Engine(policies).validate(ask(DEPLOYMENT, "Deployment")).outcomes
    messages = [each.message for outcome in outcomes for each in outcome.violations]
    assert len(messages) == failed
    assert all("costs too much" in each for each in messages)


def test_an_apply_configuration_merges_by_list_keys():
    """Containers, env and ports are merged by their keys, like in server-side apply."""
    expression = """Object{
        metadata: Object.metadata{labels: Object.metadata.labels{tier: 'web'}},
        spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{
            containers: object.spec.template.spec.containers.map(c, Object.spec.template.spec.containers{
                name: c.name,
                env: [Object.spec.template.spec.containers.env{name: 'B', value: request.operation}]
            }),
            hostNetwork: false
        }}}
    }"""
    operations, object = changed(mutations=[applied(expression)])
    added = {"name": "B", "value": "CREATE"}
    assert object["spec"]["template"]["spec"] == {
        "containers": [
            CONTAINERS[0] | {"env": [added]},
            CONTAINERS[1] | {"env": [{"name": "A", "value": "1"}, added]},
        ],
        "hostNetwork": False,
    }
    assert object["metadata"]["labels"] == {"team": "core", "tier": "web"}
    assert [each["path"] for each in operations] == [
        "/metadata/labels/tier",
        "/spec/template/spec/containers/0/env",
        "/spec/template/spec/containers/1/env",
        "/spec/template/spec/hostNetwork",
    ]


SERVICE = {
    "kind": "Service",
    "metadata": {"name": "web", "finalizers": ["a"]},
    "spec": {
        "ports": [{"port": 80}, {"port": 53, "protocol": "UDP"}],
        "externalIPs": ["192.0.2.1"],
    },
}


@pytest.mark.parametrize(
    ("expression", "path", "value"),
    [
        (
            "spec: Object.spec{ports: [Object.spec.ports{port: 80, protocol: 'TCP', name: 'http'}]}",
            ("spec", "ports"),
            [{"port": 80, "protocol": "TCP", "name": "http"}, {"port": 53, "protocol": "UDP"}],
        ),
        (
            "spec: Object.spec{ports: [Object.spec.ports{port: 53, name: 'dns'}]}",
            ("spec", "ports"),
            [{"port": 80}, {"port": 53, "protocol": "UDP"}, {"port": 53, "name": "dns"}],
        ),
        (
            "metadata: Object.metadata{finalizers: ['b', 'a']}",
            ("metadata", "finalizers"),
            ["b", "a"],
        ),
    ],
)
def test_lists_of_a_service_are_merged_as_server_side_apply_does(expression, path, value):
    """Its ports have the keys port and protocol (TCP by default); finalizers are a set."""
    engine = Engine([bound(mutations=[applied(f"Object{{{expression}}}")])])
    verdict = engine.mutate(ask(SERVICE, "Service"))
    assert verdict.object[path[0]][path[1]] == value


@pytest.mark.parametrize(
    ("fields", "failure"),
    [
        ("externalIPs: ['192.0.2.2']", "atomic lists, maps or structs: spec.externalIPs; use a JSONPatch"),
        ("selector: {'a': 'b'}", "atomic lists, maps or structs: spec.selector; use a JSONPatch"),
        ("prots: []", "invalid: spec.prots: unknown field"),
        ("type: 1", "invalid: spec.type: must be a string"),
        ("healthCheckNodePort: 1.5", "invalid: spec.healthCheckNodePort: must be an integer"),
        (
            "ports: [Object.spec.ports{port: 1}, Object.spec.ports{port: 1, protocol: 'TCP'}]",
            "invalid: spec.ports: two items have the same key port=1, protocol=TCP",
        ),
    ],
)  # fmt: skip
def test_an_apply_configuration_that_the_api_server_refuses_is_an_error(fields, failure):
    """Fields of the user that the configuration does not name would be lost, or the object would be invalid."""
    engine = Engine([bound(mutations=[applied(f"Object{{spec: Object.spec{{{fields}}}}}")])])
    (outcome,) = engine.mutate(ask(SERVICE, "Service")).outcomes
    assert str(outcome.error).endswith(failure)


def test_a_mutation_of_a_custom_resource_replaces_lists_whatever_their_names():
    """Only the CRD defines which lists have keys; metadata is the same for every kind."""
    match = {"any": [{"kinds": ["example.org/v1/Gadget"]}]}
    fields = "spec: Object.spec{containers: [Object.spec.containers{name: 'b'}], m: {'b': 2.0}}"
    engine = Engine(
        [
            bound(
                match=match,
                mutations=[
                    applied(f"Object{{{fields}, metadata: Object.metadata{{finalizers: ['b']}}}}")
                ],
            )
        ]
    )
    spec = {"containers": [{"name": "a"}], "m": {"a": 1}}
    object = {"metadata": {"finalizers": ["a"]}, "spec": spec}
    request = ask(
        object,
        group="example.org",
        kind="Pod",
        resource_group="example.org",
        resource="gadgets",
    )
    about = request.attributes._replace(kind="Gadget")
    request = Request(about, object, looked_up={SCHEMAS: CustomTypes})
    assert engine.mutate(request).object == {
        "metadata": {"finalizers": ["a", "b"]},
        "spec": {"containers": [{"name": "b"}], "m": {"a": 1, "b": 2}},
    }


@pytest.mark.parametrize(
    ("patch", "replicas"),
    [
        ([("replace", "replicas", "double(object.spec.replicas) * 2.0")], 10),
        ([("replace", "replicas", "7"), ("test", "replicas", "8")], 5),
        ([("replace", "replicas", "7"), ("test", "replicas", "7")], 7),
        ([("test", "paused", "true"), ("remove", "replicas", "null")], 5),
    ],
)
def test_a_json_patch_is_applied_as_by_the_api_server(patch, replicas):
    """A double without a fraction becomes an integer; if a test fails, no part of the patch is applied."""
    steps = [
        f"JSONPatch{{op: '{op}', path: '/spec/{field}', value: {value}}}"
        for op, field, value in patch
    ]
    _, object = changed(mutations=[patched(f"[{', '.join(steps)}]")])
    assert (object["spec"]["replicas"], type(object["spec"]["replicas"])) == (replicas, int)


@pytest.mark.parametrize(
    ("patch", "failure"),
    [
        ("path: '/spec/replicas', value: 4.5", "spec.replicas: must be an integer"),
        ("path: '/spec/replcas', value: 4", "spec.replcas: unknown field"),
    ],
)
def test_a_json_patch_that_makes_an_invalid_object_is_an_error(patch, failure):
    """The API server would reject the object without naming the policy."""
    engine = Engine([bound(mutations=[patched(f"[JSONPatch{{op: 'add', {patch}}}]")])])
    (outcome,) = engine.mutate(ask(DEPLOYMENT, "Deployment")).outcomes
    assert str(outcome.error) == f"the JSONPatch makes an invalid object: {failure}"


@pytest.mark.parametrize(
    ("kind", "object", "expression"),
    [
        ("Deployment", DEPLOYMENT, "object.spec.template.spec.restartPolicy == 'Always'"),
        (
            "Deployment",
            DEPLOYMENT,
            "object.spec.template.spec.containers.map(c, c.imagePullPolicy) == ['Always', 'Always']",
        ),
        ("Deployment", DEPLOYMENT, "object.spec.strategy.rollingUpdate.maxSurge == '25%'"),
        (
            "ClusterRole",
            {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {}},
            "object.rules == null",
        ),
        (
            "Pod",
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"labels": {}},
                "spec": {
                    "hostNetwork": True,
                    "hostPID": False,
                    "containers": [{"name": "a", "image": "a:1", "ports": [{"containerPort": 80}],
                                    "resources": {"limits": {"cpu": 2}}}],
                },
            },
            "object.spec.containers[0].ports[0].hostPort == 80 && !has(object.spec.hostPID) && "
            "!has(object.metadata.labels) && object.spec.containers[0].resources.requests.cpu == '2'",
        ),
        (
            "StorageClass",
            {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {}},
            "object.reclaimPolicy == 'Delete' && object.provisioner == ''",
        ),
    ],
)  # fmt: skip
def test_a_manifest_has_the_defaults_of_the_api(kind, object, expression):
    """Rules judge it like in the cluster; objects from the API server have the defaults, and do not change."""
    match = {"any": [{"kinds": [kind]}]}
    assert messages(object, kind, match=match, validations=[{"expression": expression}]) == []


def test_a_mutation_can_read_the_namespace():
    """Its labels are looked up for each request, and not before the policy is in force."""
    labels = "Object.metadata{labels: {'env': namespaceObject.metadata.labels.env}}"
    asked = {"looked_up": {NAMESPACE_LABELS: {"env": "prod"}}}
    operations, _ = changed(mutations=[applied(f"Object{{metadata: {labels}}}")], asked=asked)
    assert operations == [{"op": "add", "path": "/metadata/labels/env", "value": "prod"}]


def test_a_json_patch_adds_replaces_and_removes():
    """Each mutation sees the result of the one before."""
    operations, object = changed(
        variables=[{"name": "team", "expression": "object.metadata.labels.team"}],
        mutations=[
            patched(
                "[JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('a/b'), value: variables.team},"
                " JSONPatch{op: 'remove', path: '/metadata/labels/team'}]"
            ),
            patched("has(object.metadata.labels.team) ? [JSONPatch{op: 'remove', path: '/spec'}] : []"),
            patched("[JSONPatch{op: 'test', path: '/spec/replicas', value: 5},"
                    " JSONPatch{op: 'replace', path: '/spec/replicas', value: object.spec.replicas - 1}]"),
        ],
    )  # fmt: skip
    assert object["metadata"]["labels"] == {"a/b": "core"}
    assert object["spec"]["replicas"] == 4
    assert operations == [
        {"op": "add", "path": "/metadata/labels/a~1b", "value": "core"},
        {"op": "remove", "path": "/metadata/labels/team"},
        {"op": "replace", "path": "/spec/replicas", "value": 4},
    ]


def test_a_mutation_that_changes_nothing_has_no_operations():
    """A mutation applied to its own result has none."""
    mutation = applied(
        "Object{metadata: Object.metadata{labels: Object.metadata.labels{team: 'core'}}}"
    )
    assert changed(mutations=[mutation]) == ([], DEPLOYMENT)


def test_a_failing_mutation_is_an_error_of_its_policy():
    """`failurePolicy` decides; the object is unchanged."""
    engine = Engine([bound(mutations=[patched("[JSONPatch{op: 'remove', path: '/nope'}]")])])
    request = ask(DEPLOYMENT, "Deployment")
    verdict = engine.mutate(request)
    assert not verdict.allowed
    assert verdict.operations == []
    failure = "operation 0 of the JSONPatch (remove /nope) cannot be applied to the object"
    assert status(request, verdict)["message"] == f"1 policy failure\n- rules: {failure}"


@pytest.mark.parametrize(
    ("operation", "failure"),
    [
        (
            "op: 'replace', path: '/data/none/x', value: 'a'",
            "(replace /data/none/x) cannot be applied to the object",
        ),
        (
            "op: 'test', path: '/data/none/key', value: 'a'",
            "(test /data/none/key) cannot be applied to the object",
        ),
        (
            "op: 'replace', path: '', value: 'a'",
            "the JSONPatch replaces the whole object by something else",
        ),
        ("op: 'remove'", "a JSONPatch needs op and path"),
        ("path: '/data'", "a JSONPatch needs op and path"),
    ],
)
def test_a_failing_mutation_shows_nothing_of_the_object(operation, failure):
    """Values of a Secret are in no message; the object is not replaced."""
    match = {"any": [{"kinds": ["Secret"]}]}
    engine = Engine([bound(mutations=[patched(f"[JSONPatch{{{operation}}}]")], match=match)])
    request = ask(
        {"kind": "Secret", "metadata": {"name": "it"}, "data": {"key": "aHVudGVy"}}, "Secret"
    )
    message = status(request, engine.mutate(request))["message"]
    assert failure in message
    assert "aHVudGVy" not in message


def test_the_documentation_of_a_policy_lists_its_rules():
    """`gatewright explain FILE` and the outputs of `check` show it."""
    rules = [
        {"expression": "object.spec.replicas\n  < 3", "message": "fewer"},
        {"expression": "true"},
    ]
    assert bound(validations=rules).policy.documentation == (
        "Rules in CEL, written in the policy object.\n\n- fewer: object.spec.replicas < 3\n- true"
    )
