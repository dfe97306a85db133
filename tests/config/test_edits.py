"""One field of a text is changed; every other character stays."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.documents import parse_documents
from config.edits import EditableText, EditError, replace_at


def edited(text, path, new, source="x.yaml"):
    """The text with one field changed, which is checked to be that field alone."""
    (document,) = parse_documents(text.encode(), source)
    edit = EditableText(text, is_json=source.endswith(".json")).edit(document.node, path, new)
    result = text[: edit.start] + edit.text + text[edit.end :]
    (after,) = parse_documents(result.encode(), source)
    assert after.value == replace_at(document.value, path, new)
    return result


@pytest.mark.parametrize(
    ("text", "path", "new", "result"),
    [
        pytest.param("a: 1 # one\nb: 2\n", ("a",), 5, "a: 5 # one\nb: 2\n", id="a number"),
        pytest.param(
            "a:\n- x # why\nb: 1\n",
            ("a", 1),
            {"c": 1},
            "a:\n- x # why\n- {c: 1}\nb: 1\n",
            id="an item",
        ),
        pytest.param("a: [x]\n", ("a", 1), "y", 'a: [x, "y"]\n', id="an item in flow style"),
        pytest.param("a: 'x'\n", ("a",), "Always", "a: Always\n", id="a quoted string"),
        pytest.param("\ufeffa: 1\nb: 2\n", ("b",), 5, "\ufeffa: 1\nb: 5\n", id="after a BOM"),
        pytest.param(
            "a: x\n", ("a",), "yes", 'a: "yes"\n', id="a string that looks like a boolean"
        ),
        pytest.param("a: x\n", ("a",), "1.5", 'a: "1.5"\n', id="a string that looks like a number"),
        pytest.param("a:\nb: 1\n", ("a",), True, "a: true\nb: 1\n", id="nothing"),
        pytest.param(
            "a:\nb: 1\n", ("a", "c", "d"), 1, "a: {c: {d: 1}}\nb: 1\n", id="below nothing"
        ),
        pytest.param(
            "a:\n- x # why\n- y\nb: 1\n", ("a",), ["z"], "a: [z]\nb: 1\n", id="a block list"
        ),
        pytest.param("a: [x, y]\n", ("a",), ["z"], "a: [z]\n", id="a flow list"),
        pytest.param(
            "a:\n  b: 1 # one\n\n# end\nc: 2\n",
            ("a", "d"),
            2,
            "a:\n  b: 1 # one\n  d: 2\n\n# end\nc: 2\n",
            id="add",
        ),
        pytest.param(
            "a:\n  b: 1",
            ("a", "d"),
            {"e": {"f": [1]}},
            "a:\n  b: 1\n  d:\n    e:\n      f: [1]",
            id="add objects",
        ),
        pytest.param(
            "a:\n  b: |\n    x\n    y\n\nc: 1\n",
            ("a", "d"),
            2,
            "a:\n  b: |\n    x\n    y\n  d: 2\n\nc: 1\n",
            id="add after text",
        ),
        pytest.param(
            "a:\r\n  b: 1\r\nc: 2\r\n",
            ("a", "d"),
            2,
            "a:\r\n  b: 1\r\n  d: 2\r\nc: 2\r\n",
            id="line ends",
        ),
        pytest.param(
            "a: {b: 1}\n", ("a", "d"), {"e": 2}, "a: {b: 1, d: {e: 2}}\n", id="add in flow"
        ),
        pytest.param("a: {}\n", ("a", "d"), 2, "a: {d: 2}\n", id="add in an empty object"),
        pytest.param(
            "- a: 1\n  # two\n- a: 2\n",
            (1, "b"),
            3,
            "- a: 1\n  # two\n- a: 2\n  b: 3\n",
            id="add in an item",
        ),
        pytest.param(
            "a: 1\nb: 2 # two\n# three\nc: 3\n", ("b",), None, "a: 1\n# three\nc: 3\n", id="remove"
        ),
        pytest.param(
            "- b: 2\n  c: 3\n", (0, "b"), None, "- c: 3\n", id="remove the first of an item"
        ),
        pytest.param("- b: 2\n", (0, "b"), None, "- {}\n", id="remove the only one of an item"),
        pytest.param(
            "a:\n  b:\n    c: 1\nd: 2\n",
            ("a", "b", "c"),
            None,
            "d: 2\n",
            id="remove what would be empty",
        ),
        pytest.param(
            "a: {b: 1, c: 2}\n", ("a", "b"), None, "a: {c: 2}\n", id="remove the first in flow"
        ),
        pytest.param(
            "a: {b: 1, c: 2}\n", ("a", "c"), None, "a: {b: 1}\n", id="remove the last in flow"
        ),
        pytest.param(
            "a: ü # ö\nb: {ä: 1}\n",
            ("b", "c"),
            1,
            "a: ü # ö\nb: {ä: 1, c: 1}\n",
            id="other letters",
        ),
    ],
)
def test_a_field_is_changed(text, path, new, result):
    """The edit keeps the style of the text, its comments and the order."""
    assert edited(text, path, new) == result


def test_json_keeps_its_layout():
    """A field is on lines of its own where the others are, with their indentation."""
    text = '{\n    "a": {\n        "b": [1]\n    },\n    "c": {"d": 1}\n}\n'
    result = edited(text, ("a", "e"), {"f": {"g": [True]}}, "x.json")
    result = edited(result, ("c", "e"), 1, "x.json")
    assert result == (
        '{\n    "a": {\n        "b": [1],\n        "e": {\n            "f": {\n'
        '                "g": [\n                    true\n                ]\n            }\n'
        '        }\n    },\n    "c": {"d": 1, "e": 1}\n}\n'
    )


def test_json_stays_json():
    """Keys and strings are quoted."""
    text = '{"a": {"b": 1},\n "c": "x"}\n'
    result = edited(edited(text, ("a", "d"), {"e": "f"}, "x.json"), ("c",), "y", "x.json")
    assert json.loads(result) == {"a": {"b": 1, "d": {"e": "f"}}, "c": "y"}


@pytest.mark.parametrize(
    ("text", "path", "new"),
    [
        ("a: 1\n", ("b",), None),
        ("a: 1\n", ("a", "b"), 1),
        ("a: [1]\n", ("a", 2), 1),
        ("a: {}\n", ("a", "b", 0, "c"), 1),
    ],
)
def test_an_edit_of_a_missing_part_is_an_error(text, path, new):
    """An edit of a missing field, list or item is an error."""
    (document,) = parse_documents(text.encode(), "x.yaml")
    with pytest.raises(EditError):
        EditableText(text).edit(document.node, path, new)


KEYS = st.sampled_from(["a", "b", "true", "1", "x y"])
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.sampled_from(["", "x", "yes", "a: b", "# c", "\n", "é"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(KEYS, VALUES, min_size=1, max_size=4), KEYS, KEYS, VALUES)
def test_any_json_can_be_changed(value, first, second, new):
    """The result is JSON with the intended value, or an error is raised."""
    text = json.dumps(value, indent=2)
    for path in ((first,), (first, second)):
        try:
            result = edited(text, path, new, "x.json")
        except EditError:
            continue
        assert json.loads(result) == replace_at(value, path, new)
