"""Commands of one webhook do not undo each other: run once, they leave nothing critical."""

import itertools
import json
import shlex

import jsonpatch
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.gatewright.tools.doctor.clusters import (
    backend,
    configuration,
    findings,
    found,
    webhook,
    without,
)

RESOURCES = (
    ("", "pods"), ("", "nodes"), ("", "secrets"), ("", "events"), ("", "services"), ("*", "*"),
    ("apps", "replicasets"), ("apps", "*"), ("coordination.k8s.io", "leases"), ("*", "*/*"),
    ("authentication.k8s.io", "tokenreviews"), ("discovery.k8s.io", "endpointslices"),
)  # fmt: skip
NAME = "kubernetes.io/metadata.name"
SELECTORS = (
    None,
    {},
    {"matchLabels": {NAME: "guard"}},
    {"matchExpressions": [{"key": NAME, "operator": "NotIn", "values": ["shop"]}]},
    {
        "matchExpressions": [
            {"key": NAME, "operator": "In", "values": ["a", "guard", "kube-system"]}
        ]
    },
)
CONDITIONS = ([], [{"name": "a", "expression": "request.operation != 'DELETE'"}])


@st.composite
def webhooks(draw):
    """A webhook of the backend a, guard, or of one that does not exist."""
    rules = [
        {
            "apiGroups": [group],
            "apiVersions": ["*"],
            "operations": [draw(st.sampled_from(["CREATE", "UPDATE", "*"]))],
            "resources": [resource],
        }
        for group, resource in draw(st.lists(st.sampled_from(RESOURCES), max_size=4))
    ]
    service = draw(st.sampled_from(["a", "guard", "guard", "gone"]))
    return webhook(
        name=f"w{draw(st.integers(0, 99))}.example.com",
        rules=rules,
        namespaceSelector=draw(st.sampled_from(SELECTORS)),
        matchConditions=draw(st.sampled_from(CONDITIONS)),
        failurePolicy=draw(st.sampled_from(["Fail", "Fail", "Ignore"])),
        timeoutSeconds=draw(st.sampled_from([3, 10, 30])),
        sideEffects=draw(st.sampled_from(["None", "Some"])),
        clientConfig=webhook()["clientConfig"]
        | {"service": {"namespace": service, "name": service}},
    )


def configurations():
    """Up to three configurations with up to three webhooks each."""
    many = st.lists(st.lists(webhooks(), min_size=1, max_size=3), min_size=1, max_size=3)
    sorts = st.sampled_from(["Validating", "Mutating"])
    return st.tuples(many, sorts).map(
        lambda drawn: [
            configuration(*each, name=f"c{at}", sort=drawn[1]) for at, each in enumerate(drawn[0])
        ]
    )


def commands_of(hazards):
    """Return each command that kubectl patches with, once, as its name and its patch."""
    for command in dict.fromkeys(each.command for each in hazards if each.command):
        words = shlex.split(command)
        ends = [at for at, word in enumerate(words) if word == "&&"]
        for start, end in itertools.pairwise([-1, *ends, len(words)]):
            program, verb, *_, patch = one = words[start + 1 : end]
            if (program, verb) == ("kubectl", "patch"):
                yield one[3], json.loads(patch)


def run_all(objects, hazards):
    """Return objects after every printed command of kubectl patch."""
    # Copies through JSON, since drawn webhooks share their selectors.
    by_name = {each["metadata"]["name"]: json.loads(json.dumps(each)) for each in objects}
    for name, patch in commands_of(hazards):
        by_name[name] = jsonpatch.apply_patch(by_name[name], patch)
    return list(by_name.values())


@pytest.mark.long
@given(configurations())
@settings(max_examples=25, deadline=None)
def test_all_commands_run_once_leave_nothing_critical(given):
    """Whatever webhooks there are, and whatever finds them; running them again changes nothing."""
    cluster = [*backend(), *backend("a")]
    hazards = findings(*given, *cluster)
    after = run_all(given, hazards)
    assert [e for e in findings(*after, *cluster) if e.level == "critical"] == []
    assert run_all(after, hazards) == after
    merged = {}
    for hazard in hazards:
        if hazard.patch:
            assert merged.setdefault(hazard.subject.title, hazard.patch) == hazard.patch


EVERYTHING = {
    "apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"],
}  # fmt: skip


def test_a_webhook_for_everything_is_fixed_by_one_command():
    """The namespaces, the resources and the time-out are in one patch."""
    judge = webhook(rules=[EVERYTHING], namespaceSelector={}, timeoutSeconds=30)
    hazards = findings(configuration(judge), *backend())
    fixed = [each for each in hazards if each.patch]
    assert [each.check for each in fixed] == [
        "cluster-resources", "lease-timeout", "own-pods", "system-namespaces", "events",
    ]  # fmt: skip
    assert len({each.command for each in fixed}) == 1
    assert [operation["path"] for operation in fixed[0].patch] == [
        "/webhooks/0/namespaceSelector/matchExpressions",
        "/webhooks/0/matchConditions",
        "/webhooks/0/timeoutSeconds",
    ]


def test_webhooks_with_the_same_fault_are_one_finding():
    """It names the first webhooks, and its patch is for all."""
    judges = [
        webhook(name=f"{name}.example.com", rules=[EVERYTHING], namespaceSelector={})
        for name in "abcdef"
    ]
    hazards = findings(configuration(*judges), *backend())
    own = [each for each in hazards if each.check == "own-pods"]
    assert [each.message.partition(" judges")[0] for each in own] == [
        "each of a.example.com, b.example.com, c.example.com, d.example.com and 2 more"
    ]
    after = run_all([configuration(*judges)], hazards)
    assert "critical" not in {level for level, _ in found(*after, *backend())}


def test_what_is_right_only_under_a_condition_is_a_command_of_its_own():
    """Neither side effects nor a failure policy change with the exclusion of namespaces."""
    judge = webhook(rules=[EVERYTHING], namespaceSelector={}, sideEffects="Some")
    hazards = findings(configuration(judge), *without(backend(), "Service"))
    alone = [each.check for each in hazards if each.run]
    assert alone == ["no-endpoint", "side-effects"]
    paths = {operation["path"] for each in hazards for operation in each.patch}
    assert paths.isdisjoint({"/webhooks/0/failurePolicy", "/webhooks/0/sideEffects"})
