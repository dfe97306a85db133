"""Convert scalars of Kyverno's patterns: text with wildcards, amounts, ranges, alternatives."""

import re
from typing import Any, NamedTuple

from config.quantities import parse_exact
from gatewright.migrate.celtext import every, glob, literal, negated, some
from gatewright.migrate.results import refuse

RANGE = re.compile(r"([-+]?\d+(?:\.\d+)?[A-Za-z]*)(!?)-([-+]?\d+(?:\.\d+)?[A-Za-z]*)")
DURATION = re.compile(r"[-+]?([0-9.]+(ns|us|ms|s|m|h))+")
OPERATORS = {">=": ">=", "<=": "<=", ">": ">", "<": "<", "!": "!="}
ANY = ""  # the code of an unknown type


class AmountComparison(NamedTuple):
    """An operator and its right operand."""

    operator: str
    operand: str


def _comparisons(pattern: str) -> tuple[bool, list[AmountComparison]]:
    """Return the comparisons of a pattern without & and |, and whether any one suffices."""
    if len(pattern) > 1:
        for each, operator in OPERATORS.items():
            if pattern.startswith(each):
                return False, [AmountComparison(operator, pattern[len(each) :].strip())]
        if found := RANGE.fullmatch(pattern):
            low, outside, high = found.groups()
            ends = ("<", ">") if outside else (">=", "<=")
            return bool(outside), [AmountComparison(ends[0], low), AmountComparison(ends[1], high)]
    return False, [AmountComparison("==", pattern)]


def scalar(value: str, pattern: Any, code: str = ANY) -> str:
    """Return the test that an existing value matches a scalar of a pattern."""
    if pattern is None:
        return f"{value} in [null, 0, '', false]"
    if isinstance(pattern, bool) or not isinstance(pattern, str):
        is_number = not isinstance(pattern, bool) and code not in (":integer", ":number")
        text = [f"{value} == {literal(pattern)}"]
        return some([*text, f"{value} == {literal(str(pattern))}"] if is_number else text)
    if "{{" in pattern or "$(" in pattern:
        refuse(f"the pattern {pattern!r} has a variable")
    found = [
        every(_atom(value, one.strip(), code) for one in alternative.split("&"))
        for alternative in pattern.split("|")
    ]
    return some(found)


def _atom(value: str, pattern: str, code: str) -> str:
    one_suffices, comparisons = _comparisons(pattern)
    parts = [_compared(value, *each, code) for each in comparisons]
    return some(parts) if one_suffices else every(parts)


def _compared(value: str, operator: str, operand: str, code: str) -> str:
    if _amount(operand) is not None:
        return _compared_amount(value, operator, operand, code)
    if DURATION.fullmatch(operand):
        refuse(f"the pattern {operand!r} is a duration, or text")
    if operator not in ("==", "!="):
        return "false"
    if code == ":boolean" or operand in ("true", "false"):
        match = f"string({value}) == {literal(operand)}" if code else f"{value} == {operand}"
        if not code:
            match = some([match, f"{value} == {literal(operand)}"])
    elif code == ":string":
        match = glob(value, operand)
    elif "*" not in operand and "?" not in operand:
        match = f"{value} == {literal(operand)}"
    else:
        scalars = some(f"type({value}) == {each}" for each in ("string", "int", "bool"))
        match = every([scalars, glob(f"string({value})", operand)])
        if operator == "!=":
            return every([scalars, negated(glob(f"string({value})", operand))])
    return negated(match) if operator == "!=" else match


def _compared_amount(value: str, operator: str, operand: str, code: str) -> str:
    if code in (":integer", ":number") and re.fullmatch(r"-?\d{1,18}", operand):
        return f"{value} {operator} {operand}"
    text = value if code == ":string" else f"string({value})"
    compared = f"quantity({text}).compareTo(quantity({literal(operand)})) {operator} 0"
    if code == ":quantity":
        return compared
    if operator == "!=":
        return negated(every([f"isQuantity({text})", compared.replace("!=", "==")]))
    return every([f"isQuantity({text})", compared])


def _amount(text: str) -> Any:
    found = parse_exact(text) if any(each.isdigit() for each in text) else None
    return None if found is None else found.value


def takes_null(pattern: Any) -> bool:
    """Return whether a pattern matches a missing value, which is compared as 0."""
    if not isinstance(pattern, str):
        return pattern is None
    return any(
        all(_null_atom(one.strip()) for one in alternative.split("&"))
        for alternative in pattern.split("|")
    )


def _null_atom(pattern: str) -> bool:
    one_suffices, comparisons = _comparisons(pattern)
    return (any if one_suffices else all)(map(_null_compared, comparisons))


def _null_compared(comparison: AmountComparison) -> bool:
    amount = _amount(comparison.operand)
    if amount is None:
        return False
    return bool(
        {
            "==": amount == 0,
            "!=": amount != 0,
            ">": amount < 0,
            ">=": amount <= 0,
            "<": amount > 0,
            "<=": amount >= 0,
        }[comparison.operator]
    )
