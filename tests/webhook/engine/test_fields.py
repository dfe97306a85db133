"""Typed reading by path: null is absent, and a wrong type is an error with path and value."""

import pytest

from webhook.engine.fields import Fields, WrongTypeError
from webhook.engine.violation import shown

WHOLE = {
    "kind": "Pod",
    "metadata": {"name": "it", "labels": {"a/b.c": "d"}, "annotations": None},
    "spec": {
        "replicas": 3,
        "paused": False,
        "containers": [
            {"name": "app", "image": "x", "resources": {"limits": {"cpu": 1}}},
            {"image": "y"},
        ],
        "volumes": None,
    },
}


@pytest.mark.parametrize(
    ("read", "path", "expected"),
    [
        (Fields.integer, "spec.replicas", 3),
        (Fields.integer, "spec.maximum", None),
        (Fields.integer, "status.replicas", None),
        (Fields.integer, "metadata.annotations.count", None),
        (Fields.string, "metadata.name", "it"),
        (Fields.string, "metadata.annotations", None),
        (Fields.boolean, "spec.paused", False),
        (Fields.mapping, "metadata.labels", {"a/b.c": "d"}),
        (Fields.mapping, "metadata.annotations", {}),
        (Fields.mapping, "status.conditions", {}),
    ],
)
def test_null_is_absent(read, path, expected):
    """A field is its value; if it or its parent is absent or null, it is None or an empty object."""
    assert read(Fields(WHOLE), path) == expected


@pytest.mark.parametrize(
    ("value", "read", "found", "wanted"),
    [
        (8.4, Fields.integer_or_string, "8.4 is a number", "an integer or a string"),
        ("3", Fields.integer, '"3" is a string', "an integer"),
        (True, Fields.integer, "true is a boolean", "an integer"),
        (3.0, Fields.integer, "3.0 is a number", "an integer"),
        (
            18446744073709551616.0,
            Fields.integer,
            "1.8446744073709552e+19 is a number",
            "an integer",
        ),
        ([], Fields.integer, "a list", "an integer"),
        ({}, Fields.integer, "an object", "an integer"),
        (1, Fields.boolean, "1 is an integer", "a boolean"),
        ("true", Fields.boolean, '"true" is a string', "a boolean"),
        (0, Fields.string, "0 is an integer", "a string"),
        (False, Fields.string, "false is a boolean", "a string"),
        ({"a": "secret"}, Fields.string, "an object", "a string"),
        ([], Fields.mapping, "a list", "an object"),
        ("", Fields.mapping, '"" is a string', "an object"),
        (False, Fields.mapping, "false is a boolean", "an object"),
    ],
)
def test_a_wrong_type_is_an_error(value, read, found, wanted):
    """JSON types are not coerced: the error has the path, the value, and the expected type."""
    with pytest.raises(WrongTypeError) as told:
        read(Fields({"spec": {"field": value}}), "spec.field")
    assert (told.value.path, told.value.found, told.value.wanted) == ("spec.field", found, wanted)
    assert str(told.value) == f"spec.field: must be {wanted}"


def test_a_parent_of_the_wrong_type_is_the_error():
    """The path ends at the value that is not an object."""
    with pytest.raises(WrongTypeError) as told:
        Fields({"spec": {"template": "none"}}).integer("spec.template.spec.replicas")
    assert (told.value.path, told.value.found) == ("spec.template", '"none" is a string')


def test_items_are_named_by_name_or_index():
    """The path of an item has its name; without one, its index."""
    containers = list(Fields(WHOLE).each("spec.containers"))
    assert [each.path("image") for each in containers] == [
        "spec.containers[name=app].image",
        "spec.containers[1].image",
    ]


@pytest.mark.parametrize("name", ["", None, 5, "line\nbreak", ["a"], "x" * 254])
def test_an_unprintable_name_is_not_used(name):
    """An item whose name is not printable, or too long, is named by its index."""
    (item,) = Fields({"items": [{"name": name}]}).each("items")
    assert item.path() == "items[0]"


def test_paths_continue_below_items():
    """A field of an object in an item has the whole path."""
    (container, _) = Fields(WHOLE).each("spec.containers")
    limits = container.fields("resources").fields("limits")
    assert (limits.integer("cpu"), limits.path("cpu")) == (
        1,
        "spec.containers[name=app].resources.limits.cpu",
    )


