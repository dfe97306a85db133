"""Fields of wrong types: each is named with its value, and everything else is judged."""

import copy
import json
from typing import Any

import pytest

from config.documents import Document
from gatewright.cli import main
from gatewright.tools.doctor import diagnose
from gatewright.tools.doctor.state import MODELS, ClusterState
from tests.gatewright.tools.doctor.clusters import CA, NOW, backend, configuration, encoded, webhook
from tests.gatewright.tools.doctor.test_policies import (
    BINDING,
    PARAMS,
    POLICY,
    cel_exception,
    cluster_policy,
    constraint,
    own_exception,
    reported,
)

SELECTOR = {
    "matchLabels": {"a": "b"},
    "matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}],
}
WEBHOOK = webhook(
    namespaceSelector=SELECTOR,
    objectSelector=SELECTOR,
    matchConditions=[{"name": "c", "expression": "true"}],
    timeoutSeconds=3,
)
BACKEND = backend()
OVERRIDE = {"failureActionOverrides": [{"action": "Enforce"}]}
NAMED = {"metadata": {"name": "a", "labels": {"l": "v"}}}
BUNDLE = {"caBundle": encoded(CA.certificate)}
OBJECTS = [
    configuration(webhook(clientConfig={"url": "https://a.example.com"}), WEBHOOK),
    *BACKEND,
    BACKEND[2] | {"kind": "StatefulSet"},
    {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "a"},
        "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "a"}, "minReplicas": 2},
    },
    {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "votes.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"plural": "votes"},
            "versions": [{"name": "v1", "served": True}],
            "conversion": {"strategy": "Webhook", "webhook": {"clientConfig": BUNDLE}},
        },
    },
    {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": "v1.example.com"},
        "spec": {"group": "example.com", "service": WEBHOOK["clientConfig"]["service"]} | BUNDLE,
    },
    POLICY | {"spec": POLICY["spec"] | PARAMS},
    BINDING | {"spec": BINDING["spec"] | {"paramRef": {"name": "x", "namespace": "y"}}},
    cluster_policy("Audit") | NAMED | {"spec": {"rules": [{"validate": OVERRIDE}]}},
    constraint("dryrun") | NAMED,
    cel_exception("k"),
    own_exception("k") | reported("InForce"),
]
WRONG: list[Any] = [7, True, "x", [7], {}, []]


def read(value: dict[str, Any]) -> tuple[object, list[str]]:
    """Return the object as doctor knows it, and the problems."""
    state = ClusterState(frozenset(MODELS))
    problems = state.read([Document.of_object(value)])
    diagnose(state, NOW)
    return next(iter(state._by_name.values()), None), [each.message for each in problems]


def fields(value: Any, holder: tuple = (), path: str = ""):
    """Yield the path of each field, as keys and as text, and its value."""
    if path:
        yield holder, path, value
    if isinstance(value, dict):
        for key, below in value.items():
            yield from fields(below, (*holder, key), f"{path}.{key}".lstrip("."))
    elif isinstance(value, list):
        for index, below in enumerate(value):
            yield from fields(below, (*holder, index), f"{path}[{index}]")


@pytest.mark.long
@pytest.mark.parametrize("given", OBJECTS, ids=lambda each: each["kind"])
def test_a_field_of_a_wrong_type_is_named_or_not_read(given):
    """No wrong value counts as an absent one."""
    known, problems = read(given)
    assert known is not None, problems
    for (*within, last), path, value in fields(given):
        for wrong in WRONG:
            if type(wrong) is type(value):
                continue
            changed = copy.deepcopy(given)
            holder = changed
            for key in within:
                holder = holder[key]
            holder[last] = wrong
            found, problems = read(changed)
            assert found == known or any(path in each for each in problems), (path, wrong)


def test_the_message_names_object_field_and_value_and_the_rest_is_judged(tmp_path, capsys):
    """Exit code 3, and the findings of the other objects; a Secret's values are not shown."""
    slow = configuration(webhook(timeoutSeconds=30), name="slow")
    workload = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}}
    objects = [
        configuration(WEBHOOK, WEBHOOK | {"rules": "x"}),
        workload | {"spec": {"template": 7}},
        BACKEND[5] | {"data": "secret"},
        workload | {"metadata": 7},
        workload | {"apiVersion": 7},
        slow,
    ]
    file = tmp_path / "all.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    with pytest.raises(SystemExit) as ended:
        main(["doctor", str(file), "--output", "json"])
    assert ended.value.code == 3
    report = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in report["results"] if each["violations"]] == ["slow"]
    places = [(each["file"], each["line"]) for each in report["problems"][:2]]
    assert places == [(str(file), 1)] * 2
    assert [each["message"] for each in report["problems"]] == [
        "metadata: missing, or not an object",
        "apiVersion: missing; every Kubernetes object has one",
        'ValidatingWebhookConfiguration guard cannot be read: webhooks[1].rules: "x": should be a '
        "valid list",
        "Deployment a cannot be read: spec.template: 7: should be an object",
        "Secret guard/guard cannot be read: data: should be an object",
    ]


@pytest.mark.parametrize("name", ["--all", "-n x --all", "a\nkubectl delete ns x", "a;b", "$(a)"])
def test_a_name_that_no_cluster_has_is_in_no_command(name: str, tmp_path, capsys) -> None:
    """A file may have it: it could be an option of kubectl, or a line of its own."""
    objects = copy.deepcopy(
        [configuration(webhook(rules=[EVERYTHING], sideEffects="Some")), *BACKEND]
    )
    for object in objects:
        object["metadata"] |= {"name": name, "namespace": name}
    for called in objects[0]["webhooks"]:
        called["clientConfig"]["service"] |= {"name": name, "namespace": name}
    objects += [BACKEND[0] | {"kind": "Service", "spec": {"selector": {name: name}}}]
    file = tmp_path / "a.yaml"
    file.write_text("\n---\n".join(map(json.dumps, objects)))
    with pytest.raises(SystemExit) as ended:
        main(["doctor", str(file)])
    out = capsys.readouterr().out
    assert ended.value.code == 1
    assert "Fix: " in out
    assert [line for line in out.splitlines() if line.strip().startswith("kubectl ")] == []


EVERYTHING = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}
