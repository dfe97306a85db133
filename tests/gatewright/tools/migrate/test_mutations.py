"""Rules of Kyverno that mutate."""

import pytest

from tests.gatewright.tools.migrate.converted import cluster_policy, converted, mutated, reasons

NEAREST = "a mutation in CEL, `security-defaults` or `resource-defaults`"


def mutating(mutate, **fields):
    """Return a ClusterPolicy with one rule that mutates."""
    policy = cluster_policy({}, mutate=mutate, **fields)
    del policy["spec"]["rules"][0]["validate"]
    return policy


MERGE = {
    "metadata": {"labels": {"+(example.com/team)": "none"}},
    "spec": {"nodeSelector": {"pool": "a"}, "+(tolerations)": [{"key": "k", "operator": "Exists"}]},
}


@pytest.mark.parametrize(
    ("kind", "path"),
    [("Pod", ()), ("Deployment", ("spec", "template")),
     ("CronJob", ("spec", "jobTemplate", "spec", "template"))],
)  # fmt: skip
def test_a_merge_changes_pods_and_pod_templates(kind, path):
    """Parents are created; fields with the anchor +( ) are set only if they are missing."""
    migration = converted(mutating({"patchStrategicMerge": MERGE}))
    pod = mutated(migration, kind)
    for key in path:
        pod = pod[key]
    assert pod["metadata"]["labels"]["example.com/team"] == "none"
    assert pod["spec"]["nodeSelector"] == {"pool": "a"}
    assert pod["spec"]["tolerations"] == [{"key": "k", "operator": "Exists"}]


def test_existing_values_are_kept():
    """A field of +( ), and the other keys of a map."""
    migration = converted(mutating({"patchStrategicMerge": MERGE}))
    there = {"tolerations": [{"key": "mine"}], "nodeSelector": {"pool": "b", "zone": "c"}}
    labels = {"labels": {"example.com/team": "shop"}}
    pod = mutated(migration, metadata=labels, spec=there)
    assert pod["metadata"]["labels"] == labels["labels"]
    assert pod["spec"]["tolerations"] == [{"key": "mine"}]
    assert pod["spec"]["nodeSelector"] == {"pool": "a", "zone": "c"}


def test_a_json_patch_adds_and_removes():
    """The results are equal with existing and missing parents and fields."""
    patch = """
    - {op: add, path: /metadata/annotations/example.com~1a, value: b}
    - {op: remove, path: /spec/priority}
    """
    migration = converted(mutating({"patchesJson6902": patch}))
    assert migration.converted[0].spec["match"]["any"][0]["kinds"] == ["Pod"]
    for there in ({}, {"priority": 5}):
        pod = mutated(migration, spec=there)
        assert "priority" not in pod["spec"]
        assert pod["metadata"]["annotations"] == {"example.com/a": "b"}


@pytest.mark.parametrize(
    ("mutate", "reason"),
    [
        ({"patchStrategicMerge": {"metadata": {"labels": {"a": "{{ request.namespace }}"}}}},
         "it changes more than fields at fixed paths"),
        ({"targets": [{}], "patchStrategicMerge": {"a": 1}},
         "it changes more than fields at fixed paths"),
        ({"patchStrategicMerge": {"spec": {"containers": [{"(name)": "*"}]}}},
         "it merges lists or removes fields"),
        ({"patchStrategicMerge": {"metadata": {"labels": {"a": None}}}},
         "it merges lists or removes fields"),
        ({"patchStrategicMerge": {"spec": {"(a)": "*"}}}, "an anchor is not converted: (a)"),
        ({"patchesJson6902": "[{op: add, path: /spec/containers/0/tty, value: true}]"},
         "its JSON patch changes list items, or does not only add and remove"),
        ({"patchesJson6902": "[{op: add, path: /spec/tolerations/-, value: {key: k}}]"},
         "its JSON patch changes list items, or does not only add and remove"),
    ],
)  # fmt: skip
def test_a_mutation_that_cannot_be_shown_equal_is_listed(mutate, reason):
    """The nearest equivalent is listed with it."""
    assert reasons(mutating(mutate)) == [("ClusterPolicy p, rule r", reason, NEAREST)]
