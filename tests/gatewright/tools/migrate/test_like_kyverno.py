"""Rules whose verdicts are easily taken for others; each is that of `kyverno apply` 1.18.2."""

import pytest

from tests.gatewright.tools.migrate.converted import cluster_policy, converted, reasons, verdict

LABELLED = {"metadata": {"labels": {"tier": "1"}}}
OWN_RULE = "a rule of your own in CEL"


def of(path):
    """Return a variable of the object."""
    return f"{{{{ request.object.{path} }}}}"


def deny(*conditions, joined="all"):
    """Return a rule that denies what meets conditions: key, operator, value."""
    names = ("key", "operator", "value")
    return {
        "deny": {
            "conditions": {joined: [dict(zip(names, each, strict=True)) for each in conditions]}
        }
    }


@pytest.mark.parametrize(
    ("validate", "object", "expected"),
    [
        # one pattern skips and the other fails: the rule fails
        ({"anyPattern": [{"metadata": {"(name)": "db", "labels": {"app": "x"}}}, {"spec": {"hostNetwork": True}}]},
         {}, "denied"),
        # all patterns skip
        ({"anyPattern": [{"metadata": {"(name)": "db", "labels": {"app": "x"}}},
                         {"metadata": {"(name)": "mail", "labels": {"app": "x"}}}]}, {}, "allowed"),
        # fields with anchors come first, the last of them by name before the others: spec fails
        ({"pattern": {"metadata": {"(name)": "db"}, "spec": {"=(dnsPolicy)": "None"}}},
         {"spec": {"dnsPolicy": "Default"}}, "denied"),
        # beside a condition that holds, an anchor that skips is ignored: the name is judged
        ({"pattern": {"spec": {"(dnsPolicy)": "Default", "=(securityContext)": {"(runAsUser)": 5}},
                      "metadata": {"name": "db"}}},
         {"spec": {"dnsPolicy": "Default", "securityContext": {"runAsUser": 7}}}, "denied"),
        # a global anchor is evaluated among these fields: annotations are missing
        ({"pattern": {"metadata": {"<(name)": "db", "annotations": {"=(a)": "x"}}}}, {}, "denied"),
        ({"pattern": {"metadata": {"<(name)": "db", "annotations": {"a": "x"}}}}, {}, "allowed"),
        # wildcards match booleans as text
        ({"pattern": {"spec": {"hostNetwork": "!?*"}}}, {"spec": {"hostNetwork": True}}, "denied"),
        ({"pattern": {"spec": {"hostNetwork": "t*"}}}, {"spec": {"hostNetwork": True}}, "allowed"),
        # text that is a quantity is neither like another text nor different from one
        (deny((of("metadata.labels.tier || ''"), "Equals", "?*")), LABELLED, "allowed"),
        (deny((of("metadata.labels.tier || ''"), "NotEquals", "gold")), LABELLED, "allowed"),
        (deny((of("metadata.labels.tier || ''"), "NotEquals", "")), LABELLED, "denied"),
        # an empty text counts as missing
        (deny((of("metadata.labels.tier || 'none'"), "Equals", "none")), {"metadata": {"labels": {"tier": ""}}}, "denied"),
        # members are compared as text
        (deny((of("spec.hostNetwork || `false`"), "AnyIn", ["true"])), {"spec": {"hostNetwork": True}}, "denied"),
        (deny((of("spec.containers[].livenessProbe.httpGet.port || `[]`"), "AnyIn", [80])),
         {"spec": {"containers": [{"name": "a", "image": "a:1", "livenessProbe": {"httpGet": {"port": 80}}}]}}, "denied"),
        # the first condition that fails denies, whatever the next ones are
        (deny((of("metadata.labels.tier"), "Equals", "gold"), (of("metadata.name"), "Equals", "db")), {}, "denied"),
        (deny((of("metadata.name"), "Equals", "db"), (of("metadata.labels.tier"), "Equals", "gold")), {}, "allowed"),
        (deny((of("metadata.name"), "Equals", "db"), (of("metadata.labels.tier"), "Equals", "gold"), joined="any"), {}, "denied"),
    ],
)  # fmt: skip
def test_a_verdict_is_that_of_kyverno(validate, object, expected):
    """The object is the smallest Pod, `web`, with more fields."""
    rule = cluster_policy(validate | {"message": "denied"})
    assert verdict(converted(rule), **object) == expected


