"""Convert Kyverno's conditions (preconditions, deny) to CEL."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from config.schemas import parse_type
from gatewright.tools.cel_text import every, glob, literal, negate, some
from gatewright.tools.migrate.paths import MISSING, Names, Queried, query
from gatewright.tools.migrate.results import refuse
from gatewright.tools.migrate.scalars import DURATION, NUMBERS, amount

VARIABLE = re.compile(r"\{\{\s*(.*?)\s*\}\}", re.DOTALL)
ORDERS = {
    "GreaterThan": ">",
    "GreaterThanOrEquals": ">=",
    "LessThan": "<",
    "LessThanOrEquals": "<=",
}
OPERATION = "request.operation"
EQUAL, NOT_EQUAL = ("Equals", "Equal"), ("NotEquals", "NotEqual")
SMALL = re.compile(r"\d{1,6}")
# Text in a condition that means neither a range nor JSON.
TEXT = re.compile(r"(?!true$|false$|null$)[A-Za-z/*?][^-]*")
MEMBERSHIP = ("AnyIn", "AllIn", "AnyNotIn", "AllNotIn")


class Conditions:
    """Converts the conditions of one rule."""

    def __init__(
        self, operations: Sequence[str], names: Names, present: Collection[str] = ()
    ) -> None:
        """Take the operations of the rule, its variables, and those that are never missing."""
        self._operations = operations
        self._names = names
        self._present = present

    def hold(self, block: Any) -> str:
        """Return the test that conditions hold: any, all, or a list of these."""
        return self._hold(block).text

    def never_fail(self, block: Any) -> bool:
        """Return whether conditions read no field that may be missing."""
        return not self._hold(block).can_fail

    def _hold(self, block: Any) -> "ConditionTest":
        if isinstance(block, list):
            return _in_turn(map(self._one if block and "key" in block[0] else self._hold, block))
        every_one = _in_turn(map(self._one, block.get("all") or ()))
        if not block.get("any"):
            return every_one
        one = _in_turn(map(self._one, block["any"]), until=True)
        if block.get("all") and (one.can_fail or every_one.can_fail):
            refuse("it has conditions in any and in all, and a field of them may be missing")
        return ConditionTest(every([every_one.text, one.text]), one.can_fail)

    def _one(self, condition: Mapping[str, Any]) -> "ConditionTest":
        key, operator, value = (condition.get(each) for each in ("key", "operator", "value"))
        match = VARIABLE.fullmatch(key.strip()) if isinstance(key, str) else None
        if match is None:
            refuse(f"the key of a condition is not exactly one variable: {key!r}")
        if "{{" in str(value):
            refuse(f"the value of a condition contains a variable: {value!r}")
        if match[1].split("|")[0].strip() == OPERATION:
            return ConditionTest(self._operation(str(operator), value))
        queried = query(match[1], self._names)
        can_fail = queried.default is MISSING and match[1] not in self._present
        test = _test(queried, str(operator), value)
        if can_fail and test in ("true", "false"):
            refuse(f"the operator {operator} with {value!r} only tests that {match[1]} exists")
        return ConditionTest(test, can_fail)

    def _operation(self, operator: str, value: Any) -> str:
        """Evaluate a condition on the operation, if the rule's operations decide it."""
        is_list = isinstance(value, list)
        values = [str(each) for each in (value if is_list else [value])]
        is_unread = operator not in MEMBERSHIP and is_list != (operator in ("In", "NotIn"))
        if is_unread or any("*" in each or "?" in each for each in values):
            refuse(f"the operator {operator} on {OPERATION} with {value!r} is not converted")
        if operator not in (*EQUAL, *NOT_EQUAL, *MEMBERSHIP, "In", "NotIn"):
            refuse(f"the operator {operator} on {OPERATION} is not converted")
        matching = [e for e in self._operations if (e in values) != ("Not" in operator)]
        if len(matching) == len(self._operations):
            return "true"
        return f"{OPERATION} in {literal(matching)}" if matching else "false"


class ConditionTest(NamedTuple):
    """The test of a condition, and whether it fails where a field is missing."""

    text: str
    can_fail: bool = False


