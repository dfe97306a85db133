"""Convert Kyverno's conditions (preconditions, deny) to CEL."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from gatewright.migrate.celtext import every, glob, literal, negated, some
from gatewright.migrate.paths import Names, Queried, query
from gatewright.migrate.results import refuse

VARIABLE = re.compile(r"\{\{\s*(.*?)\s*\}\}", re.DOTALL)
ORDERS = {
    "GreaterThan": ">",
    "GreaterThanOrEquals": ">=",
    "LessThan": "<",
    "LessThanOrEquals": "<=",
}
OPERATION = "request.operation"
EQUAL, NOT_EQUAL = ("Equals", "Equal"), ("NotEquals", "NotEqual")
MEMBERSHIP = ("AnyIn", "AllIn", "AnyNotIn", "AllNotIn")


class Conditions:
    """Converts the conditions of one rule."""

    def __init__(self, operations: Sequence[str], names: Names) -> None:
        """Take the operations of the rule, and its variables."""
        self._operations = operations
        self._names = names

    def hold(self, block: Any) -> str:
        """Return the test that conditions hold: any, all, or a list of these."""
        if isinstance(block, list):
            return every(map(self._one if block and "key" in block[0] else self.hold, block))
        parts = [*map(self._one, block.get("all") or ())]
        if block.get("any"):
            parts.append(some(map(self._one, block["any"])))
        return every(parts)

    def _one(self, condition: Mapping[str, Any]) -> str:
        key, operator, value = (condition.get(each) for each in ("key", "operator", "value"))
        found = VARIABLE.fullmatch(key.strip()) if isinstance(key, str) else None
        if found is None:
            refuse(f"the key of a condition is {key!r}, not exactly one variable")
        if "{{" in str(value):
            refuse(f"the value of a condition contains a variable: {value!r}")
        if found[1].split("|")[0].strip() == OPERATION:
            return self._operation(str(operator), value)
        return _test(query(found[1], self._names), str(operator), value)

    def _operation(self, operator: str, value: Any) -> str:
        """Evaluate a condition on the operation, if the rule's operations decide it."""
        values = [str(each) for each in (value if isinstance(value, list) else [value])]
        if operator not in (*EQUAL, *NOT_EQUAL, *MEMBERSHIP, "In", "NotIn"):
            refuse(f"the operator {operator} on {OPERATION} is not converted")
        matching = [e for e in self._operations if (e in values) != ("Not" in operator)]
        if len(matching) == len(self._operations):
            return "true"
        return f"{OPERATION} in {literal(matching)}" if matching else "false"


def _test(key: Queried, operator: str, value: Any) -> str:
    text = key.text
    if not key.code and text.startswith(("object.", "oldObject.", "element.")):
        refuse(f"the type of {text} is unknown: it may be a list")
    if operator in MEMBERSHIP:
        return _member(key, operator, value)
    if key.is_list or isinstance(value, list | dict):
        refuse(f"the operator {operator} on lists is not converted")
    if operator in ORDERS:
        if not isinstance(value, int | float) or isinstance(value, bool):
            refuse(f"the operator {operator} with {value!r}: only plain numbers are converted")
        return f"{text} {ORDERS[operator]} {literal(value)}"
    if operator in EQUAL:
        return _equal(text, value)
    if operator in NOT_EQUAL:
        return negated(_equal(text, value))
    return refuse(f"the operator {operator} is not converted")


def _member(key: Queried, operator: str, value: Any) -> str:
    values = value if isinstance(value, list) else [value]
    if any(isinstance(each, dict | list) for each in values):
        refuse(f"the value of a condition contains a list or an object: {value!r}")
    if not isinstance(value, list) and ("-" in str(value) or str(value).startswith("[")):
        refuse(f"the value {value!r} can mean text, a range or a list")
    one = "item" if key.is_list else key.text
    test = some(_equal(one, each) for each in values)
    test = negated(test) if operator.endswith("NotIn") else test
    return _of_items(key, operator, values, test) if key.is_list else test


def _of_items(key: Queried, operator: str, values: Sequence[Any], test: str) -> str:
    """Return the test that one or all items pass; a missing list can count as empty text."""
    found = f"{key.text}.{'exists' if operator.startswith('Any') else 'all'}(item, {test})"
    if key.default == []:
        return found
    if key.default != "":
        refuse("a list in a condition has no default, and Kyverno fails where it is missing")
    # Kyverno compares the empty text in place of a missing list.
    if operator in ("AnyNotIn", "AllIn") or any(not str(each).strip("*") for each in values):
        refuse(f"{operator} takes the default '' of a list for an item")
    return found


def _equal(text: str, value: Any) -> str:
    if isinstance(value, bool):
        return f"{text} == {literal(value)}"
    if not isinstance(value, str):
        return some([f"{text} == {literal(value)}", f"{text} == {literal(str(value))}"])
    if re.fullmatch(r"[-+.\d]+[A-Za-z]*", value):
        refuse(f"the value {value!r} can mean text, a quantity or a duration")
    if "*" in value or "?" in value:
        return every([f"type({text}) == string", glob(text, value)])
    return f"{text} == {literal(value)}"
