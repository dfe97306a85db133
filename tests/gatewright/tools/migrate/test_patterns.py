"""Kyverno's patterns: what each anchor and each operator allows, after conversion to CEL."""

import pytest

from tests.gatewright.tools.migrate.converted import cluster_policy, converted, reasons, verdict

POD = {"containers": [{"name": "app", "image": "nginx:1.29"}]}


def of_pod(spec):
    """Return the migration of a policy whose pattern is about the spec of a Pod."""
    rule = cluster_policy({"pattern": {"spec": spec}, "message": "no"},
                          annotations={"pod-policies.kyverno.io/autogen-controllers": "none"})  # fmt: skip
    return converted(rule)


def pod(**spec):
    """Return the verdict's arguments for a Pod with these fields."""
    return {"spec": POD | spec}


@pytest.mark.parametrize(
    ("pattern", "spec", "expected"),
    [
        # plain fields must be there
        ({"hostNetwork": False}, {}, "denied"),
        ({"hostNetwork": True}, {"hostNetwork": True}, "allowed"),
        ({"serviceAccountName": "?*"}, {}, "denied"),
        ({"serviceAccountName": "*"}, {"serviceAccountName": "robot"}, "allowed"),
        # =(): if it is there
        ({"=(hostNetwork)": False}, {}, "allowed"),
        ({"=(hostNetwork)": False}, {"hostNetwork": True}, "denied"),
        ({"=(securityContext)": {"=(runAsUser)": ">0"}}, {"securityContext": {"runAsUser": 0}}, "denied"),
        ({"=(securityContext)": {"=(runAsUser)": ">0"}}, {"securityContext": {"runAsUser": 7}}, "allowed"),
        # X(): must not be there
        ({"X(hostAliases)": "null"}, {}, "allowed"),
        ({"X(hostAliases)": "null"}, {"hostAliases": [{"ip": "10.0.0.1"}]}, "denied"),
        # (): a condition of the siblings
        ({"(hostNetwork)": True, "dnsPolicy": "ClusterFirstWithHostNet"}, {}, "allowed"),
        ({"(hostNetwork)": True, "dnsPolicy": "ClusterFirstWithHostNet"}, {"hostNetwork": True}, "denied"),
        # ^(): one item matches
        ({"^(volumes)": [{"name": "tmp"}]}, {"volumes": [{"name": "data"}]}, "denied"),
        ({"^(volumes)": [{"name": "tmp"}]}, {"volumes": [{"name": "data"}, {"name": "tmp"}]}, "allowed"),
        # each item matches
        ({"containers": [{"image": "nginx:* | redis:*"}]}, {}, "allowed"),
        ({"containers": [{"image": "!nginx:*"}]}, {}, "denied"),
        ({"containers": [{"image": "!*:latest & *:*"}]}, {}, "allowed"),
        # a list of which no item has the condition skips the rule
        ({"containers": [{"(name)": "db", "image": "postgres:*"}]}, {}, "allowed"),
        ({"containers": [{"(name)": "app", "image": "postgres:*"}]}, {}, "denied"),
        # numbers, quantities, ranges; what is missing counts as 0
        ({"terminationGracePeriodSeconds": "10-60"}, {"terminationGracePeriodSeconds": 30}, "allowed"),
        ({"terminationGracePeriodSeconds": "10-60"}, {"terminationGracePeriodSeconds": 90}, "denied"),
        ({"terminationGracePeriodSeconds": "10!-60"}, {"terminationGracePeriodSeconds": 90}, "allowed"),
        ({"priority": "<=5"}, {}, "allowed"),
        ({"priority": ">5"}, {}, "denied"),
    ],
)  # fmt: skip
def test_a_pattern_allows_and_denies_what_kyverno_does(pattern, spec, expected):
    """Each kind of anchor and each operator."""
    assert verdict(of_pod(pattern), **pod(**spec)) == expected


def test_quantities_are_compared_as_amounts():
    """1Gi is less than 2000Mi; text that is no quantity matches no amount."""
    pattern = {"containers": [{"resources": {"limits": {"memory": "<=1Gi"}}}]}
    for memory, expected in (("900Mi", "allowed"), ("2000Mi", "denied")):
        limited = {"name": "app", "image": "a:1", "resources": {"limits": {"memory": memory}}}
        assert verdict(of_pod(pattern), spec={"containers": [limited]}) == expected


def test_one_of_several_patterns_is_enough():
    """AnyPattern."""
    patterns = [{"spec": {"hostNetwork": True}}, {"metadata": {"labels": {"team": "?*"}}}]
    migration = converted(cluster_policy({"anyPattern": patterns}))
    assert verdict(migration, spec=POD) == "denied"
    assert verdict(migration, spec=POD, metadata={"labels": {"team": "web"}}) == "allowed"


def test_rules_about_pods_judge_pod_templates():
    """They do so like Kyverno's generated rules, unless an annotation disables these."""
    pattern = {"spec": {"=(hostNetwork)": False}}
    template = {"template": {"spec": {"hostNetwork": True}}}
    migration = converted(cluster_policy({"pattern": pattern}))
    assert verdict(migration, "Deployment", spec=template) == "denied"
    assert verdict(migration, "CronJob", spec={"jobTemplate": {"spec": template}}) == "denied"
    none = {"pod-policies.kyverno.io/autogen-controllers": "none"}
    of_pods = converted(cluster_policy({"pattern": pattern}, annotations=none))
    assert verdict(of_pods, "Deployment", spec=template) == "unmatched"


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        (
            {"metadata": {"labels": {"team-*": "?*"}}},
            "a key contains a wildcard or a variable: team-*",
        ),
        ({"spec": {"nodeName": "{{ node }}"}}, "the pattern '{{ node }}' contains a variable"),
        ({"spec": {"priority": "10!-60 & >5"}}, "the range '10!-60' beside & is not converted"),
        ({"spec": {"nodeName": "10s"}}, "the pattern '10s' can mean a duration or text"),
        ({"spec": {"+(nodeName)": "a"}}, "the anchor +(nodeName) is only for mutations"),
    ],
)
def test_a_pattern_that_is_not_known_to_be_equal_is_not_converted(pattern, reason):
    """It is listed with its reason."""
    assert reasons(cluster_policy({"pattern": pattern})) == [
        ("ClusterPolicy p, rule r", reason, "a rule of your own in CEL")
    ]
