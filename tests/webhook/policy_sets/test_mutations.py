"""Objects are merged as by server-side apply, and compared field by field."""

import pytest

from webhook.engine import Patch
from webhook.engine.violation import UNSET
from webhook.policy_sets.mutations import differences, merged


@pytest.mark.parametrize(
    ("field", "old", "new", "expected"),
    [
        ("", {"a": {"b": 1, "c": 2}}, {"a": {"b": 3}}, {"a": {"b": 3, "c": 2}}),
        ("", {"a": {"b": 1}}, {"a": "x"}, {"a": "x"}),
        ("", {"a": "x"}, {"a": {"b": 1}}, {"a": {"b": 1}}),
        ("args", ["a"], ["b"], ["b"]),
        ("args", ["a"], "b", "b"),
        ("finalizers", ["a", "b"], ["c", "a"], ["a", "b", "c"]),
        (
            "env",
            [{"name": "A", "value": "1"}],
            [{"name": "A", "value": "2"}],
            [{"name": "A", "value": "2"}],
        ),
        ("env", [{"name": "A"}], [{"value": "2"}], [{"value": "2"}]),
        ("env", [{"value": "1"}], [{"name": "A"}], [{"name": "A"}]),
        ("env", ["A"], [{"name": "A"}], [{"name": "A"}]),
        ("env", [{"name": "A"}], ["A"], ["A"]),
        (
            "ports",
            [{"containerPort": 80, "name": "a"}, {"containerPort": 80, "protocol": "UDP"}],
            [{"containerPort": 80, "protocol": "TCP", "hostPort": 1}],
            [
                {"containerPort": 80, "protocol": "TCP", "hostPort": 1, "name": "a"},
                {"containerPort": 80, "protocol": "UDP"},
            ],
        ),
        (
            "ports",
            [{"port": 80, "name": "a"}],
            [{"port": 80, "nodePort": 1}, {"port": 81}],
            [{"port": 80, "name": "a", "nodePort": 1}, {"port": 81}],
        ),
        ("ports", [{"port": 80}], [{"port": 81}, {"name": "x"}], [{"port": 81}, {"name": "x"}]),
    ],
)
def test_an_apply_configuration_is_merged(field, old, new, expected):
    """Items of lists by their keys, which have defaults; where an item has none, the list is replaced."""
    assert merged(old, new, field) == expected


@pytest.mark.parametrize(
    ("old", "new", "patches"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": None}, {"a": None}, []),
        ({"a": None}, {"a": {}}, [("a", {})]),
        ({"a": 1}, {"a": 2, "b": 3}, [("a", 2), ("b", 3)]),
        ({"a": 1}, {"a": True}, [("a", True)]),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, [(("a", "b"), 2)]),
        ({"a": {"b": 1}}, {"a": [1]}, [("a", [1])]),
        ({"a": [1]}, {"a": {"b": 1}}, [("a", {"b": 1})]),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1}}, [(("a", "c"), UNSET)]),
        ({"a": [1, 2]}, {"a": [1]}, [("a", [1])]),
    ],
)
def test_objects_are_compared_field_by_field(old, new, patches):
    """Maps by their keys, anything else as a whole; what is there is overwritten."""
    wanted = [
        Patch(path if isinstance(path, tuple) else (path,), value, overwrite=True)
        for path, value in patches
    ]
    assert list(differences(old, new)) == wanted
