"""`string.format(list)`: %s %d %f %e %b %x %X %o (cel-go's strings extension), and the check of a constant text."""

import math
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from webhook.cel.errors import EvaluationError
from webhook.cel.functions import declare, weigh
from webhook.cel.library.conversions import to_text
from webhook.cel.library.text import quote
from webhook.cel.types import Type, parse_type
from webhook.cel.values import Duration, Timestamp, type_name

MAX_PRECISION = 100  # digits after the point
_CLAUSE = re.compile(r"%(%|(?:\.(\d*))?(.?))", re.DOTALL)
_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_NUMBERS = ("NaN", "Infinity", "-Infinity")  # the texts that %f and %e take
_INFINITE = {math.inf: "∞", -math.inf: "-∞"}


_LITERALS: dict[type, Callable[[str], str]] = {  # how %s writes the text of a value within a list or a map
    str: quote,
    float: quote,
    bytes: lambda text: f"b{quote(text)}",
    Timestamp: 'timestamp("{}")'.format,
    Duration: 'duration("{}")'.format,
}


def _literal(value: Any) -> str:
    if type(value) is float and math.isfinite(value):
        return f"{value:.6f}"
    return _LITERALS.get(type(value), str)(_text(value))


def _text(value: Any, _: int = 0) -> str:
    if type_name(value) not in _VERBS["s"].types:
        raise _refused("s", value)
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, dict):
        pairs = sorted((_literal(key), _literal(each)) for key, each in value.items())
        return f"{{{', '.join(f'{key}:{each}' for key, each in pairs)}}}"
    if value is None:
        return "null"
    try:
        return to_text(value)
    except EvaluationError as error:
        raise EvaluationError(f'error during formatting: could not convert argument "{error}" to string') from None


def _fixed(value: Any, precision: int) -> str:
    number = float(value)
    return f"{number:.{precision}f}" if math.isfinite(number) else _INFINITE.get(number, "NaN")


def _scientific(value: Any, _: int) -> str:
    number = float(value)
    if not math.isfinite(number):
        return _INFINITE.get(number, "NaN")
    mantissa, exponent = f"{number:.6e}".split("e")
    # Six digits, whatever precision is asked for: so does the API server.
    return f"{mantissa}\u202f\u00d7\u202f10{exponent.lstrip('+').translate(_RAISED)}"


def _hex(value: Any, _: int) -> str:
    return f"{int(value):x}" if isinstance(value, int) else (value.encode() if isinstance(value, str) else value).hex()


class Verb(NamedTuple):
    """A verb: its name in errors, what it takes, and what it writes of a value with a precision."""

    name: str
    takes: str
    types: frozenset[str]
    write: Callable[[Any, int], str]


def _verb(name: str, takes: str, types: str, write: Callable[[Any, int], str]) -> Verb:
    return Verb(name, takes, frozenset(parse_type(each).name for each in types.split()), write)


_TEXTS = "strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps"
_VERBS = {
    "s": _verb("string", _TEXTS, "int uint string bool bytes double map list type duration timestamp null_type", _text),
    "d": _verb("decimal", "an integer", "int uint", lambda value, _: f"{int(value)}"),
    "o": _verb("octal", "an integer", "int uint", lambda value, _: f"{int(value):o}"),
    "b": _verb("binary", "an integer", "int uint bool", lambda value, _: f"{int(value):b}"),
    "x": _verb("hex", "an integer", "int uint string bytes", _hex),
    "X": _verb("hex", "an integer", "int uint string bytes", lambda value, _: _hex(value, 0).upper()),
    "f": _verb("fixed-point", "a double", "double string", _fixed),
    "e": _verb("scientific", "a double", "double string", _scientific),
}


def _refused(verb: str, value: Any) -> EvaluationError:
    text = f"{_VERBS[verb].name} clause can only be used on {_VERBS[verb].takes}, was given {type_name(value)}"
    return EvaluationError(f"error during formatting: {text}")


def _format(text: str, args: list[Any]) -> str:
    parts, at, used = [], 0, 0
    for match in _CLAUSE.finditer(text):
        parts.append(text[at : match.start()])
        at = match.end()
        if match[1] == "%":
            parts.append("%")
            continue
        if used >= len(args):
            raise EvaluationError(f"error during formatting: index {used} out of range")
        parts.append(_clause(match[3], match[2], args[used]))
        used += 1
    return "".join([*parts, text[at:]])


def _clause(verb: str, digits: str | None, value: Any) -> str:
    if not verb:
        raise EvaluationError("unexpected end of string")
    if verb not in _VERBS:
        raise EvaluationError(f'could not parse formatting clause: unrecognized formatting clause "{verb}"')
    if digits and int(digits[:9]) > MAX_PRECISION:
        raise EvaluationError(f"could not parse formatting clause: precision above {MAX_PRECISION}")
    if type_name(value) not in _VERBS[verb].types or (verb in "fe" and type(value) is str and value not in _NUMBERS):
        raise _refused(verb, value)
    return _VERBS[verb].write(value, int(digits) if digits else 6)


def format_fault(text: str, types: list[Type]) -> tuple[int | None, str]:
    """Return which argument is wrong (None for all of them) and why; "" where `string.format` can take them."""
    verbs = [match[3] for match in _CLAUSE.finditer(text) if match[1] != "%"]
    for position, verb in enumerate(verbs):
        if position >= len(types):
            return None, f"index {position} out of range"
        if verb not in _VERBS:
            return None, f'could not parse formatting clause: unrecognized formatting clause "{verb}"'
        if not types[position].may_be(*_VERBS[verb].types):
            allowed = ", ".join(sorted(_VERBS[verb].types))
            return position, f"error during formatting: %{verb} is for {allowed}; was given {types[position]}"
    if len(types) > len(verbs):
        return None, f"too many arguments supplied to string.format (expected {len(verbs)}, got {len(types)})"
    return None, ""


declare(("(string).format(list(dyn)) -> string", _format, lambda text, args: (len(text) >> 3) + 4 * weigh(args)))
