"""Patterns for values of labels and annotations, and required keys."""

import re
import time

import pytest

from tests.webhook.asking import ask
from webhook.engine import WrongTypeError
from webhook.policies._patterns import OnMetadata, compile_pattern


@pytest.mark.parametrize(
    ("pattern", "value", "matches"),
    [
        ("*", "", True),
        ("?*", "", False),
        ("team-*", "team-shop", True),
        ("team-*", "a-team-shop", False),
        ("a.b", "axb", False),
        ("/a.b/", "axb", True),
        ("/[0-9]{4}/", "12345", False),
        ("/a|b/", "b", True),
        ("/a|b/", "ab", False),
        ("/a/", "a\n", False),
        ("/", "/", True),
        ("//", "", True),
        ("/etc/*", "/etc/passwd", True),
    ],
)
def test_a_value_is_matched_as_a_whole(pattern, value, matches):
    """The pattern is a glob, or a regular expression between slashes."""
    assert compile_pattern(pattern)(value) is matches


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("/[/", "is not a valid regular expression: missing ]: ["),
        ("/(?!x).*/", "is not a valid regular expression: invalid perl operator: (?!"),
        (
            "/((a{1000}){1000}){1000}/",
            "is not a valid regular expression: invalid repetition size: {1000}",
        ),
        (r"/\pL{1,900}/", "is not a valid regular expression: pattern too large - compile failed"),
        ("/[a-z]{1,999}/", "is too large: 2001 instructions when compiled; at most 1000"),
    ],
)
def test_an_invalid_pattern_is_rejected(pattern, text):
    """The error is raised when the policy is read."""
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        compile_pattern(pattern)


def test_a_value_above_the_limit_matches_nothing():
    """The limit is 4,096 characters, far above any label."""
    assert compile_pattern("a*")("a" * 4096)
    assert not compile_pattern("a*")("a" * 4097)


@pytest.mark.parametrize("pattern", ["/([a-z]+-?)+/", "/(a|a)*b/", "/.*a.*a.*a.*b/", "*a*a*a*b"])
def test_matching_time_is_bounded(pattern):
    """Otherwise the author of a label or annotation, up to 256 KiB, could block every review."""
    started = time.process_time()
    assert not compile_pattern(pattern)("a" * 2**18 + "!")
    assert time.process_time() - started < 2.0


def test_every_missing_key_is_reported_once():
    """In the order of the parameters; keys that are present and match are not reported."""
    request = ask({"kind": "Pod", "metadata": {"labels": {"b": "x", "c": "1"}}})
    found = list(OnMetadata().lacking(request, "labels", {"a": "*", "b": "y*", "c": "/[0-9]/"}))
    assert [each.message for each in found] == [
        "metadata.labels[a]: missing; the label is required. Add it.",
        'metadata.labels[b]: "x"; the value must be like y*. Correct it.',
    ]


def test_values_must_be_strings():
    """A numeric label is reported as one."""
    with pytest.raises(WrongTypeError, match=r"labels\[a\]: must be a string"):
        list(
            OnMetadata().lacking(
                ask({"kind": "Pod", "metadata": {"labels": {"a": 1}}}), "labels", {"a": "*"}
            )
        )
