"""`--fix` where anchors, aliases and merges share the text of several fields."""

import pytest

from config.documents import parse_documents
from gatewright.checks.fixed_text import FixedText


def fixed(text, *changes):
    """Return the text after changes of fields, and how many are left out."""
    (document,) = parse_documents(text.encode(), "x.yaml")
    operations = [
        {"op": "remove", "path": path}
        if value is None
        else {"op": "add", "path": path, "value": value}
        for path, value in changes
    ]
    new = FixedText(text, "x.yaml")
    assert new.change([(document, each) for each in operations]) == 0
    assert new.count + new.shared == len(operations)
    return new.text, new.shared


@pytest.mark.parametrize(
    ("text", "changes", "result"),
    [
        pytest.param(
            "a: &x {p: 1, q: 2}\nb: *x\n",
            [("/a/p", None), ("/b/p", None)],
            "a: &x {q: 2}\nb: *x\n",
            id="one edit is both fixes",
        ),
        pytest.param(
            "a: [&x {p: 1}, *x, {p: 1}]\n",
            [("/a/0/p", 2), ("/a/1/p", 2), ("/a/2/p", 3)],
            "a: [&x {p: 2}, *x, {p: 3}]\n",
            id="items of a list",
        ),
        pytest.param(
            "{a: &x {p: 1, q: {r: 3}}, b: *x, c: 1}\n",
            [("/b/q/r", 4)],
            "{a: &x {p: 1, q: {r: 3}}, b: {p: 1, q: {r: 4}}, c: 1}\n",
            id="only the alias, in flow style",
        ),
        pytest.param(
            "a: &x\n  p: 1\nb: *x  # why\nc: 1\n",
            [("/b/p", 2)],
            "a: &x\n  p: 1\nb: {p: 2}  # why\nc: 1\n",
            id="only the alias, in block style",
        ),
        pytest.param(
            "a: &x [1]\nb: {c: *x}\n", [("/b/c", [2])], "a: &x [1]\nb: {c: [2]}\n", id="a list"
        ),
        pytest.param(
            "a: &x true\nb: *x\n", [("/b", False)], "a: &x true\nb: false\n", id="a scalar"
        ),
        pytest.param(
            "a: &x {p: {q: 1, r: 2}}\nb: {<<: *x, c: 3}\n",
            [("/b/p/q", 5)],
            "a: &x {p: {q: 1, r: 2}}\nb: {<<: *x, c: 3, p: {q: 5, r: 2}}\n",
            id="a merged field becomes an own one",
        ),
        pytest.param(
            "a: &x\n  p: {q: 1, r: 2}\nb:\n  <<: *x\n  c: 3\n",
            [("/b/p/r", None)],
            "a: &x\n  p: {q: 1, r: 2}\nb:\n  <<: *x\n  c: 3\n  p:\n    q: 1\n",
            id="without a field of it",
        ),
        pytest.param(
            "a: &x {p: 1}\nb: {<<: *x}\n",
            [("/a/p", 2), ("/b/p", 2)],
            "a: &x {p: 2}\nb: {<<: *x}\n",
            id="both of a merge",
        ),
    ],
)
def test_a_fix_changes_no_other_field(text, changes, result):
    """One text is changed for all fields that want it; for one of them, its alias is replaced."""
    assert fixed(text, *changes) == (result, 0)


@pytest.mark.parametrize(
    ("text", "change"),
    [
        pytest.param("a: &x {p: 1}\nb: *x\n", ("/a/p", 2), id="the anchor alone"),
        pytest.param("a: [&x {p: 1}, *x]\n", ("/a/1/p", 2), id="an alias in a list"),
        pytest.param("a: &x {p: 1}\nb: {<<: *x}\n", ("/b/p", None), id="a merged field"),
    ],
)
def test_a_fix_that_would_change_other_fields_is_left_out(text, change):
    """It is counted, and a line says why."""
    assert fixed(text, change) == (text, 1)
