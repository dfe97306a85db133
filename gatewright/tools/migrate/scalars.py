"""Convert scalars of Kyverno's patterns: text with wildcards, amounts, ranges, alternatives."""

import operator
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from config.quantities import parse_exact
from gatewright.tools.cel_text import every, glob, literal, negate, some
from gatewright.tools.migrate.results import refuse

AMOUNT = r"([-+]?\d+(?:\.\d+)?[A-Za-z]*)"
RANGE, OUTSIDE = re.compile(f"{AMOUNT}-{AMOUNT}"), re.compile(f"{AMOUNT}!-{AMOUNT}")
DURATION = re.compile(r"[-+]?([0-9.]+(ns|us|ms|s|m|h))+")
OPERATORS = {">=": ">=", "<=": "<=", ">": ">", "<": "<", "!": "!="}
COMPARE = {"==": operator.eq, "!=": operator.ne, ">": operator.gt, ">=": operator.ge,
           "<": operator.lt, "<=": operator.le}  # fmt: skip
NUMBERS = (":integer", ":number")  # the codes of numbers
ANY = ""  # the code of an unknown type


class AmountComparison(NamedTuple):
    """An operator and its right operand."""

    operator: str
    operand: str


def _alternatives(pattern: str) -> Iterator[list[AmountComparison]]:
    """Yield the alternatives of a pattern, each with the comparisons that must all hold."""
    for alternative in pattern.split("|"):
        if outside := OUTSIDE.fullmatch(alternative.strip()):
            yield [AmountComparison("<", outside[1])]
            yield [AmountComparison(">", outside[2])]
        else:
            yield [one for part in alternative.split("&") for one in _comparisons(part.strip())]


def _comparisons(pattern: str) -> list[AmountComparison]:
    """Return the comparisons of a pattern without & and |."""
    if len(pattern) > 1:
        for operator, sign in OPERATORS.items():
            if pattern.startswith(operator):
                return [AmountComparison(sign, pattern[len(operator) :].strip())]
        if match := RANGE.fullmatch(pattern):
            return [AmountComparison(">=", match[1]), AmountComparison("<=", match[2])]
        if OUTSIDE.fullmatch(pattern):
            refuse(f"the range {pattern!r} beside & is not converted")
    return [AmountComparison("==", pattern)]


def scalar(value: str, pattern: Any, code: str = ANY) -> str:
    """Return the test that an existing value matches a scalar of a pattern."""
    if pattern is None:
        return f"{value} in [null, 0, '', false]"
    if isinstance(pattern, bool) or not isinstance(pattern, str):
        is_number = not isinstance(pattern, bool) and code not in NUMBERS
        text = [f"{value} == {literal(pattern)}"]
        return some([*text, f"{value} == {literal(str(pattern))}"] if is_number else text)
    if "{{" in pattern or "$(" in pattern:
        refuse(f"the pattern {pattern!r} contains a variable")
    return some(
        every(_compare(value, *each, code) for each in comparisons)
        for comparisons in _alternatives(pattern)
    )


def takes_null(pattern: Any) -> bool:
    """Return whether a pattern matches a missing value, which is compared as 0."""
    if not isinstance(pattern, str):
        return pattern is None
    return any(all(map(_null_compared, each)) for each in _alternatives(pattern))


def _null_compared(comparison: AmountComparison) -> bool:
    operand = amount(comparison.operand)
    return operand is not None and bool(COMPARE[comparison.operator](0, operand))


def _compare(value: str, sign: str, operand: str, code: str) -> str:
    if amount(operand) is not None:
        return _compared_amount(value, sign, operand, code)
    if DURATION.fullmatch(operand):
        refuse(f"the pattern {operand!r} can mean a duration or text")
    if sign not in ("==", "!="):
        return "false"
    if code in NUMBERS and set(operand) & {*"*?"} and operand not in ("*", "?*"):
        refuse(f"the pattern {operand!r} is about the digits of a number")
    if code == ":boolean":
        match = glob(f"string({value})", operand)
    elif operand in ("true", "false"):
        match = f"string({value}) == {literal(operand)}" if code else f"{value} == {operand}"
        if not code:
            match = some([match, f"{value} == {literal(operand)}"])
    elif code == ":string":
        match = glob(value, operand)
    elif "*" not in operand and "?" not in operand:
        match = f"{value} == {literal(operand)}"
    else:
        scalars = some(f"type({value}) == {each}" for each in ("string", "int", "bool"))
        match = glob(f"string({value})", operand)
        return every([scalars, negate(match) if sign == "!=" else match])
    return negate(match) if sign == "!=" else match


def _compared_amount(value: str, sign: str, operand: str, code: str) -> str:
    if code in NUMBERS and re.fullmatch(r"-?\d{1,18}", operand):
        return f"{value} {sign} {operand}"
    text = value if code == ":string" else f"string({value})"
    compared = f"quantity({text}).compareTo(quantity({literal(operand)})) {sign} 0"
    if code == ":quantity":
        return compared
    if sign == "!=":
        return negate(every([f"isQuantity({text})", compared.replace("!=", "==")]))
    return every([f"isQuantity({text})", compared])


def amount(text: str) -> Any:
    """Return the value of a quantity; None if a text is none."""
    quantity = parse_exact(text) if any(each.isdigit() for each in text) else None
    return None if quantity is None else quantity.value
