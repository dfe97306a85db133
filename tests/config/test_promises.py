"""What docs/operations.md promises stays: nothing was removed or narrowed since the pinned state."""

import json
from typing import Any

import pytest

from tests.config import promises

NAME = "field example.com/v1/WebApp spec.port"
PORT = {"type": "integer", "minimum": 1, "maximum": 65535, "default": 8080}


@pytest.mark.long
def test_nothing_promised_was_removed_or_narrowed() -> None:
    """If a test names a change that must be, it is announced first: docs/operations.md says how."""
    promised = json.loads(promises.FILE.read_text())
    assert len(promised) > 1500
    assert list(promises.broken(promised, promises.collect() | promises.options())) == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"minimum": 1024}, "minimum is 1024, was 1"),
        ({"maximum": 9000}, "maximum is 9000, was 65535"),
        ({"type": "string"}, "type is 'string', was 'integer'"),
        ({"enum": [80]}, "accepts only [80], was None"),
        ({"pattern": "^8"}, "pattern is '^8', was None"),
        ({"minItems": 1}, "minItems is 1, was None"),
        ({"required": ["a"]}, "now required: a"),
        ({"default": 80}, "default is 80, was 8080"),
    ],
)
def test_a_narrowed_field_is_named(change: dict[str, Any], expected: str) -> None:
    """Each keyword that accepts less than before, or another default."""
    assert list(promises.broken({NAME: PORT}, {NAME: PORT | change})) == [f"{NAME}: {expected}"]


def test_a_removed_field_is_named() -> None:
    """A field, value, metric or option that is gone."""
    assert list(promises.broken({NAME: PORT}, {})) == [f"{NAME}: removed"]


@pytest.mark.parametrize(
    "change", [{"minimum": 0}, {"maximum": 70000}, {"description": "more"}, {"required": []}]
)
def test_a_wider_field_is_no_change(change: dict[str, Any]) -> None:
    """More values may be accepted."""
    assert list(promises.broken({NAME: PORT}, {NAME: PORT | change})) == []


def test_references_and_parts_are_resolved() -> None:
    """The chart's schema shares definitions between its values."""
    root = {
        "$defs": {
            "base": {"properties": {"a": {"type": "string"}, "b": {"$ref": "#/$defs/n"}}},
            "n": {"minimum": 1},
        },
        "allOf": [{"$ref": "#/$defs/base"}],
        "properties": {"a": True, "c": {"type": "array", "items": {"enum": ["x"]}}},
    }
    found = promises.fields(root, "value ", root)
    assert {name: fact for name, fact in found.items() if name != "value"} == {
        "value a": {"type": "string", "required": []},
        "value b": {"minimum": 1, "required": []},
        "value c": {"type": "array", "required": []},
        "value c[]": {"enum": ["x"], "required": []},
    }
