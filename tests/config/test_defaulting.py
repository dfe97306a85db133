"""Custom resources get the defaults of their schema, as in the API server before admission."""

import copy

import pytest

from config.api.webapp import WebApp
from config.defaulting import defaulted_as, fill_crd_defaults, fill_defaults

RESOURCES = {
    "limits": {"cpu": "500m", "memory": "512Mi"},
    "requests": {"cpu": "100m", "memory": "128Mi"},
}


def webapp(**spec):
    """A WebApp with a spec."""
    return {
        "apiVersion": "example.com/v1",
        "kind": "WebApp",
        "metadata": {"name": "shop"},
        "spec": spec,
    }


@pytest.mark.parametrize(
    ("spec", "filled"),
    [
        (
            {"replicas": 1, "image": "x"},
            {"replicas": 1, "image": "x", "port": 8080, "resources": RESOURCES},
        ),
        ({"port": None, "resources": None}, {"port": 8080, "resources": RESOURCES}),
        ({"port": 80, "resources": {}}, {"port": 80, "resources": {}}),
        (
            {"port": 80, "resources": {"limits": {"cpu": "1"}}},
            {"port": 80, "resources": {"limits": {"cpu": "1"}}},
        ),
        ({"port": "x", "unknown": None}, {"port": "x", "unknown": None, "resources": RESOURCES}),
    ],
)
def test_absent_and_null_fields_get_defaults(spec, filled):
    """Set fields are kept, valid or not."""
    given = webapp(**spec)
    before = copy.deepcopy(given)
    assert fill_crd_defaults(given) == defaulted_as(WebApp, given) == webapp(**filled)
    assert given == before


@pytest.mark.parametrize(
    "object",
    [
        {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {}},
        {"apiVersion": "example.com/v2", "kind": "WebApp", "spec": {}},
        {"apiVersion": "example.com/v1", "kind": "WebApp"},
        {"apiVersion": "example.com/v1", "kind": "WebApp", "spec": []},
        {"apiVersion": ["x"], "kind": None},
        {},
    ],
)
def test_other_objects_are_unchanged(object):
    """Only Gatewright's kinds in their versions get defaults."""
    assert fill_crd_defaults(object) == object


def test_two_objects_share_no_defaults():
    """Changing one object does not affect the next."""
    one = fill_crd_defaults(webapp())
    one["spec"]["resources"]["limits"]["cpu"] = "9"
    assert fill_crd_defaults(webapp())["spec"]["resources"] == RESOURCES


def test_the_values_of_a_map_get_defaults():
    """As the items of a list do."""
    schema = {
        "properties": {
            "parts": {"additionalProperties": {"properties": {"port": {"default": 80}}}},
            "items": {"items": {"properties": {"port": {"default": 81}}}},
            "words": {"additionalProperties": True},
        }
    }
    given = {"parts": {"a": {}, "b": {"port": 1}}, "items": [{}], "words": {"c": {}}}
    assert fill_defaults(given, schema) == {
        "parts": {"a": {"port": 80}, "b": {"port": 1}},
        "items": [{"port": 81}],
        "words": {"c": {}},
    }
