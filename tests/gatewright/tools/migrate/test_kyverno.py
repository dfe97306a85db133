"""Kyverno's rules: match, conditions, foreach, CEL."""

import pytest

from tests.gatewright.tools.migrate.converted import cluster_policy, converted, reasons, verdict

PATTERN = {"pattern": {"metadata": {"labels": {"team": "?*"}}}}


def matching(match, exclude=None):
    """Return the migration of a rule that wants a label, with this match."""
    policy = cluster_policy(PATTERN)
    policy["spec"]["rules"][0] |= {"match": match, "exclude": exclude or {}}
    return converted(policy)


@pytest.mark.parametrize(
    ("match", "expected"),
    [
        ({"resources": {"kinds": ["v1/ConfigMap"]}}, "denied"),
        ({"any": [{"resources": {"kinds": ["Secret"]}}]}, "unmatched"),
        ({"any": [{"resources": {"kinds": ["ConfigMap"], "namespaces": ["shop*"]}}]}, "denied"),
        ({"any": [{"resources": {"kinds": ["ConfigMap"], "namespaces": ["bank"]}}]}, "unmatched"),
        ({"any": [{"resources": {"kinds": ["ConfigMap"], "names": ["we?"]}}]}, "denied"),
        ({"all": [{"resources": {"kinds": ["ConfigMap"]}}, {"resources": {"names": ["db"]}}]}, "unmatched"),
        ({"any": [{"resources": {"kinds": ["ConfigMap"], "annotations": {"a*": "?"}}}]}, "unmatched"),
        ({"any": [{"resources": {"kinds": ["ConfigMap"]}, "subjects": [{"kind": "User", "name": "ci"}]}]}, "unmatched"),
    ],
)  # fmt: skip
def test_a_rule_applies_where_it_did(match, expected):
    """Filters of match."""
    assert verdict(matching(match), "ConfigMap") == expected


