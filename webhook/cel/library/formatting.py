"""`string.format(list)`: %s %d %f %e %b %x %X %o (cel-go's strings extension)."""

import math
import re
from collections.abc import Callable
from typing import Any

from webhook.cel.errors import EvaluationError
from webhook.cel.functions import function, weigh
from webhook.cel.library.conversions import to_text
from webhook.cel.library.text import quote
from webhook.cel.values import Duration, Opaque, Optional, Timestamp, TypeValue, Uint, type_name

MAX_PRECISION = 100  # digits after the point
_CLAUSE = re.compile(r"%(%|(?:\.(\d*))?(.?))", re.DOTALL)
_INFINITE = {math.inf: "Infinity", -math.inf: "-Infinity"}


@function("(string).format(list(dyn)) -> string", cost=lambda text, args: (len(text) >> 3) + 4 * weigh(args))
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
    found: str | None = _VERBS[verb](value, int(digits) if digits else 6)
    if found is None:
        article = "an integer" if verb in "boxXd" else "a double"
        name = {"b": "binary", "o": "octal", "x": "hex", "X": "hex", "d": "decimal", "f": "fixed-point"}.get(verb, "")
        text = f"{name or 'scientific'} clause can only be used on {article}, was given {type_name(value)}"
        raise EvaluationError(f"error during formatting: {text}")
    return found


def _written(value: Any, nested: bool = False) -> str:
    """Return what %s writes; within lists and maps, CEL's own literals."""
    if isinstance(value, list):
        return f"[{', '.join(_written(each, nested=True) for each in value)}]"
    if isinstance(value, dict):
        pairs = sorted((_written(key, nested=True), _written(each, nested=True)) for key, each in value.items())
        return f"{{{', '.join(f'{key}:{each}' for key, each in pairs)}}}"
    if isinstance(value, Opaque | Optional):
        kinds = "strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps"
        text = f"string clause can only be used on {kinds}, was given {type_name(value)}"
        raise EvaluationError(f"error during formatting: {text}")
    if value is None or isinstance(value, TypeValue):
        return str("null" if value is None else value)
    try:
        shown: str = to_text(value)
    except EvaluationError as error:
        raise EvaluationError(f'error during formatting: could not convert argument "{error}" to string') from None
    literal = _LITERALS.get(type(value)) if nested else None
    return shown if literal is None else literal(value, shown)


_LITERALS: dict[type, Callable[[Any, str], str]] = {
    float: lambda value, text: f"{value:.6f}" if math.isfinite(value) else quote(text),
    Timestamp: lambda _, text: f'timestamp("{text}")',
    Duration: lambda _, text: f'duration("{text}")',
    bytes: lambda _, text: f"b{quote(text)}",
    str: lambda _, text: quote(text),
}


def _decimal(value: Any, _: int) -> str | None:
    return str(int(value)) if type(value) in {int, Uint} else None


def _number(value: Any) -> Any:
    if value in ("NaN", "Infinity", "-Infinity"):
        return float(value)
    return value if type(value) is float else None


def _fixed(value: Any, precision: int) -> str | None:
    number = _number(value)
    if number is None:
        return None
    return f"{number:.{precision}f}" if math.isfinite(number) else _INFINITE.get(number, "NaN").replace("Infinity", "∞")


def _scientific(value: Any, _: int) -> str | None:
    number = _number(value)
    if number is None:
        return None
    if not math.isfinite(number):
        return _INFINITE.get(number, "NaN").replace("Infinity", "∞")
    mantissa, exponent = f"{number:.6e}".split("e")
    # Six digits, whatever precision is asked for: so does the API server.
    return f"{mantissa}\u202f\u00d7\u202f10{exponent.lstrip('+').translate(_RAISED)}"


_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def _binary(value: Any, _: int) -> str | None:
    return f"{int(value):b}" if type(value) in {int, Uint, bool} else None


def _octal(value: Any, _: int) -> str | None:
    return f"{int(value):o}" if type(value) in {int, Uint} else None


def _hex(value: Any, _: int) -> str | None:
    if type(value) in {str, bytes}:
        return (value.encode() if isinstance(value, str) else value).hex()
    return f"{int(value):x}" if type(value) in {int, Uint} else None


_VERBS: dict[str, Any] = {
    "s": lambda value, _: _written(value),
    "d": _decimal,
    "f": _fixed,
    "e": _scientific,
    "b": _binary,
    "o": _octal,
    "x": _hex,
    "X": lambda value, _: (found := _hex(value, 0)) and found.upper(),
}
