"""Validation errors of user input have a path and a suggestion."""

from typing import Annotated, Literal

import pytest
from pydantic import AfterValidator, BaseModel, Field

from config.faults import FaultsError, did_you_mean, parse


def _not_three(number):
    if number == 3:
        raise ValueError("three is too many")
    return number


class Inner(BaseModel, strict=True):
    size: int
    kind: Literal["a", "b"] = "a"


class Outer(BaseModel, strict=True):
    title: str
    max_size: Annotated[int, AfterValidator(_not_three)] = Field(1, alias="maxSize", ge=0)
    inner: Inner | None = None
    several: list[Inner] = []
    either: Literal["none"] | Inner = "none"
    labels: dict[str, str] = {}
    limits: dict[str, int | Annotated[str, Field(pattern="^[0-9]+Gi$")]] | None = None


@pytest.mark.parametrize(
    ("data", "faults"),
    [
        ({}, [("title", "missing; it is required")]),
        (
            {"title": "x", "maxSiz": 1},
            [("maxSiz", 'unknown field; did you mean "maxSize"?')],
        ),
        (
            {"title": "x", "max_size": 1},
            [("max_size", 'unknown field; did you mean "maxSize"?')],
        ),
        ({"title": 5}, [("title", "5: should be a valid string")]),
        ({"title": False}, [("title", "false: should be a valid string; write it in quotes")]),
        ({"title": "x", "maxSize": "1"}, [("maxSize", '"1": should be a valid integer')]),
        ({"title": "x", "maxSize": True}, [("maxSize", "true: should be a valid integer")]),
        ({"title": "x", "maxSize": -1}, [("maxSize", "-1: should be greater than or equal to 0")]),
        ({"title": "x", "maxSize": 3}, [("maxSize", "3: three is too many")]),
        (
            {"title": "x", "inner": {"sise": 1}},
            [
                ("inner.size", "missing; it is required"),
                ("inner.sise", 'unknown field; did you mean "size"?'),
            ],
        ),
        (
            {"title": "x", "several": [{"size": 1}, {"size": 1, "kind": "c"}]},
            [("several[1].kind", "\"c\" is not one of 'a' or 'b'")],
        ),
        (
            {"title": "x", "several": [{"size": 1, "zzz": 1}]},
            [("several[0].zzz", "unknown field; known: kind, size")],
        ),
        ({"title": "x", "labels": {"a/b": 1}}, [("labels.a/b", "1: should be a valid string")]),
        (
            {"title": "x", "either": {"size": 1, "knd": "a"}},
            [
                ("either.knd", 'unknown field; did you mean "kind"?'),
            ],
        ),
        (
            {"title": "x", "limits": {"memory": "1GB"}},
            [("limits.memory", "\"1GB\": String should match pattern '^[0-9]+Gi$'")],
        ),
        (
            {"title": "x", "limits": {"cpu": 1.5}},
            [("limits.cpu", f"1.5: should be a valid {type}") for type in ("integer", "string")],
        ),
        ({"title": "x", "several": ["y"]}, [("several[0]", '"y": should be an object')]),
        ([], [("", "[]: should be an object")]),
        ({"title": ["x" * 100]}, [("title", f'["{"x" * 61}…: should be a valid string')]),
    ],
)
def test_errors_have_a_path_and_a_text(data, faults):
    """All errors are reported, in order, each with its whole text."""
    with pytest.raises(FaultsError) as error:
        parse(Outer, data)
    assert list(error.value.faults) == faults
    assert str(error.value) == "\n".join(
        f"{path}: {text}" if path else text for path, text in faults
    )


def test_valid_input_is_the_model():
    """Keys are those of the file."""
    assert parse(Outer, {"title": "x", "maxSize": 2, "inner": {"size": 1}}).model_dump() == {
        "title": "x",
        "max_size": 2,
        "inner": {"size": 1, "kind": "a"},
        "several": [],
        "either": "none",
        "labels": {},
        "limits": None,
    }


def test_the_word_for_a_key_is_a_parameter():
    """Messages use the reader's word, such as field or setting."""
    with pytest.raises(FaultsError) as error:
        parse(Inner, {"size": 1, "sizes": 2}, noun="parameter")
    assert error.value.faults == (("sizes", 'unknown parameter; did you mean "size"?'),)


@pytest.mark.parametrize(
    ("word", "known", "text"),
    [
        ("maximun", ["maximum", "tier"], '; did you mean "maximum"?'),
        ("xyz", ["maximum", "tier"], "; known: maximum, tier"),
        ("xyz", [], ""),
    ],
)
def test_did_you_mean(word, known, text):
    """A similar word is suggested; otherwise the choices are listed."""
    assert did_you_mean(word, known) == text