def test_a_kind_without_a_spec_has_no_items_in_it():
    """A list below a missing spec has its default."""
    rule = deny((of("spec.initContainers[].name || `[]`"), "AnyIn", ["a"]))
    migration = converted(cluster_policy(rule, kinds=("ReplicaSet", "ConfigMap")))
    assert verdict(migration, "ConfigMap") == "allowed"


def test_a_kind_with_a_version_has_no_generated_rules():
    """Kyverno generates rules for pod controllers from `Pod`, and none from `v1/Pod`."""
    pattern = {"pattern": {"spec": {"=(hostNetwork)": False}}}
    migration = converted(cluster_policy(pattern, kinds=("v1/Pod",)))
    assert verdict(migration, spec={"hostNetwork": True}) == "denied"
    template = {"template": {"spec": {"hostNetwork": True}}}
    assert verdict(migration, "Deployment", spec=template) == "unmatched"


@pytest.mark.parametrize(
    ("operations", "fields", "expected"),
    [
        (["CREATE", "UPDATE"], {}, None),
        (["CREATE", "UPDATE"], {"allowExistingViolations": False}, False),
        # Kyverno judges the old object as a creation, which the rule does not match
        (["UPDATE"], {}, False),
    ],
)
def test_updates_of_violating_objects_are_allowed_where_kyverno_allows_them(
    operations, fields, expected
):
    """By default, if the rule judges creations too."""
    match = {"any": [{"resources": {"kinds": ["ConfigMap"], "operations": operations}}]}
    pattern = {"pattern": {"metadata": {"labels": {"app": "?*"}}}}
    (policy,) = converted(cluster_policy(pattern | fields, match=match)).converted
    assert policy.spec.get("allowExistingViolations") is expected


def test_a_condition_on_the_old_object_has_its_default_on_creation():
    """A creation has no old object."""
    key = "{{ request.oldObject.metadata.labels.tier || '' }}"
    migration = converted(cluster_policy(deny((key, "Equals", "")), kinds=("ConfigMap",)))
    assert verdict(migration, "ConfigMap") == "denied"


@pytest.mark.parametrize(
    ("validate", "reason"),
    [
        (deny((of("spec.hostNetwork || `true`"), "Equals", True)),
         "the default True also replaces empty text or false"),
        (deny((of("metadata.labels.tier || `0`"), "Equals", "a")),
         "the default 0 also replaces empty text or false"),
        (deny((of("metadata.labels.tier || ''"), "GreaterThan", 3)),
         "the operator GreaterThan with 3: only plain numbers are converted"),
        (deny((of("metadata.labels.tier || ''"), "Equals", 3)), "the number 3 is compared with text"),
        (deny((of("metadata.labels || `{}`"), "Equals", "a")),
         "conditions on objects are not converted: variables.pod.metadata.?labels.orValue({})"),
        (deny((of("spec.securityContext.runAsUser || `0`"), "AnyIn", [1000650000])),
         "[1000650000] are not all numbers of at most six digits, beside "
         "variables.pod.spec.?securityContext.?runAsUser.orValue(0)"),
        (deny((of("metadata.name"), "AnyNotIn", "true")), "the value 'true' can mean text, a range or a list"),
        (deny((of("spec.containers[*].ports[*].name || `[]`"), "AnyIn", ["a"])),
         "request.object.spec.containers[*].ports[*].name is a list of lists; "
         "`[]` in place of `[*]` would join them"),
        (deny((of("spec.containers[].command || `[]`"), "AnyIn", ["a"])),
         "request.object.spec.containers[].command is a list of lists; `[]` at its end would join them"),
        (deny(("{{ request.operation }}", "Equals", ["CREATE"])),
         "the operator Equals on request.operation with ['CREATE'] is not converted"),
        (deny((of("metadata.labels.tier"), "AnyIn", ["*"])),
         "the operator AnyIn with ['*'] only tests that request.object.metadata.labels.tier exists"),
        ({"pattern": {"spec": {"hostNetwork": {}}}},
         "variables.pod.spec.hostNetwork may not be an object, and the pattern {} is one"),
        ({"pattern": {"spec": {"hostname": ["a"]}}},
         "variables.pod.spec.hostname is not a list, and the pattern ['a'] is one"),
        ({"pattern": {"spec": {"priority": "1*"}}}, "the pattern '1*' is about the digits of a number"),
        ({"pattern": {"=(metadata)": {"<(name)": "db"}}}, "the anchor =(metadata) contains a global anchor"),
    ],
)  # fmt: skip
def test_a_rule_with_another_verdict_is_not_converted(validate, reason):
    """It is listed with its reason."""
    assert reasons(cluster_policy(validate)) == [("ClusterPolicy p, rule r", reason, OWN_RULE)]


