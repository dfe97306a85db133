"""Objects are merged as by server-side apply, and compared field by field."""

import pytest

from webhook.engine import Patch
from webhook.engine.violation import UNSET
from webhook.policy_sets.apply import applied
from webhook.policy_sets.mutations import differences


def env(*pairs):
    """Return the environment variables of a container."""
    return [{"name": name, "value": value} for name, value in pairs]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({}, {"tty": True}, {"tty": True}),
        ({"tty": True}, {"stdin": True}, {"tty": True, "stdin": True}),
        ({"env": env("Ab")}, {"env": env("Ac")}, {"env": env("Ac")}),
        ({"env": env("Aa", "Bb", "Ac")}, {"env": env("Dd")}, {"env": env("Aa", "Bb", "Ac", "Dd")}),
        ({"env": env("Aa", "Bb", "Ac")}, {"env": env("Bx")}, {"env": env("Aa", "Bx", "Ac")}),
        ({"env": env("Aa", "Bb", "Ac")}, {"env": env("Ax")}, {"env": env("Ax", "Bb")}),
        ({"env": env("Aa", "Bb")}, {"env": env("Bx", "Ay")}, {"env": env("Bx", "Ay")}),
        ({"env": env("Aa")}, {"env": []}, {"env": env("Aa")}),
        ({}, {"env": []}, {"env": []}),
        (
            {"ports": [{"containerPort": 53, "hostIP": "a"}, {"containerPort": 53, "hostIP": "b"}]},
            {"ports": [{"containerPort": 9090}]},
            {
                "ports": [
                    {"containerPort": 53, "hostIP": "a"},
                    {"containerPort": 53, "hostIP": "b"},
                    {"containerPort": 9090},
                ]
            },
        ),
        (
            {
                "ports": [
                    {"containerPort": 80, "name": "a"},
                    {"containerPort": 80, "protocol": "UDP"},
                ]
            },
            {"ports": [{"containerPort": 80, "protocol": "TCP", "hostPort": 1}]},
            {
                "ports": [
                    {"containerPort": 80, "protocol": "TCP", "hostPort": 1, "name": "a"},
                    {"containerPort": 80, "protocol": "UDP"},
                ]
            },
        ),
    ],
)
def test_an_apply_configuration_is_merged_into_a_container(old, new, expected):
    """Items of lists by their keys, which have defaults; those of the user that share a key stay."""
    assert applied(old, new, "core.v1.Container") == expected


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
        ({"a": [{"b": 1}, {"b": 2}]}, {"a": [{"b": 1}, {"b": 3}]}, [(("a", 1, "b"), 3)]),
    ],
)
def test_objects_are_compared_field_by_field(old, new, patches):
    """Maps are compared by keys, lists of the same length by indexes; existing values are overwritten."""
    wanted = [
        Patch(path if isinstance(path, tuple) else (path,), value, overwrite=True)
        for path, value in patches
    ]
    assert list(differences(old, new)) == wanted