def _in_turn(tests: Iterable[ConditionTest], *, until: bool = False) -> ConditionTest:
    """Join tests with &&, or with || if `until`; like in Kyverno, the first failure counts."""
    join, last = (some, "false") if until else (every, "true")
    rest = ConditionTest(last)
    for test in reversed(list(tests)):
        text = join([test.text, rest.text])
        if test.can_fail and rest.text != last:
            both = f"true : {rest.text}" if until else f"{rest.text} : false"
            text = f"({test.text} ? {both})"
        rest = ConditionTest(text, test.can_fail or rest.can_fail)
    return rest


def _test(key: Queried, operator: str, value: Any) -> str:
    text, shape = key.text, parse_type(key.code).shape
    if not key.code and text.startswith(("object.", "oldObject.", "element.")):
        refuse(f"a field of an unknown type may be a list: {text}")
    if shape in ("struct", "map") or (key.is_list and not _is_scalar(parse_type(key.code).inner)):
        refuse(f"conditions on objects are not converted: {text}")
    if operator in MEMBERSHIP:
        return _member(key, operator, value)
    if key.is_list or isinstance(value, list | dict):
        refuse(f"an operator on lists is not converted: {operator}")
    if operator in ORDERS:
        if key.code not in NUMBERS or not all(map(_is_number, (value, key.default))):
            refuse(f"the operator {operator} with {value!r}: only plain numbers are converted")
        return f"{text} {ORDERS[operator]} {literal(value)}"
    if operator in EQUAL:
        return _equal(key, value)
    if operator in NOT_EQUAL:
        return _not_equal(key, value)
    return refuse(f"an operator is not converted: {operator}")


def _is_scalar(code: str) -> bool:
    return not code or parse_type(code).shape == "scalar"


def _is_number(value: Any) -> bool:
    return value is MISSING or (isinstance(value, int | float) and not isinstance(value, bool))


def _member(key: Queried, operator: str, value: Any) -> str:
    values = value if isinstance(value, list) else [value]
    if any(isinstance(each, dict | list | float) or each is None for each in values):
        refuse(f"the value of a condition is not a text, or a list of texts: {value!r}")
    if not isinstance(value, list) and not (isinstance(value, str) and TEXT.fullmatch(value)):
        refuse(f"the value {value!r} can mean text, a range or a list")
    one = "item" if key.is_list else key.text
    code = parse_type(key.code).inner if key.is_list else key.code
    is_text = code == ":string" or (not code and not key.is_list)
    text = one if is_text else f"string({one})"
    # Kyverno compares all values as text: 1000000 as 1e+06.
    if code in NUMBERS and not all(SMALL.fullmatch(str(each)) for each in values):
        refuse(f"{value!r} are not all numbers of at most six digits, beside {key.text}")
    test = some(glob(text, e if isinstance(e, str) else literal(e)) for e in values)
    test = negate(test) if operator.endswith("NotIn") else test
    return _of_items(key, operator, values, test) if key.is_list else test


def _of_items(key: Queried, operator: str, values: Sequence[Any], test: str) -> str:
    """Return the test that one or all items pass; a missing list can count as empty text."""
    expression = f"{key.text}.{'exists' if operator.startswith('Any') else 'all'}(item, {test})"
    if key.default == []:
        return expression
    if key.default != "":
        refuse("a list in a condition has no default, and Kyverno fails where it is missing")
    # Kyverno compares the empty text in place of a missing list.
    if operator in ("AnyNotIn", "AllIn") or any(not str(each).strip("*") for each in values):
        refuse(f"{operator} takes the default '' of a list for an item")
    return expression


def _equal(key: Queried, value: Any) -> str:
    text = key.text
    if isinstance(value, bool):
        return f"{text} == {literal(value)}"
    if not isinstance(value, str):
        if key.code not in NUMBERS:
            refuse(f"the number {value!r} is compared with text")
        return f"{text} == {literal(value)}"
    if amount(value) is not None or DURATION.fullmatch(value):
        refuse(f"the value {value!r} can mean text, a quantity or a duration")
    if "*" not in value and "?" not in value:
        return f"{text} == {literal(value)}"
    # Kyverno compares text that is a quantity only with quantities.
    return every([f"type({text}) == string", f"!isQuantity({text})", glob(text, value)])


def _not_equal(key: Queried, value: Any) -> str:
    different = negate(_equal(key, value))
    if not value or not isinstance(value, str) or key.code in (*NUMBERS, ":boolean"):
        return different
    # Kyverno takes no quantity for different from a text.
    return every([different, f"!isQuantity({key.text})"])
