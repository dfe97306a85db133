"""The smallest valid object of each kind completes a case."""

import pytest

from webhook.engine.kinds import KINDS
from webhook.harness.bases import at, merge, smallest


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.kind)
def test_every_kind_in_the_table_has_a_smallest_object(kind):
    """A case can use any kind that policies judge."""
    version = f"{kind.group}/{kind.versions[-1]}".removeprefix("/")
    object = smallest(kind.kind, "it")
    assert (object["apiVersion"], object["kind"], object["metadata"]["name"]) == (
        version,
        kind.kind,
        "it",
    )


def test_smallest_objects_share_nothing():
    """A case that changes one does not affect the next."""
    smallest("Pod")["spec"]["containers"].append({"name": "b"})
    assert len(smallest("Pod")["spec"]["containers"]) == 1


@pytest.mark.parametrize(
    ("below", "above", "merged"),
    [
        ({"a": 1, "b": {"c": 2}}, {"b": {"d": 3}}, {"a": 1, "b": {"c": 2, "d": 3}}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": {"b": 1}}, {"a": None}, {"a": None}),
        ({"a": 1}, {"a": {"b": 1}}, {"a": {"b": 1}}),
        ({"a": 1}, {}, {"a": 1}),
    ],
)
def test_a_cases_fields_are_merged(below, above, merged):
    """Objects are merged key by key; lists, scalars and null replace."""
    assert merge(below, above) == merged


def test_a_path_creates_parents():
    """A pod spec has a different path in each kind."""
    assert at("spec.template.spec", {"a": 1}) == {"spec": {"template": {"spec": {"a": 1}}}}
