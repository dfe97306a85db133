"""Positions in a text: of errors in expressions, of fields of a schema, of documents."""

import pytest

from gatewright.tools.editor.cel_places import cel_place
from gatewright.tools.editor.schema_help import completions, path_at
from gatewright.tools.editor.yaml_parts import TextPart, parts_of

SET = "apiVersion: gatewright.io/v1alpha1\nkind: ClusterAdmissionPolicy\n"


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("expression: a && !", 1, 6),
        ("- expression: a && !", 1, 6),
        ("{expression: 'a == ''b'' && !', message: x}", 1, 13),
        ('{expression: "a == \\"b\\" && !"}', 1, 13),
        ("expression: |\n  a &&\n    b && !", 2, 8),
        ("expression: |-  # why\n  a && !", 1, 6),
        ("expression: >\n  a &&\n  b && !", 1, 11),
        ("expression: >\n  a &&\n  b && !", 1, 6),
    ],
    ids=["plain", "item", "single", "double", "block", "indicators", "folded", "before the fold"],
)
def test_the_place_of_an_error_is_in_the_expression(text, line, column):
    """Quotes, escapes, blocks and folded lines are skipped: the place is that of the character."""
    lines = text.split("\n")
    key = (1, lines[0].index("expression") + 1)
    found = cel_place(lines, key, f"expression: line {line}, column {column}: no")
    expected = "b" if column == 6 and ">" in text else "!"
    assert lines[found[0] - 1][found[1] - 1] == expected


@pytest.mark.parametrize("text", ["expression:", "other: 1", "expression: a"])
def test_without_a_place_it_is_the_field(text):
    """Examples are an expression of several lines in one quoted line, and a message without a position."""
    message = "line 3, column 1: no" if text == "expression: a" else "no"
    assert cel_place([text], (1, 1), f"expression: {message}") == (1, 1)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("", ""),
        ("spec:\n  ", "spec"),
        ("spec:\n  match:\n    any:\n      - kinds: [a]\n        ", "spec match any []"),
        ("spec:\n  match:\n    any:\n    - ", "spec match any []"),
        ("spec:\n  match:\n    any:\n    - kinds:\n      - a\n      na", "spec match any []"),
        ("spec:\n  match: {}\n  # any:\n\n  p", "spec"),
        ("cases:\n- expect:\n    denied:\n    - path: a\n      m", "cases [] expect denied []"),
        ("spec:\n  match:\n    any: []\nme", ""),
    ],
)
def test_the_path_of_a_line_is_its_indentation(text, path):
    """Lists may have the indentation of their field."""
    assert path_at(text.split("\n")) == tuple(path.split())


@pytest.mark.parametrize(
    ("text", "first"),
    [
        (SET, "apiVersion"),
        (f"{SET}spec:\n  failurePolicy: ", "Fail"),
        (f"{SET}spec:\n  allowExistingViolations: ", "true"),
        (f"{SET}spec:\n  validationActions:\n    - ", "Deny"),
        (f"{SET}spec:\n  policy: required-labels\n  params:\n    ", "where"),
        ("policy: replica-limits\ncases:\n  - ", "name"),
        ("policy: replica-limits\ncases:\n  - name: a\n    expect: ", "allowed"),
    ],
)
def test_completion_follows_the_schema(text, first):
    """Fields of the policy that is named, values, items."""
    lines = text.split("\n")
    assert completions(TextPart(text, 0, 0), len(lines) - 1, len(lines[-1]))[0].text == first


@pytest.mark.parametrize("text", ["apiVersion: v1\nkind: Pod\n", f"{SET}spec: a "])
def test_there_is_no_completion_in_unknown_places(text):
    """Other kinds, and the middle of a value."""
    lines = text.split("\n")
    assert completions(TextPart(text, 0, 0), len(lines) - 1, len(lines[-1])) == []


def test_a_text_is_split_into_its_documents():
    """Dashes within a line or a block do not begin a document."""
    text = "a: 1\n--- # b\nb: |\n  ---\n---\n"
    found = [(each.text, each.start, each.line) for each in parts_of(text)]
    assert found == [("a: 1\n", 0, 0), ("--- # b\nb: |\n  ---\n", 5, 1), ("---\n", 24, 4)]
