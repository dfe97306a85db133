"""Objects are merged as by server-side apply, and compared field by field."""

from dataclasses import replace

import pytest

from config.schemas import CustomTypes, root_type
from tests.webhook.asking import ask
from webhook.cel.admission_environment import ADMISSION
from webhook.engine import SCHEMAS, Engine, Patch
from webhook.engine.policy import RuleError
from webhook.engine.violation import UNSET
from webhook.harness.reviews import Admission, review
from webhook.policy_sets.apply import TypedMerge
from webhook.policy_sets.bound_objects import bind
from webhook.policy_sets.catalogue import catalogue
from webhook.policy_sets.mutations import apply_mutation, differences
from webhook.review import read

MUTATION = replace(ADMISSION, structs=True)


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
        ({}, {"env": []}, {}),  # the API server converts an empty list to null
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
    assert TypedMerge().apply(old, new, "core.v1.Container") == expected


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


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("5u", 5),
        ("timestamp('2026-01-01T00:00:00Z')", "2026-01-01T00:00:00Z"),
        ("duration('1h')", "3600s"),
        ("b'abc'", "YWJj"),
        ("optional.of('x')", "x"),
        ("2.0", 2),
        ("9007199254740993", "9007199254740993"),
    ],
)
def test_a_value_is_written_as_by_the_api_server(value, expected):
    """Types that JSON lacks have the texts of protobuf."""
    program = MUTATION.compile(f"[JSONPatch{{op: 'add', path: '/a', value: {value}}}]")
    operations = program.evaluate(MUTATION.activation({}, None))
    assert apply_mutation({}, operations, "JSONPatch", "") == {"a": expected}


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ([{"op": "add", "path": "/metadata/labels/b"}], {"labels": {"a": "1", "b": ""}}),
        ([{"op": "add", "path": "/metadata/labels", "value": None}], {}),
        ([{"op": "add", "path": "/metadata/labels/a", "value": None}], {"labels": {"a": ""}}),
        (
            [
                {"op": "add", "path": "/metadata/labels", "value": None},
                {"op": "copy", "from": "/metadata/labels/b", "path": "/metadata/annotations"},
            ],
            {},
        ),
    ],
)
def test_a_null_is_read_as_the_api_server_reads_it(operations, expected):
    """In a field nothing, in a map of texts an empty one; the keys of a null are all absent."""
    object = {"metadata": {"labels": {"a": "1"}}}
    type = root_type("v1", "ConfigMap")
    assert apply_mutation(object, operations, "JSONPatch", type) == {"metadata": expected}


def test_a_null_in_a_custom_kind_is_left_to_the_api_server():
    """It reads nulls in labels as empty texts, and rejects others by the kind's schema."""
    spec = {
        "match": {"any": [{"kinds": ["example.com/v1/Gadget"]}]},
        "mutations": [
            {
                "patchType": "JSONPatch",
                "jsonPatch": {"expression": "[JSONPatch{op: 'add', path: '/spec/x', value: null}]"},
            }
        ],
    }
    value = {
        "apiVersion": "gatewright.io/v1alpha1",
        "kind": "ClusterAdmissionPolicy",
        "metadata": {"name": "it"},
    }
    object = {
        "apiVersion": "example.com/v1",
        "kind": "Gadget",
        "metadata": {"name": "a"},
        "spec": {"y": 1},
    }
    admission = Admission(object, namespace="default", resource="gadgets")
    request = read(review(admission)).with_looked_up({SCHEMAS: CustomTypes})
    verdict = Engine([bind({**value, "spec": spec}, catalogue())]).mutate(request)
    assert list(verdict.operations) == [{"op": "add", "path": "/spec/x", "value": None}]


def test_with_ignore_a_mutation_that_fails_is_skipped_alone():
    """The others change the object, and the failure is a warning; with Fail the object is denied."""
    texts = ("'/data/a', value: '1'", "'/nope/b', value: '2'", "'/data/c', value: '3'")
    mutations = [
        {
            "patchType": "JSONPatch",
            "jsonPatch": {"expression": f"[JSONPatch{{op: 'add', path: {text}}}]"},
        }
        for text in texts
    ]
    value = {
        "apiVersion": "gatewright.io/v1alpha1",
        "kind": "ClusterAdmissionPolicy",
        "metadata": {"name": "it"},
    }
    for failure_policy, data in (("Ignore", {"x": "0", "a": "1", "c": "3"}), ("Fail", {"x": "0"})):
        spec = {
            "match": {"any": [{"kinds": ["ConfigMap"]}]},
            "mutations": mutations,
            "failurePolicy": failure_policy,
        }
        bound = bind({**value, "spec": spec}, catalogue())
        object = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "a"},
            "data": {"x": "0"},
        }
        verdict = Engine([bound]).mutate(ask(object, "ConfigMap"))
        (outcome,) = verdict.outcomes
        assert (verdict.allowed, verdict.object["data"]) == (failure_policy == "Ignore", data)
        assert "operation 0 of the JSONPatch (add /nope/b) cannot be applied" in str(outcome.error)


PARTS = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name", "via"],
    "items": {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "via": {"type": "string", "default": "TCP"},
            "size": {"type": "integer"},
        },
    },
}
GADGETS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gadgets.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"kind": "Gadget", "plural": "gadgets"},
        "versions": [
            {
                "name": "v1",
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "parts": PARTS,
                                    "words": {"type": "array", "items": {"type": "string"}},
                                },
                            }
                        },
                    }
                },
            }
        ],
    },
}


@pytest.mark.parametrize(
    ("new", "parts"),
    [
        ({"name": "b"}, [{"name": "a", "via": "TCP"}, {"name": "b"}]),
        ({"name": "a", "size": 1}, [{"name": "a", "via": "TCP", "size": 1}]),
        ({"name": "a", "via": "UDP"}, [{"name": "a", "via": "TCP"}, {"name": "a", "via": "UDP"}]),
        ({"size": 1}, [{"name": "a", "via": "TCP"}, {"size": 1}]),  # a key is its default
        ({"name": "a", "size": "x"}, "must be an integer"),
        ({"name": "a", "sise": 1}, "unknown field"),
    ],
)
def test_the_lists_of_a_custom_kind_are_those_of_its_definition(new, parts):
    """Items have the keys of the CustomResourceDefinition, with their defaults."""
    types = CustomTypes.of([GADGETS])
    object = {"spec": {"parts": [{"name": "a", "via": "TCP"}]}}
    root = types.kinds["example.com/v1/Gadget"]
    value = {"spec": {"parts": [new]}}
    if isinstance(parts, str):
        with pytest.raises(RuleError, match=parts):
            apply_mutation(object, value, "ApplyConfiguration", root, types)
    else:
        found = apply_mutation(object, value, "ApplyConfiguration", root, types)
        assert found == {"spec": {"parts": parts}}


def test_an_atomic_list_of_a_custom_kind_is_not_merged():
    """As in the API server, which rejects the configuration."""
    types = CustomTypes.of([GADGETS])
    with pytest.raises(RuleError, match=r"atomic lists, maps or structs: spec\.words; use a JSON"):
        apply_mutation(
            {}, {"spec": {"words": ["x"]}}, "ApplyConfiguration", "example.com/v1/Gadget", types
        )
