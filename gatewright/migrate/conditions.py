"""Kyverno's conditions (preconditions, deny) about paths of the request, as CEL.

Of JMESPath only plain paths, with `|| literal` behind them, are known to be equal.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from gatewright.migrate.celtext import every, glob, literal, negated, optional, select, some
from config.schemas import parse_type
from gatewright.migrate.patterns import field_type
from gatewright.migrate.results import refuse

VARIABLE = re.compile(r"\{\{\s*(.*?)\s*\}\}", re.DOTALL)
STEP = re.compile(r'\.?(?:(?P<name>[A-Za-z_]\w*)|"(?P<quoted>[^"]+)"|(?P<items>\[\*?\]))')
PATH = re.compile(r"(?P<path>[^|&!()?{}']+?)(?:\s*\|\|\s*(?P<default>'[^']*'|`[^`]*`))?")
ORDERS = {"GreaterThan": ">", "GreaterThanOrEquals": ">=", "LessThan": "<", "LessThanOrEquals": "<="}
OPERATION = "request.operation"
MISSING = object()


class Queried(NamedTuple):
    """A value in CEL, its type, and what stands for it where it is missing or an empty list."""

    text: str
    code: str = ""
    default: Any = MISSING

    @property
    def is_list(self) -> bool:
        """Whether it is a list."""
        return self.code.startswith("[")


class Conditions:
    """Converts the conditions of one rule."""

    def __init__(
        self, operations: Sequence[str], roots: Mapping[str, str], codes: Mapping[str, str]
    ) -> None:
        """Take the operations of the rule, what names such as `element` stand for, and types."""
        self._operations = operations
        self._roots, self._codes = {"request": "request"} | dict(roots), codes

    def hold(self, block: Any) -> str:
        """Return that conditions hold: any, all, or a list of these."""
        if isinstance(block, list):
            if block and "key" in block[0]:
                return every(map(self._one, block))
            return every(map(self.hold, block))
        parts = []
        if block.get("all"):
            parts.append(every(map(self._one, block["all"])))
        if block.get("any"):
            parts.append(some(map(self._one, block["any"])))
        return every(parts)

    def query(self, text: str) -> Queried:
        """Return a JMESPath expression as CEL."""
        found = PATH.fullmatch(text.strip())
        if found is None:
            refuse(f"the expression {text} is not a plain path")
        default: Any = MISSING
        if found["default"]:
            raw = found["default"]
            default = raw[1:-1] if raw[0] == "'" else json.loads(raw[1:-1])
        return self._path(found["path"].strip(), default)

    def _path(self, path: str, default: Any) -> Queried:
        steps, at = list[str](), 0
        while at < len(path):
            step = STEP.match(path, at)
            if step is None:
                refuse(f"the path {path} is not plain")
            steps.append(step["name"] or step["quoted"] or "[]")
            at = step.end()
        if path == OPERATION:
            return Queried(OPERATION)
        *_, root = [each for each in self._roots if f"{path}.".startswith(f"{each}.")] or [""]
        if not root:
            refuse(f"the variable {path} is not part of the request")
        text, rest = self._roots[root], steps[root.count(".") + 1 :]
        if not text:
            refuse(f"the variable {path} is about the old pod template")
        code = self._type(self._codes.get(root, ""), rest)
        if "[]" in rest:
            code = code if code.startswith("[") else f"[{code}"
            return Queried(self._items(text, rest), code, default)
        if code.startswith("[") and rest:
            return Queried(self._items(text, [*rest, "[]"]), code, default)
        if default is MISSING or not rest:
            for each in rest:
                text = select(text, each)
            return Queried(text, code)
        for each in rest:
            text = optional(text, each)
        return Queried(f"{text}.orValue({literal(default)})", code)

    @staticmethod
    def _type(code: str, steps: Sequence[str]) -> str:
        for each in steps:
            code = parse_type(code).inner if each == "[]" and code else field_type(code, each)
        return code

    def _items(self, text: str, steps: list[str]) -> str:
        """Return the items below projections; what is missing is left out."""
        at = steps.index("[]")
        for each in steps[:at]:
            text = optional(text, each)
        text = f"{text}.orValue([])" if at else text
        rest = steps[at + 1 :]
        if not rest:
            return text
        if "[]" in rest:
            return f"{text}.map(each, {self._items('each', rest)}).flatten()"
        inner = "each"
        for each in rest:
            inner = optional(inner, each)
        there = f"{inner}.hasValue()"
        return f"{text}.filter(each, {there}).map(each, {inner}.value())"

    def _one(self, condition: Mapping[str, Any]) -> str:
        key, operator, value = (condition.get(each) for each in ("key", "operator", "value"))
        found = VARIABLE.fullmatch(key.strip()) if isinstance(key, str) else None
        if found is None:
            refuse(f"the key of a condition is {key!r}, not one variable")
        if "{{" in str(value):
            refuse(f"the value of a condition has a variable: {value!r}")
        if found[1].split("|")[0].strip() == OPERATION:
            return self._operation(str(operator), value)
        return _test(self.query(found[1]), str(operator), value)

    def _operation(self, operator: str, value: Any) -> str:
        """Fold what is known: the operations that the rule matches."""
        values = [str(each) for each in (value if isinstance(value, list) else [value])]
        if operator not in ("Equals", "NotEquals", "In", "AnyIn", "AllIn", "NotIn", "AnyNotIn",
                            "AllNotIn"):  # fmt: skip
            refuse(f"the operator {operator} about {OPERATION}")
        wanted = [e for e in self._operations if (e in values) != ("Not" in operator)]
        if len(wanted) == len(self._operations):
            return "true"
        return f"{OPERATION} in {literal(wanted)}" if wanted else "false"


def _test(key: Queried, operator: str, value: Any) -> str:
    text, is_list = key.text, key.is_list
    if not is_list and not key.code and text.startswith(("object.", "oldObject.", "element.")):
        refuse(f"the type of {text} is not known: it may be a list")
    if operator in ORDERS:
        if is_list or not isinstance(value, int | float) or isinstance(value, bool):
            refuse(f"{operator} compares what may be no number")
        return f"{text} {ORDERS[operator]} {literal(value)}"
    values = value if isinstance(value, list) else [value]
    if any(isinstance(each, dict | list) for each in values):
        refuse(f"the value of a condition is {value!r}")
    if operator in ("Equals", "NotEquals", "Equal", "NotEqual"):
        if is_list or isinstance(value, list):
            refuse(f"{operator} compares lists")
        return negated(_equal(text, value)) if operator.startswith("Not") else _equal(text, value)
    is_in: Callable[[str], str] = lambda one: some(_equal(one, each) for each in values)  # noqa: E731
    sort, is_not = operator[:3], operator.endswith("NotIn")
    if operator in ("In", "NotIn") or not operator.endswith("In"):
        refuse(f"the operator {operator} is not converted")
    if not isinstance(value, list) and ("-" in str(value) or str(value).startswith("[")):
        refuse(f"{value!r} may be a range or a list")
    if not is_list:
        return negated(is_in(text)) if is_not else is_in(text)
    if key.default == "":
        if any(not str(each).strip("*") for each in values):
            refuse("it compares with what matches nothing")
    elif key.default != []:
        refuse(f"{text} has no default, so Kyverno fails where it is missing")
    macro = "exists" if sort == "Any" else "all"
    inner = negated(is_in("item")) if is_not else is_in("item")
    found = f"{text}.{macro}(item, {inner})"
    if key.default == "" and operator == "AnyNotIn":
        return some([f"{text}.size() == 0", found])
    if key.default == "" and operator == "AllIn":
        return every([f"{text}.size() > 0", found])
    return found


def _equal(text: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str):
        if isinstance(value, bool):
            return f"{text} == {literal(value)}"
        return some([f"{text} == {literal(value)}", f"{text} == {literal(str(value))}"])
    if re.fullmatch(r"[-+.\d]+[A-Za-z]*", value):
        refuse(f"{value!r} may be text, a quantity or a duration")
    if "*" in value or "?" in value:
        return every([f"type({text}) == string", glob(text, value)])
    return f"{text} == {literal(value)}"
