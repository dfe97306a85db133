"""`string.format(list)` of cel-go's strings extension, and the check of constant texts."""

import math
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from webhook.cel.cost import COPIED, READ, WALKED, Meter
from webhook.cel.errors import EvaluationError
from webhook.cel.functions import declare
from webhook.cel.library.conversions import to_text
from webhook.cel.library.text import quote
from webhook.cel.types import Type
from webhook.cel.values import NAMES, Duration, Timestamp, type_name

MAX_PRECISION = 1000  # digits after the point
_NUMBER = 6  # units of a clause, and of formatting a number
_CLAUSE = re.compile(r"%(%|(?:\.(\d+))?(.?))", re.DOTALL)
_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_NUMBERS = ("NaN", "Infinity", "-Infinity")  # the strings that %f and %e accept
_INFINITE = {math.inf: "∞", -math.inf: "-∞"}
# How %s writes the text of a value within a list or a map.
_LITERALS: dict[type, Callable[[str], str]] = {
    str: quote,
    float: quote,
    bytes: lambda text: f"b{quote(text)}",
    Timestamp: 'timestamp("{}")'.format,
    Duration: 'duration("{}")'.format,
}


class Verb(NamedTuple):
    """A verb: its name and accepted types in errors, and its formatting function."""

    name: str
    takes: str
    types: tuple[str, ...]
    write: Callable[[Meter, Any, int], str]


def _literal(meter: Meter, value: Any) -> str:
    if type(value) is float and math.isfinite(value):
        meter.charge(_NUMBER)
        return f"{value:.6f}"
    _taking("s", type_name(value))
    text = _text(meter, value)
    meter.charge(len(text) >> READ if type(value) in _LITERALS else 0)
    return _LITERALS.get(type(value), str)(text)


def _text(meter: Meter, value: Any, _: int = 0) -> str:
    if isinstance(value, list):
        meter.charge(3 * len(value))
        return f"[{', '.join([_literal(meter, each) for each in value])}]"
    if isinstance(value, dict):
        meter.charge(8 * len(value))
        pairs = sorted((_literal(meter, key), _literal(meter, each)) for key, each in value.items())
        return f"{{{', '.join(f'{key}:{each}' for key, each in pairs)}}}"
    if value is None:
        return "null"
    meter.charge(len(value) >> COPIED if isinstance(value, str | bytes) else _NUMBER)
    try:
        return to_text(value)
    except EvaluationError as error:
        raise EvaluationError(
            f'error during formatting: could not convert argument "{error}" to string'
        ) from None


def _number(name: str, write: Callable[[float, int], str]) -> Callable[[Meter, Any, int], str]:
    """Return the formatting function of a double, or of one of three strings.

    `write` gets a finite number. In scientific notation the API server uses the precision as the
    width.
    """

    def write_value(meter: Meter, value: Any, precision: int) -> str:
        meter.charge(precision >> READ)
        if type(value) is str and value not in _NUMBERS:
            raise EvaluationError(
                f"error during formatting: {name} clause can only be used on doubles, "
                "was given string"
            )
        number = float(value)
        written = (
            write(number, precision) if math.isfinite(number) else _INFINITE.get(number, "NaN")
        )
        return written.rjust(precision) if name == "scientific" else written

    return write_value


def _fixed_point(number: float, digits: int) -> str:
    return f"{number or 0.0:,.{digits}f}"


def _scientific(number: float, _: int) -> str:
    mantissa, exponent = f"{number:.6e}".split("e")
    # Six digits for any precision, like the API server.
    return f"{mantissa}\u00d710{exponent.lstrip('+').translate(_RAISED)}"


def _hex(meter: Meter, value: Any, _: int) -> str:
    if isinstance(value, int):
        return f"{int(value):x}"
    meter.charge(len(value) >> READ)
    return (value.encode() if isinstance(value, str) else bytes(value)).hex()


_TEXTS = "strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps"
_TEXT = ("string", "bool", "bytes", "int", "uint", "double", "map", "list", "type", "null_type")
_INT, _HEX, _DOUBLE = ("int", "uint"), ("int", "uint", "string", "bytes"), ("double", "string")
_VERBS = {
    "s": Verb("string", _TEXTS, (*_TEXT, NAMES[Duration], NAMES[Timestamp]), _text),
    "d": Verb("decimal", "an integer", _INT, lambda _, value, __: f"{int(value)}"),
    "o": Verb("octal", "an integer", _INT, lambda _, value, __: f"{int(value):o}"),
    "b": Verb("binary", "an integer", (*_INT, "bool"), lambda _, value, __: f"{int(value):b}"),
    "x": Verb("hex", "an integer", _HEX, _hex),
    "X": Verb("hex", "an integer", _HEX, lambda *args: _hex(*args).upper()),
    "f": Verb("fixed-point", "a double", _DOUBLE, _number("fixed-point", _fixed_point)),
    "e": Verb("scientific", "a double", _DOUBLE, _number("scientific", _scientific)),
}


def _taking(letter: str, type_: str) -> Verb:
    """Return the verb for values of this type. Raises EvaluationError if there is none."""
    verb = _VERBS.get(letter)
    if verb is None:
        raise EvaluationError(
            f'could not parse formatting clause: unrecognized formatting clause "{letter}"'
        )
    if type_ not in {"dyn", "unknown", *verb.types}:
        text = f"{verb.name} clause can only be used on {verb.takes}, was given {type_}"
        raise EvaluationError(f"error during formatting: {text}")
    return verb


def _format(meter: Meter, text: str, args: list[Any]) -> str:
    meter.charge((len(text) + len(args)) >> READ)
    left = args[::-1]

    def write(match: re.Match[str]) -> str:
        meter.charge(_NUMBER)
        if match[1] == "%":
            return "%"
        if not left:
            raise EvaluationError(f"error during formatting: index {len(args)} out of range")
        if match[2] and int(match[2][:9]) > MAX_PRECISION:
            raise EvaluationError(
                f"could not parse formatting clause: precision above {MAX_PRECISION}"
            )
        value = left.pop()
        return _taking(match[3], type_name(value)).write(meter, value, int(match[2] or 6))

    return _CLAUSE.sub(write, text)


def check_format(text: str, types: list[list[Type]] | None) -> None:
    """Raise EvaluationError if `string.format` cannot format items of these types.

    Each item has its own type and those of its contents; None if unknown.
    """
    letters = [match[3] for match in _CLAUSE.finditer(text) if match[1] != "%"]
    for letter, within in zip(letters, types or (), strict=False):
        for operand in within if letter == "s" else within[:1]:
            _taking(letter, operand.name)
    if types is not None and len(letters) != len(types):
        raise EvaluationError(f"{len(letters)} clauses for {len(types)} arguments")


declare(("(string).format(list(dyn)) -> string", _format, WALKED))