@pytest.mark.parametrize(
    "validate",
    [
        deny((of("data.app || ''"), "NotEquals", "x")),
        {"foreach": [{"list": "request.object.metadata.finalizers", "deny": {}}]},
    ],
)
def test_a_rule_about_deletions_is_not_converted_if_it_reads_the_new_object(validate):
    """Kyverno takes the default, or judges no item."""
    match = {"any": [{"resources": {"kinds": ["ConfigMap"], "operations": ["DELETE"]}}]}
    ((_, reason, _),) = reasons(cluster_policy(validate, match=match))
    assert reason.startswith("request.object.")
    assert reason.endswith(" is missing where an object is deleted, and Kyverno allows that")


def test_a_rule_is_not_converted_if_kyverno_errors_decide_it():
    """A missing field is an error, which denies in a rule and skips an element of foreach."""
    (missing,) = deny((of("metadata.labels.tier"), "Equals", "a"))["deny"]["conditions"]["all"]
    both = {"deny": {"conditions": {"any": [missing], "all": [missing]}}}
    element = missing | {"key": "{{ element.imagePullPolicy }}"}
    each = {
        "list": "request.object.spec.containers",
        "preconditions": {"all": [element]},
        "pattern": {"image": "a"},
    }
    assert reasons(cluster_policy(both), cluster_policy({"foreach": [each]})) == [
        (
            "ClusterPolicy p, rule r",
            "it has conditions in any and in all, and a field of them may be missing",
            OWN_RULE,
        ),
        (
            "ClusterPolicy p, rule r",
            "the preconditions of its foreach read a field that may be missing",
            OWN_RULE,
        ),
    ]


@pytest.mark.parametrize(
    ("match", "annotation", "reason", "nearest"),
    [
        ([{"kinds": ["*/v1/Pod"]}], "none",
         "Kyverno reads the kind */v1/Pod as a kind and its subresource", "nothing: omit it"),
        ([{"kinds": ["Namespace"], "namespaceSelector": {"matchLabels": {"a": "b"}}}], "none",
         "Kyverno selects no Namespace by namespaceSelector", "nothing: omit it"),
        ([{"kinds": ["Pod"]}, {"kinds": ["Service"]}], "Deployment",
         "it is about pods and other kinds, and Kyverno generates rules from it", "one rule for each kind"),
        ([{"kinds": ["Pod"]}], "Deployment, CronJob",
         "Kyverno reads its annotation pod-policies.kyverno.io/autogen-controllers in different ways: "
         "'Deployment, CronJob'", OWN_RULE),
    ],
)  # fmt: skip
def test_a_match_that_kyverno_reads_otherwise_is_not_converted(match, annotation, reason, nearest):
    """It is listed with its reason."""
    rule = cluster_policy(
        {"pattern": {"metadata": {"name": "a"}}},
        annotations={"pod-policies.kyverno.io/autogen-controllers": annotation},
        match={"any": [{"resources": each} for each in match]},
    )
    assert reasons(rule) == [("ClusterPolicy p, rule r", reason, nearest)]
