"""Settings of a webhook that slow down requests, miss objects, or break the cluster."""

import pytest

from tests.gatewright.tools.doctor.clusters import backend, configuration, findings, found, webhook

RULE = webhook()["rules"][0]
LEASES = RULE | {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "operations": ["*"]}
EVERYTHING = RULE | {"apiGroups": ["*"], "resources": ["*/*"], "operations": ["*"]}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"timeoutSeconds": 15}, []),
        ({"timeoutSeconds": 16}, [("warning", "long-timeout")]),
        ({"sideEffects": "Unknown"}, [("warning", "side-effects")]),
        (
            {"rules": [EVERYTHING], "timeoutSeconds": 3},
            [("critical", "cluster-resources"), ("warning", "all-resources")],
        ),
        (
            {"rules": [RULE | {"resources": ["pods"], "operations": ["CREATE", "DELETE"]}]},
            [("note", "subresources")],
        ),
        (
            {"rules": [RULE | {"apiGroups": ["apps"], "resources": ["deployments"]}]},
            [("note", "subresources")],
        ),
        (
            {
                "rules": [
                    RULE
                    | {
                        "apiGroups": ["apps"],
                        "resources": ["deployments"],
                        "operations": ["DELETE"],
                    }
                ]
            },
            [],
        ),
        (
            {
                "matchPolicy": "Exact",
                "rules": [
                    RULE | {"apiGroups": ["autoscaling"], "resources": ["horizontalpodautoscalers"]}
                ],
            },
            [("warning", "match-policy")],
        ),
        (
            {
                "failurePolicy": "Ignore",
                "rules": [LEASES],
                "namespaceSelector": None,
                "timeoutSeconds": 4,
            },
            [("critical", "lease-timeout")],
        ),
        (
            {
                "failurePolicy": "Ignore",
                "rules": [LEASES],
                "namespaceSelector": None,
                "timeoutSeconds": 3,
            },
            [],
        ),
    ],
)
def test_settings_of_one_webhook(changes, expected):
    """Each setting is tested alone."""
    assert found(configuration(webhook(**changes)), *backend()) == expected


def test_the_refused_operations_are_named():
    """A webhook that protects from deletion stops only deletions."""
    deleting = EVERYTHING | {"operations": ["DELETE"]}
    (finding,) = findings(configuration(webhook(rules=[deleting, deleting])), *backend())
    assert finding.message.endswith("the API server refuses DELETE on all that it selects")


def test_the_patch_sets_the_field():
    """The patch of the printed kubectl command is applied."""
    (finding,) = findings(configuration(webhook(timeoutSeconds=30)), *backend())
    assert finding.command == (
        "kubectl patch validatingwebhookconfiguration guard --type=json -p "
        """'[{"op": "add", "path": "/webhooks/0/timeoutSeconds", "value": 15}]'"""
    )


def test_the_ways_around_a_rule_are_named():
    """These are subresources that change the same fields."""
    rule = RULE | {"resources": ["pods"], "operations": ["CREATE", "DELETE"]}
    (finding,) = findings(configuration(webhook(rules=[rule])), *backend())
    assert finding.message == (
        "pods.guard.example.com is not called for UPDATE pods/ephemeralcontainers (`kubectl debug` "
        "adds containers), UPDATE pods/resize (the resources of running containers are changed), "
        "CREATE pods/eviction (an eviction deletes the pod)"
    )


def test_time_outs_of_mutating_webhooks_add_up():
    """They are called in sequence, in the order of the configurations' names."""
    slow = [
        configuration(
            webhook(name=f"{name}.example.com", timeoutSeconds=15, reinvocationPolicy="IfNeeded"),
            name=name,
            sort="Mutating",
        )
        for name in ("c", "a", "b")
    ]
    (finding,) = findings(*slow, *backend())
    assert (finding.level, finding.check) == ("warning", "timeouts-add-up")
    assert "may take 45 s together (a.example.com, b.example.com, c.example.com)" in finding.message
    assert findings(*slow[:2], *backend()) == []


def test_a_mutating_webhook_does_not_see_what_later_ones_set():
    """ReinvocationPolicy Never."""
    service = {"service": {"namespace": "other", "name": "other"}}
    elsewhere = webhook()["clientConfig"] | service
    first = configuration(webhook(name="a.example.com"), name="a", sort="Mutating")
    second, own = (
        configuration(webhook(name="b.example.com", **config), name="b", sort="Mutating")
        for config in ({"clientConfig": elsewhere}, {})
    )
    cluster = [*backend(), *backend("other")]
    (finding,) = (each for each in findings(first, second, *cluster) if each.check == "order")
    assert (finding.level, finding.check) == ("note", "order")
    assert "a.example.com does not see what later ones set" in finding.message
    later = {"matchLabels": {"side": "b"}}, {"matchLabels": {"side": "c"}}
    second["webhooks"] = [second["webhooks"][0] | {"objectSelector": each} for each in later]
    checks = found(first, second, *cluster)
    assert checks.count(("note", "order")) == 1  # not once for each alternative
    assert found(first, own, *cluster) == []  # a program knows the order of its own webhooks


SELECTED = {"matchLabels": {"inject": "yes"}}


@pytest.mark.parametrize(
    ("one", "other", "are_called"),
    [
        ({}, {}, True),
        ({"objectSelector": SELECTED}, {"objectSelector": SELECTED}, True),
        ({"objectSelector": SELECTED}, {"namespaceSelector": SELECTED}, True),
        (
            {"objectSelector": SELECTED},
            {"objectSelector": {"matchLabels": {"inject": "no"}}},
            False,
        ),
        (
            {"objectSelector": SELECTED},
            {
                "objectSelector": {
                    "matchExpressions": [{"key": "inject", "operator": "DoesNotExist"}]
                }
            },
            False,
        ),
        (
            {"objectSelector": SELECTED},
            {
                "objectSelector": {
                    "matchExpressions": [{"key": "inject", "operator": "NotIn", "values": ["no"]}]
                }
            },
            True,
        ),
        ({}, {"rules": [EVERYTHING]}, True),
        ({}, {"rules": [RULE | {"operations": ["DELETE"]}]}, False),
    ],
)
def test_only_webhooks_of_the_same_request_are_called_in_sequence(one, other, are_called):
    """Istio and the AWS load balancer controller have webhooks of which one excludes the other."""
    common = {"failurePolicy": "Ignore", "namespaceSelector": None, "timeoutSeconds": 12}
    common["reinvocationPolicy"] = "IfNeeded"
    judges = [
        webhook(name=f"{number}.example.com", **common | changes)
        for number, changes in enumerate((one, one, other))
    ]
    checks = found(configuration(*judges, sort="Mutating"), *backend())
    assert (("warning", "timeouts-add-up") in checks) is are_called