def test_fields_of_an_absent_object_are_none():
    """An absent object still has a path."""
    absent = Fields(WHOLE).fields("spec.securityContext")
    assert (absent.value, absent.boolean("runAsNonRoot")) == ({}, None)
    assert absent.path("runAsNonRoot") == "spec.securityContext.runAsNonRoot"


@pytest.mark.parametrize("path", ["spec.volumes", "spec.initContainers"])
def test_an_absent_list_is_empty(path):
    """A missing or null list is empty."""
    assert list(Fields(WHOLE).each(path)) == []


@pytest.mark.parametrize(
    ("value", "path", "found", "wanted"),
    [
        ("app", "containers", '"app" is a string', "a list"),
        ({}, "containers", "an object", "a list"),
        ([{}, None], "containers[1]", "null", "an object"),
        (["app"], "containers[0]", '"app" is a string', "an object"),
        ([[]], "containers[0]", "a list", "an object"),
    ],
)
def test_a_list_of_other_values_is_an_error(value, path, found, wanted):
    """Each item must be an object; the wrong one is named."""
    with pytest.raises(WrongTypeError) as told:
        list(Fields({"containers": value}).each("containers"))
    assert (told.value.path, told.value.found, told.value.wanted) == (path, found, wanted)


def test_a_list_of_strings_is_read_whole():
    """Absent and null lists of strings are empty."""
    fields = Fields({"args": ["a", ""], "command": None})
    assert [fields.strings(path) for path in ("args", "command", "env")] == [["a", ""], [], []]


@pytest.mark.parametrize(
    ("value", "path", "found", "wanted"),
    [
        ("a", "args", '"a" is a string', "a list"),
        (["a", 1], "args[1]", "1 is an integer", "a string"),
        ([None], "args[0]", "null", "a string"),
    ],
)
def test_an_item_that_is_not_a_string_is_an_error(value, path, found, wanted):
    """It is named by its index."""
    with pytest.raises(WrongTypeError) as told:
        Fields({"args": value}).strings("args")
    assert (told.value.path, told.value.found, told.value.wanted) == (path, found, wanted)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("nginx:1.21", '"nginx:1.21"'),
        ("größe", '"größe"'),
        ('quo"te', '"quo\\"te"'),
        ("a\nb\x1b[31m", '"a\\nb\\u001b[31m"'),
        ("right\u202eleft", '"right\\u202eleft"'),
        ("x" * 300, '"' + "x" * 255 + '…"'),
        (None, "null"),
        (1.5, "1.5"),
        ({"secret": 1}, "an object"),
        ([1], "a list"),
    ],
)
def test_values_are_shown_in_one_safe_line(value, text):
    """Strings are quoted and escaped, long ones are cut, and containers are not shown."""
    assert shown(value) == text


def test_steps_are_the_path_of_a_patch():
    """A path that was read can be patched, items by their index."""
    (container, _) = Fields(WHOLE).each("spec.containers")
    assert container.set("resources.limits", {}).steps == (
        "spec",
        "containers",
        0,
        "resources",
        "limits",
    )
    assert Fields(WHOLE).fields("spec").fields("template.spec").steps() == (
        "spec",
        "template",
        "spec",
    )
    assert Fields(WHOLE).steps() == ()


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("spec.paused", True),
        ("spec.volumes", False),
        ("spec.none", False),
        ("spec.volumes.none", False),
    ],
)
def test_false_is_set_and_null_is_not(path, expected):
    """A value of any type but null is set."""
    assert Fields(WHOLE).is_set(path) is expected


def test_texts_are_strings_by_name():
    """Labels and annotations are strings; null is absent, and another type is an error with the key."""
    assert Fields({"labels": {"a/b": "c", "d": None}}).texts("labels") == {"a/b": "c"}
    assert Fields(WHOLE).texts("metadata.annotations") == {}
    with pytest.raises(WrongTypeError) as told:
        Fields({"labels": {"a.b": 1}}).texts("labels")
    assert (told.value.path, told.value.wanted) == ("labels[a.b]", "a string")


def test_integers_are_integers_only():
    """Any other item, also a boolean, is an error."""
    assert Fields({"groups": [1, 2]}).integers("groups") == [1, 2]
    with pytest.raises(WrongTypeError) as told:
        Fields({"groups": [1, True]}).integers("groups")
    assert told.value.path == "groups[1]"
