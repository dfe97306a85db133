"""Time-outs: of webhooks that judge Leases, of others, and of those that are called in turn."""

import itertools
import json
import shlex

import jsonpatch
import pytest

from tests.gatewright.tools.doctor.clusters import backend, configuration, findings, found, webhook

LEASES = webhook()["rules"][0] | {
    "apiGroups": ["coordination.k8s.io"],
    "resources": ["leases"],
    "operations": ["*"],
}
PODS = webhook()["rules"][0]


def mutating(name, *timeouts, rules=(PODS,)):
    """Return a configuration with a webhook for each time-out."""
    webhooks = [
        webhook(
            name=f"{name}{number}.example.com",
            timeoutSeconds=seconds,
            reinvocationPolicy="IfNeeded",
            rules=list(rules),
            failurePolicy="Ignore",
            namespaceSelector={},
        )
        for number, seconds in enumerate(timeouts)
    ]
    return configuration(*webhooks, name=name, sort="Mutating")


def patched(configurations, command):
    """Return configurations after a command of kubectl, or several with && between them."""
    by_name = {each["metadata"]["name"]: each for each in configurations}
    for one in command.split(" && "):
        program, verb, resource, name, sort, _, patch = shlex.split(one)
        assert (program, verb, sort) == ("kubectl", "patch", "--type=json")
        assert resource == "mutatingwebhookconfiguration"
        by_name[name] = jsonpatch.apply_patch(by_name[name], json.loads(patch))
    return list(by_name.values())


def timeouts(configurations):
    """Return the time-outs of all webhooks."""
    return [each["timeoutSeconds"] for c in configurations for each in c["webhooks"]]


@pytest.mark.long
@pytest.mark.parametrize(
    ("given", "lowered"),
    [
        ([mutating("a", 15), mutating("b", 15), mutating("c", 15)], [10, 10, 10]),
        ([mutating("a", 15, 15), mutating("b", 4)], [13, 13, 4]),
        ([mutating("a", 30, 30)], [15, 15]),
        ([mutating("a", 30), mutating("b", 10), mutating("c", 10)], [10, 10, 10]),
        ([mutating("a", 30, 10, rules=[PODS, LEASES]), mutating("b", 30)], [3, 3, 15]),
    ],
)
def test_time_outs_are_lowered_by_the_printed_commands_in_any_order(given, lowered):
    """The slowest first; after all of them, no finding is left, and none is lower than it must be."""
    commands = [each.command for each in findings(*given, *backend())]
    assert all(commands)
    for order in itertools.permutations(commands):
        after = given
        for command in order:
            after = patched(after, command)
        assert timeouts(after) == lowered
        assert found(*after, *backend()) == []


def test_alternatives_of_one_resource_are_one_finding():
    """The command lowers the webhooks of all alternatives."""
    given = [mutating("a", 14, 14), mutating("b", 12, 11)]
    for each, side in zip(given[1]["webhooks"], ("left", "right"), strict=True):
        each["objectSelector"] = {"matchLabels": {"side": side}}
    (finding,) = findings(*given, *backend())
    assert "may take 40 s together (a0.example.com, a1.example.com, b0.example.com)" in (
        finding.message
    )
    after = patched(given, finding.command)
    assert timeouts(after) == [10, 10, 10, 10]
    assert found(*after, *backend()) == []


def test_webhooks_of_which_no_object_meets_all_do_not_add_up():
    """Each two of these select a common object, but no object is selected by all three."""
    given = [mutating("a", 12), mutating("b", 12), mutating("c", 12)]
    for each, sides in zip(given, (["l", "m"], ["m", "r"], ["l", "r"]), strict=True):
        expression = {"key": "side", "operator": "In", "values": sides}
        each["webhooks"][0]["objectSelector"] = {"matchExpressions": [expression]}
    assert found(*given, *backend()) == []


def test_a_request_may_take_33_seconds():
    """The API server ends it after 34 s."""
    assert found(mutating("a", 15, 15), mutating("b", 3), *backend()) == []


def test_one_command_fixes_timeouts_that_add_up():
    """One command, for all configurations that are to be changed."""
    given = [mutating("a", 20), mutating("b", 12), mutating("c", 2)]
    (finding,) = [e for e in findings(*given, *backend()) if e.check == "timeouts-add-up"]
    assert finding.command == (
        "kubectl patch mutatingwebhookconfiguration a --type=json -p "
        """'[{"op": "add", "path": "/webhooks/0/timeoutSeconds", "value": 15}]'"""
    )
    assert timeouts(patched(given, finding.command)) == [15, 12, 2]
    many = [mutating(f"w{number}", 1) for number in range(34)]
    (finding,) = findings(*many, *backend())
    assert (finding.check, finding.command) == ("timeouts-add-up", "")
