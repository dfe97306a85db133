"""Resolves YAML scalars as kubectl does: go-yaml's types, in the numbers of the API.

The rules are those of `resolve` in go.yaml.in/yaml/v2.
"""

import base64
import math
import re
from decimal import Decimal
from functools import lru_cache
from typing import Any

TAG = "tag:yaml.org,2002:"
NULL, BOOL, INT, FLOAT, TEXT, BINARY, MERGE, TIMESTAMP = (
    f"{TAG}{name}"
    for name in ("null", "bool", "int", "float", "str", "binary", "merge", "timestamp")
)
TYPES = {NULL: (type(None),), BOOL: (bool,), INT: (int,), FLOAT: (int, float)}
LARGEST_INTEGER = 2**63 - 1
NULLS = frozenset(("", "~", "null", "Null", "NULL"))
WORDS = {
    **dict.fromkeys(
        ("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True
    ),
    **dict.fromkeys(
        ("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False
    ),
    **dict.fromkeys(NULLS),
}
NUMERIC = frozenset("+-.0123456789")
NOT_JSON = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
INTEGER = re.compile(
    r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]{0,19}))", re.ASCII
)
BASES = (16, 2, 8, 10)
# Go's own syntax, which a number with a leading point is read by.
POINT_FIRST = re.compile(r"\.[0-9]+(?:_[0-9]+)*(?:[eE][-+]?[0-9]+(?:_[0-9]+)*)?", re.ASCII)
DECIMAL = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)


class ScalarError(ValueError):
    """A scalar has no value in JSON, or not the type of its tag."""


# Cached, so that repeated texts, most of them keys, are stored once.
@lru_cache(maxsize=16_384)
def resolve(text: str) -> Any:
    """Return the value of a plain scalar. Raises ScalarError for an infinite number."""
    if text in WORDS:
        return WORDS[text]
    if text[0] not in NUMERIC:
        return text
    if NOT_JSON.fullmatch(text):
        raise ScalarError(f"{text} is no number in JSON")
    if text[0] == "." and not POINT_FIRST.fullmatch(text):
        return text
    plain = text.replace("_", "")
    if integer := INTEGER.fullmatch(plain):
        sign, *digits = integer.groups()
        number = next(int(each, base) for each, base in zip(digits, BASES, strict=True) if each)
        if number <= LARGEST_INTEGER + (sign == "-"):
            return -number if sign == "-" else number
        if not sign and number < 2**64:
            return float(number)
    if DECIMAL.fullmatch(plain):
        value = float(plain)
        if math.isfinite(value):
            return json_number(value)
    return text


def json_number(value: float) -> int | float:
    """Return a number as the API decodes it: an integer if its shortest text is one of 64 bits."""
    if not value.is_integer() or abs(value) > LARGEST_INTEGER:
        return value
    number = int(Decimal(repr(value)))
    return number if -LARGEST_INTEGER - 1 <= number <= LARGEST_INTEGER else value


def resolve_tagged(tag: str, text: str) -> Any:
    """Return the value of a scalar with an explicit tag; an unknown tag means text.

    Raises ScalarError if the tag does not fit.
    """
    if tag == BINARY:
        return _decode(text)
    if tag == TIMESTAMP:
        raise ScalarError("the tag !!timestamp is not supported; remove it")
    if tag not in TYPES:
        return text
    value = resolve(text)
    if value.__class__ not in TYPES[tag] or (tag == INT and isinstance(value, float)):
        raise ScalarError(f"{text!r} is not of the type of its tag !!{tag.removeprefix(TAG)}")
    return value


def _decode(text: str) -> str:
    try:
        return base64.b64decode("".join(text.split()), validate=True).decode()
    except ValueError:
        raise ScalarError("the value of !!binary must be text in base64") from None
