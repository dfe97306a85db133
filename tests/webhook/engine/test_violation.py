"""The text of a violation: the path, the value found, the rule and the fix, on one line of limited length."""

import pytest

from webhook.engine import Violation
from webhook.engine.violation import MAX_TEXT, UNSET, shown


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a", '"a"'),
        ("é …", '"é …"'),
        ('say "a"', '"say \\"a\\""'),
        ("a\nb\u200b", '"a\\nb\\u200b"'),
        ("x" * 254, f'"{"x" * 254}"'),
        ("x" * 255, f'"{"x" * 255}…"'),
        ("x" * 1_000_000, f'"{"x" * 255}…"'),
        (7, "7"),
        (1.5, "1.5"),
        (True, "true"),
        (None, "null"),
        ({"a": "secret"}, "an object"),
        (["secret"], "a list"),
    ],
    ids=lambda each: str(each)[:20],
)
def test_a_value_is_shown_as_json_and_cut(value, text):
    """Texts are cut at 256 characters; the contents of objects and lists are never shown."""
    assert shown(value) == text


@pytest.mark.parametrize(
    ("violation", "where", "message"),
    [
        (Violation("a.b", 1, "no numbers", "remove it"), "a.b", "a.b: 1; no numbers. Remove it."),
        (
            Violation("a.b", None, "no texts", "remove it", value="x"),
            "a.b",
            'a.b: "x"; no texts. Remove it.',
        ),
        (Violation("a.b", 1, "no numbers", ""), "a.b", "a.b: 1; no numbers"),
        (
            Violation("", None, "there is one too many", "remove it"),
            "",
            "there is one too many. Remove it.",
        ),
        (
            Violation("a.b", 1, "no numbers", "remove it", of="Deployment/shop"),
            "Deployment/shop: a.b",
            "Deployment/shop: a.b: 1; no numbers. Remove it.",
        ),
        (
            Violation("", None, "it could not be planned", "", of="Deployment/shop"),
            "Deployment/shop",
            "Deployment/shop: it could not be planned",
        ),
        (Violation("a[b\nc]", 1, "no\tnumbers", ""), "a[b c]", "a[b c]: 1; no numbers"),
    ],
)
def test_a_message_is_one_line(violation, where, message):
    """It names the planned child that it is about, if any, and has no control characters."""
    assert (violation.where, violation.message) == (where, message)


@pytest.mark.parametrize(("more", "end"), [(0, "x"), (1, "…")])
def test_a_long_message_is_cut(more, end):
    """At most 8,192 characters are left."""
    message = Violation("", None, "x" * (MAX_TEXT + more), "").message
    assert (len(message), message[-1], set(message[:-1])) == (8192, end, {"x"})


def test_violations_with_different_texts_are_not_equal():
    """All tests that compare violations depend on it."""
    one = Violation("a", 1, "no", "remove it", value=1)
    assert one == Violation("a", 1, "no", "remove it", value=UNSET, id="rule")
    for other in (
        {"field": "b"},
        {"found": 2},
        {"rule": "never"},
        {"fix": "set it"},
        {"of": "Pod/a"},
    ):
        assert one != Violation(
            **({"field": "a", "found": 1, "rule": "no", "fix": "remove it"} | other)
        )
    assert one != one.message