@pytest.mark.parametrize(
    ("exclude", "expected"),
    [
        ({"any": [{"resources": {"namespaces": ["sh*", "bank"]}}]}, "unmatched"),
        ({"any": [{"resources": {"namespaces": ["bank"]}}]}, "denied"),
        ({"any": [{"resources": {"names": ["web"], "namespaces": ["bank"]}}]}, "denied"),
        ({"resources": {"selector": {"matchLabels": {"app": "x"}}}}, "denied"),
        ({"any": [{"subjects": [{"kind": "Group", "name": "system:*"}]}]}, "unmatched"),
        ({"resources": {"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}}, "unmatched"),
    ],
)  # fmt: skip
def test_excluded_requests_are_not_judged(exclude, expected):
    """A request is excluded if all fields of one filter match."""
    match = {"any": [{"resources": {"kinds": ["ConfigMap"]}}]}
    assert verdict(matching(match, exclude), "ConfigMap", labels={"a": "b"}) == expected


def test_a_pattern_never_judges_deletions():
    """As in Kyverno, the operations of its match do not matter."""
    (policy,) = matching(
        {"any": [{"resources": {"kinds": ["ConfigMap"], "operations": ["UPDATE", "DELETE"]}}]}
    ).converted
    assert policy.spec["match"] == {"any": [{"kinds": ["ConfigMap"], "operations": ["UPDATE"]}]}
    only = cluster_policy(PATTERN)
    only["spec"]["rules"][0]["match"] = {
        "any": [{"resources": {"kinds": ["Pod"], "operations": ["DELETE"]}}]
    }
    assert reasons(only) == [
        (
            "ClusterPolicy p, rule r",
            "Kyverno judges no deletion by a pattern, so it never applies",
            "nothing: omit it",
        )
    ]


def test_conditions_of_a_deletion_read_the_object_as_it_was():
    """A deletion has no new object."""
    rule = cluster_policy({"deny": {}, "message": "kept"})
    rule["spec"]["rules"][0] |= {
        "match": {"any": [{"resources": {"kinds": ["ConfigMap"], "operations": ["DELETE"]}}]},
        "exclude": {"any": [{"resources": {"selector": {"matchLabels": {"app": "x"}}}}]},
    }
    (policy,) = converted(rule).converted
    labels = "(object == null ? oldObject : object).metadata.?labels.orValue({})"
    expression = f"!('app' in {labels} && {labels}['app'] == 'x')"
    assert policy.spec["matchConditions"] == [{"name": "condition-1", "expression": expression}]


def test_conditions_about_the_operation_are_folded():
    """A condition that always holds for creations and updates is omitted."""
    on_change = {"all": [{"key": "{{ request.operation || 'BACKGROUND' }}",
                          "operator": "NotEquals", "value": "DELETE"}]}  # fmt: skip
    (policy,) = converted(cluster_policy(PATTERN, preconditions=on_change)).converted
    assert "matchConditions" not in policy.spec


@pytest.mark.parametrize(
    ("key", "operator", "value", "expected"),
    [
        ("{{ request.object.metadata.labels.tier || '' }}", "Equals", "gold*", "denied"),
        ("{{ request.object.metadata.labels.tier || '' }}", "NotEquals", "gold-1", "allowed"),
        ("{{ request.object.metadata.name }}", "AnyIn", ["web", "db"], "denied"),
        ("{{ request.object.spec.containers[].image || `[]` }}", "AnyNotIn", ["nginx:*"], "allowed"),
        ("{{ request.object.spec.containers[].image || `[]` }}", "AnyIn", ["nginx:*"], "denied"),
        ("{{ request.object.spec.[containers, initContainers][].name || `[]` }}", "AllIn", ["app"], "denied"),
        ("{{ request.object.spec.activeDeadlineSeconds || `0` }}", "GreaterThan", 5, "denied"),
    ],
)  # fmt: skip
def test_a_rule_denies_what_its_conditions_name(key, operator, value, expected):
    """Operators of deny."""
    rule = {"deny": {"conditions": {"any": [{"key": key, "operator": operator, "value": value}]}}}
    spec = {"activeDeadlineSeconds": 9, "containers": [{"name": "app", "image": "nginx:1"}]}
    metadata = {"labels": {"tier": "gold-1"}}
    assert verdict(converted(cluster_policy(rule)), spec=spec, metadata=metadata) == expected


@pytest.mark.parametrize(
    ("default", "value", "reason"),
    [
        ("", ["a"], "a list in a condition has no default, and Kyverno fails where it is missing"),
        (" || ''", ["a"], "AnyNotIn takes the default '' of a list for an item"),
        (" || `[]`", "1-5", "the value '1-5' can mean text, a range or a list"),
    ],
)
def test_a_condition_on_a_list_that_cannot_be_shown_equal_is_listed(default, value, reason):
    """Kyverno's verdict depends on more than the items of the list."""
    key = f"{{{{ request.object.spec.containers[].image{default} }}}}"
    rule = {"deny": {"conditions": {"any": [{"key": key, "operator": "AnyNotIn", "value": value}]}}}
    assert reasons(cluster_policy(rule)) == [
        ("ClusterPolicy p, rule r", reason, "a rule of your own in CEL")
    ]


def test_foreach_judges_each_item_with_its_own_preconditions():
    """The list, the preconditions and the pattern of an element."""
    each = {
        "list": "request.object.spec.containers",
        "preconditions": {"any": [{"key": "{{ element.name }}", "operator": "Equals", "value": "app"}]},
        "pattern": {"image": "registry.example.com/*"},
    }  # fmt: skip
    migration = converted(cluster_policy({"foreach": [each]}))
    for image, expected in (("registry.example.com/a:1", "allowed"), ("nginx:1", "denied")):
        containers = [{"name": "app", "image": image}, {"name": "proxy", "image": "envoy:1"}]
        assert verdict(migration, spec={"containers": containers}) == expected


def test_rules_in_cel_judge_pod_templates_too():
    """Fields of the pod are those of the template."""
    cel = {"expressions": [{"expression": "!has(object.spec.hostNetwork)", "message": "no"}]}
    migration = converted(cluster_policy({"cel": cel}))
    template = {"template": {"spec": {"hostNetwork": True}}}
    assert verdict(migration, "Deployment", spec=template) == "denied"
    assert verdict(migration, "Pod") == "allowed"


def test_text_in_cel_is_not_taken_for_a_field():
    """A path in a string stays as it is, also behind an escaped quote."""
    written = r"""object.spec.hostname != 'it\'s object.spec' || "object.metadata" == ''"""
    migration = converted(cluster_policy({"cel": {"expressions": [{"expression": written}]}}))
    assert [each["expression"] for each in migration.converted[0].spec["validations"]] == [
        r"""variables.pod.spec.hostname != 'it\'s object.spec' || "object.metadata" == ''"""
    ]


def test_invalid_cel_is_listed():
    """The error has its place in the expression."""
    cel = {"expressions": [{"expression": "object.spec.hostname == 'web"}]}
    assert [reason for _, reason, _ in reasons(cluster_policy({"cel": cel}))] == [
        """its CEL is invalid: 1:25: syntax error: unexpected character "'\""""
    ]


def test_a_validating_policy_keeps_its_expressions():
    """Match constraints become kinds."""
    policy = {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "ValidatingPolicy",
        "metadata": {"name": "replicas"},
        "spec": {
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": ["apps"],
                        "apiVersions": ["v1"],
                        "resources": ["deployments"],
                        "operations": ["CREATE"],
                    }
                ]
            },
            "validations": [{"expression": "object.spec.replicas < 5"}],
        },
    }
    assert verdict(converted(policy), "Deployment", spec={"replicas": 9}) == "denied"
    assert verdict(converted(policy), "Deployment", spec={"replicas": 2}) == "allowed"


