"""Kyverno rules that become built-in policies, with the same verdicts."""

import json
import random
from itertools import islice

import pytest

from gatewright.tools.migrate.builtin import table
from gatewright.tools.migrate.patterns import patterns_to_cel
from tests.gatewright.tools.migrate.converted import cluster_policy, converted, judging

# Values of the table's variables in this test.
GIVEN = {
    "$words": "RuntimeDefault | Localhost",
    "$globs": {"team": "sh?p*", "owner": "?*"},
    "$range": "5000-6000",
    "$types": ["name", "configMap", "emptyDir", ""],
}
LISTS = {"deny": ["CHOWN", "KILL"], "foreach": ["CHOWN", "KILL", ""]}
# Values that fields take in generated objects; None leaves the field out.
FIELDS = {
    "privileged": [None, True, False],
    "procMount": [None, "Default", "Unmasked"],
    "seLinuxOptions": [None, {"type": "RuntimeDefault"}, {"type": "x"}, {"user": "u"}, {"role": "r"}],
    "seccompProfile": [None, {"type": "RuntimeDefault"}, {"type": "Unconfined"}],
    "sysctls": [None, [{"name": "Localhost"}], [{"name": "kernel.msgmax"}]],
}  # fmt: skip
POD = {"hostPID": [None, True, False], "hostIPC": [None, True], "hostNetwork": [None, True]}
SORTS = ("containers", "initContainers", "ephemeralContainers")
PORTS = [None, [{"containerPort": 1}], [{"containerPort": 1, "hostPort": 5500}]]
VOLUMES = [None, [{"name": "a", "hostPath": {"path": "/"}}], [{"name": "a", "emptyDir": {}}]]
LABELS = [None, {"team": "shop", "owner": "me"}, {"team": "shop", "owner": ""}, {"team": "shoop"}]
SERVICE = {"type": [None, "NodePort", "LoadBalancer"], "externalIPs": [None, ["203.0.113.1"]]}
CEL = [row for row in table() if "pattern" in row["tests"]]
ROWS = pytest.mark.parametrize("row", CEL, ids=lambda row: f"{row['policy']} {row['tests']}"[:80])


def chosen(choice, **fields):
    """Return fields with one of their possible values each."""
    picked = {name: choice.choice(values) for name, values in fields.items()}
    return {name: value for name, value in picked.items() if value is not None}


def container(choice, name):
    """Return a container, with or without the fields that the policies judge."""
    fields = {key: each for key, each in FIELDS.items() if key != "sysctls"}
    context = {"securityContext": chosen(choice, **fields)} if choice.random() < 0.7 else {}
    return {"name": name, "image": "a:1"} | context | chosen(choice, ports=PORTS)


def pods(seed=7):
    """Yield objects with and without the fields that the policies judge."""
    choice = random.Random(seed)
    while True:
        fields = {key: FIELDS[key] for key in ("seLinuxOptions", "seccompProfile", "sysctls")}
        spec = chosen(choice, **POD, volumes=VOLUMES)
        spec |= {
            "securityContext": chosen(choice, **fields),
            "containers": [container(choice, "a")],
        }
        for sort in SORTS[1:]:
            if choice.random() < 0.4:
                spec[sort] = [container(choice, sort.lower())]
        if choice.random() < 0.1:
            spec = {"os": {"name": "windows"}, "containers": spec["containers"][:1]}
            spec["containers"][0].pop("securityContext", None)
        yield spec, chosen(choice, labels=LABELS, annotations=LABELS)


def filled(tests, variables):
    """Return the tests of a rule, with values for the variables of the table."""
    if isinstance(tests, dict):
        return {key: filled(each, variables) for key, each in tests.items()}
    if isinstance(tests, list):
        return [filled(each, variables) for each in tests]
    return variables.get(tests, tests) if isinstance(tests, str) else tests


@ROWS
@pytest.mark.parametrize("number", [60, pytest.param(150, marks=pytest.mark.long)])
def test_a_built_in_policy_decides_as_the_rule_in_cel(row, number):
    """Both are compared on random objects, some denied and some allowed by the rule."""
    tests = filled(row["tests"], GIVEN)
    is_service = row["policy"] in ("service-types", "external-ips")
    kind = "Service" if is_service else "Pod"
    migration = converted(cluster_policy(tests, kinds=[kind]))
    assert [each.spec["policy"] for each in migration.converted] == [row["policy"]]
    expression = patterns_to_cel([tests["pattern"]], "object")
    rule = {
        "apiVersion": "gatewright.io/v1alpha1",
        "kind": "ClusterAdmissionPolicy",
        "metadata": {"name": "in-cel"},
        "spec": {
            "validations": [{"expression": expression}],
            "match": {"any": [{"kinds": [kind]}]},
        },
    }
    built_in, in_cel = judging(each.object for each in migration.converted), judging([rule])
    verdicts = set()
    choice = random.Random(3)
    for of_pod, metadata in islice(pods(), number):
        spec = chosen(choice, **SERVICE) if is_service else of_pod
        found = built_in(kind, spec=spec, metadata=metadata).verdict
        expected = in_cel(kind, spec=spec, metadata=metadata).verdict
        assert (spec, metadata, found) == (spec, metadata, expected)
        verdicts.add(found)
    assert verdicts == {"allowed", "denied"}


@pytest.mark.parametrize(
    ("policy", "allowed", "denied"),
    [
        ("capabilities", {"capabilities": {"add": ["CHOWN"]}}, {"capabilities": {"add": ["ALL"]}}),
        ("host-ports", {"ports": [{"containerPort": 1, "hostPort": 5500}]},
         {"ports": [{"containerPort": 1, "hostPort": 80}]}),
        ("volume-types", {"volumes": [{"name": "a"}]}, {"volumes": [{"name": "a", "nfs": {}}]}),
    ],
)  # fmt: skip
def test_rules_that_cel_cannot_express_become_built_in_policies(policy, allowed, denied):
    """The container lists in a rule may have any order."""
    for row in table():
        if row["policy"] != policy or "pattern" in row["tests"]:
            continue
        (sort,) = row["tests"]
        tests = filled(row["tests"], GIVEN | {"$words": LISTS[sort]})
        given, other = ("ephemeralContainers, initContainers", "initContainers,ephemeralContainers")
        text = json.dumps(tests).replace(given, other)
        (found,) = converted(cluster_policy(json.loads(text))).converted
        assert found.spec["policy"] == policy
        judge = judging([found.object])
        for fields, expected in ((allowed, "allowed"), (denied, "denied")):
            spec = fields
            if "volumes" not in fields:
                context = {"securityContext": fields} if "ports" not in fields else fields
                spec = {"containers": [{"name": "a", "image": "a:1"} | context]}
            assert judge("Pod", spec=spec).verdict == expected


def test_a_rule_that_leaves_containers_out_stays_in_cel():
    """The built-in policy judges all of them."""
    context = {"=(securityContext)": {"=(privileged)": False}}
    (found,) = converted(cluster_policy({"pattern": {"spec": {"containers": [context]}}})).converted
    assert "validations" in found.spec


def test_a_list_with_another_meaning_is_not_converted():
    """ALL allows every capability here; without `name`, Kyverno denies every volume."""
    for row in table():
        sort = next(iter(row["tests"]))
        if sort == "pattern" or row["policy"] == "host-ports":
            continue
        odd = {"$words": ["ALL"], "$types": ["configMap"]}
        found = converted(cluster_policy(filled(row["tests"], odd)))
        assert [each.spec for each in found.converted if "policy" in each.spec] == []
