"""What a case leaves out is the smallest valid object of its kind."""

import pytest

from webhook.engine.kinds import KINDS
from webhook.harness.bases import at, merge, smallest


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.kind)
def test_every_kind_in_the_table_has_a_smallest_object(kind):
    """A case can be about any kind that policies look at."""
    version = f"{kind.group}/{kind.versions[-1]}".removeprefix("/")
    object = smallest(kind.kind, "it")
    assert (object["apiVersion"], object["kind"], object["metadata"]["name"]) == (version, kind.kind, "it")


def test_two_smallest_objects_share_nothing():
    """What a case does to one does not reach the next."""
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
def test_what_a_case_says_is_laid_over(below, above, merged):
    """Objects are merged key by key; lists, scalars and null replace."""
    assert merge(below, above) == merged


def test_a_path_makes_parents():
    """A pod stands wherever its kind carries it."""
    assert at("spec.template.spec", {"a": 1}) == {"spec": {"template": {"spec": {"a": 1}}}}