def test_every_operation_on_a_session_is_connect():
    """A ValidatingPolicy whose operations are `*` judges `kubectl exec` after its conversion too."""
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["*"],
        "resources": ["pods/exec"],
    }
    policy = {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "ValidatingPolicy",
        "metadata": {"name": "sessions"},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": "!object.tty"}],
        },
    }
    (found,) = converted(policy).converted
    assert found.spec["match"]["any"] == [
        {
            "kinds": ["Pod"],
            "operations": ["CONNECT"],
            "subresources": ["exec"],
        }
    ]


def mutating(resources, mutation, operations=("CREATE",)):
    """Return a MutatingPolicy about resources of apps."""
    rule = {"apiGroups": ["apps"], "apiVersions": ["v1"], "resources": resources,
            "operations": [*operations]}  # fmt: skip
    return {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "MutatingPolicy",
        "metadata": {"name": "m"},
        "spec": {"matchConstraints": {"resourceRules": [rule]}, "mutations": [mutation]},
    }


def test_a_mutating_policy_keeps_its_mutations():
    """The exception is a JSONPatch for kinds whose fields differ: the API server drops unknown fields."""
    labels = "Object{metadata: Object.metadata{labels: {'team': 'web'}}}"
    merge = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": labels}}
    assert (
        verdict(converted(mutating(["deployments", "statefulsets"], merge)), "Deployment")
        == "mutated"
    )
    (every,) = converted(mutating(["deployments"], merge, ["*"])).converted
    # a deletion has no object to change
    assert every.spec["match"]["any"][0]["operations"] == ["CREATE", "UPDATE"]
    patch = {
        "patchType": "JSONPatch",
        "jsonPatch": {"expression": "[JSONPatch{op: 'add', path: '/spec/paused', value: true}]"},
    }
    assert verdict(converted(mutating(["deployments"], patch)), "Deployment") == "mutated"
    assert reasons(mutating(["deployments", "statefulsets"], patch)) == [
        (
            "MutatingPolicy m",
            "its JSONPatch is for kinds with different fields",
            "one policy for each kind",
        )
    ]


def test_rules_without_an_equal_are_listed_with_the_nearest_policy():
    """One row for each rule."""
    generate = cluster_policy(PATTERN, name="makes")
    generate["spec"]["rules"][0]["generate"] = {"kind": "NetworkPolicy"}
    asks = cluster_policy(PATTERN, name="asks", context=[{"name": "c"}])
    every_kind = cluster_policy(PATTERN, name="all", kinds=["*"])
    custom = cluster_policy(PATTERN, name="custom", kinds=["Gadget"])
    cleanup = {"apiVersion": "kyverno.io/v2", "kind": "CleanupPolicy", "metadata": {"name": "c"}}
    assert reasons(generate, asks, every_kind, custom, cleanup) == [
        ("ClusterPolicy makes, rule r",
         "it generates objects; an admission policy only allows, denies or mutates",
         "the original tool, for this policy"),
        ("ClusterPolicy asks, rule r", "it looks data up (context), which no converted rule does",
         "a rule of your own in CEL"),
        ("ClusterPolicy all, rule r", "policies of Gatewright name their kinds; it matches every kind: *",
         "a rule in CEL with the kinds that you use"),
        ("ClusterPolicy custom, rule r",
         "its kind is unknown, since no CustomResourceDefinition of it is among the FILEs: Gadget",
         "add its CustomResourceDefinition to the FILEs"),
        ("CleanupPolicy c", "policies of this kind are not converted: CleanupPolicy",
         "the original tool, for this policy"),
    ]  # fmt: skip


def test_documents_that_cannot_be_read_are_named_and_the_rest_is_converted():
    """A broken policy, an unknown version, a document of another tool."""
    broken = {"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": "b"}}
    future = {"apiVersion": "kyverno.io/v9", "kind": "ClusterPolicy", "metadata": {"name": "f"}}
    text = broken | {"metadata": {"name": "t"}, "spec": {"rules": "none"}}
    listed = broken | {"metadata": ["l"], "spec": {"rules": [{"name": "r"}]}}
    config = {"apiVersion": "config.gatekeeper.sh/v1alpha1", "kind": "Config",
              "metadata": {"name": "config"}, "spec": {"match": [True]}}  # fmt: skip
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n", "labels": 1}}
    other = {"apiVersion": "policies.kubewarden.io/v1", "kind": "AdmissionPolicy",
             "metadata": {"name": "o"}}  # fmt: skip
    migration = converted(
        broken, text, listed, future, other, cluster_policy(PATTERN), config, namespace
    )
    assert [(each.origin.title, each.reason) for each in migration.skipped] == [
        ("Config config", "it cannot be read: a field has a value of a wrong type"),
        ("ClusterPolicy b", "it cannot be read: the field spec is missing"),
        ("ClusterPolicy t", "it cannot be read: a field has a value of a wrong type"),
        ("ClusterPolicy f", "unknown version v9 of kyverno.io; known: v1, v2beta1, v2"),
        ("AdmissionPolicy o", "not a policy of Kyverno, Gatekeeper or Pod Security"),
    ]
    assert [each.name for each in migration.converted] == ["p"]


def test_the_other_rules_of_a_policy_with_a_broken_rule_are_converted():
    """A text is not taken for a list of letters, and a rule without match is not one for all."""
    policy = cluster_policy(PATTERN, rule="good")
    (good,) = policy["spec"]["rules"]
    excluded = {"any": [{"resources": {"namespaces": "bank"}}]}
    policy["spec"]["rules"] += [
        good | {"name": "kinds", "match": {"any": [{"resources": {"kinds": "Pod"}}]}},
        good | {"name": "namespaces", "exclude": excluded},
        good | {"name": "everything", "match": {}},
    ]
    migration = converted(policy)
    assert [each.origin.title for each in migration.converted] == ["ClusterPolicy p, rule good"]
    wrong_type = "it cannot be read: a field has a value of a wrong type"
    assert [(each.origin.rule, each.reason) for each in migration.skipped] == [
        ("kinds", wrong_type),
        ("namespaces", wrong_type),
    ]
    assert reasons(policy) == [
        (
            "ClusterPolicy p, rule everything",
            "it has no match, so it names no kinds",
            "add a `match` with its kinds to the original, and convert it again",
        )
    ]


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        (
            {"mutate": {"patchStrategicMerge": {"metadata": {"labels": {"a": "b"}}}}},
            "a rule has exactly one of validate, mutate, generate, verifyImages; it has validate "
            "and mutate",
        ),
        (
            {"validate": PATTERN | {"deny": {"conditions": []}}},
            "a rule has exactly one check; it has pattern and deny",
        ),
        ({"validate": {"message": "m"}}, "a rule has exactly one check; it has none"),
        (
            {
                "match": {
                    "any": [{"resources": {"kinds": ["Pod"]}}],
                    "resources": {"kinds": ["Pod"]},
                }
            },
            "its match has any and resources",
        ),
        ({"newer": 1}, "it has a field that no converter knows: spec.rules[0].newer"),
        (
            {"validate": PATTERN | {"assert": {}}},
            "it has a field that no converter knows: spec.rules[0].validate.assert",
        ),
    ],
)
def test_a_rule_that_contradicts_itself_or_is_unknown_is_not_converted(rule, reason):
    """A conversion would drop one part of it."""
    policy = cluster_policy(PATTERN)
    policy["spec"]["rules"][0] |= rule
    migration = converted(policy)
    assert migration.converted == []
    assert [each.reason for each in migration.unconverted] == [reason]


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"admission": False}, "it is not evaluated at admission"),
        ({"newer": True}, "it has a field that no converter knows: spec.newer"),
    ],
)
def test_a_policy_that_is_otherwise_in_force_is_not_converted(spec, reason):
    """Not at admission, or as an unknown field says."""
    policy = cluster_policy(PATTERN)
    policy["spec"] |= spec
    migration = converted(policy)
    assert migration.converted == []
    assert [each.reason for each in migration.unconverted] == [reason]
