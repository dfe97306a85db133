"""Convert plain JMESPath of Kyverno's variables to CEL: paths, projections, `|| literal`."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from config.schemas import parse_type
from gatewright.migrate.celtext import literal, optional, select
from gatewright.migrate.patterns import field_type
from gatewright.migrate.results import refuse

STEP = re.compile(
    r'\.?(?:(?P<name>[A-Za-z_]\w*)|"(?P<quoted>[^"]+)"|(?P<items>\[\*?\])|'
    r"(?P<several>\[\w+(?:, *\w+)+\])\[\])"
)
PATH = re.compile(r"(?P<path>[^|&!()?{}']+?)(?:\s*\|\|\s*(?P<default>'[^']*'|`[^`]*`))?")
OPERATION = "request.operation"
MISSING = object()


class Queried(NamedTuple):
    """A value in CEL, its type, and the default for a missing value or an empty list."""

    text: str
    code: str = ""
    default: Any = MISSING

    @property
    def is_list(self) -> bool:
        """Whether it is a list."""
        return self.code.startswith("[")


class QueryPaths:
    """Converts the paths of one rule."""

    def __init__(self, roots: Mapping[str, str], codes: Mapping[str, str]) -> None:
        """Take the CEL and the types of names such as `element`."""
        self._roots, self._codes = {"request": "request"} | dict(roots), codes

    def below(self, name: str, code: str) -> "QueryPaths":
        """Return a converter with one more name."""
        return QueryPaths({**self._roots, name: name}, {**self._codes, name: code})

    def query(self, text: str) -> Queried:
        """Convert a JMESPath expression to CEL."""
        found = PATH.fullmatch(text.strip())
        if found is None:
            refuse(f"the expression {text} is not a plain path")
        default: Any = MISSING
        if found["default"]:
            raw = found["default"]
            default = raw[1:-1] if raw[0] == "'" else json.loads(raw[1:-1])
        return self._path(found["path"].strip(), default)

    def _path(self, path: str, default: Any) -> Queried:
        steps = _steps(path)
        if path == OPERATION:
            return Queried(OPERATION)
        *_, root = [each for each in self._roots if f"{path}.".startswith(f"{each}.")] or [""]
        if not root:
            refuse(f"the variable {path} is not part of the request")
        text, rest = self._roots[root], steps[root.count(".") + 1 :]
        if not text:
            refuse(f"the variable {path} is about the old pod template")
        code = self._type(self._codes.get(root, ""), rest)
        if code.startswith("[") or any(each.startswith("[") for each in rest):
            items = rest if not rest or any(e.startswith("[") for e in rest) else [*rest, "[]"]
            code = code if code.startswith("[") else f"[{code}"
            return Queried(self._lists(text, items), code, default)
        if default is MISSING or not rest:
            for each in rest:
                text = select(text, each)
            return Queried(text, code)
        for each in rest:
            text = optional(text, each)
        return Queried(f"{text}.orValue({literal(default)})", code)

    def _lists(self, text: str, steps: list[str]) -> str:
        """Return the items of a path; `[a, b][]` joins the items of several lists."""
        at = next((at for at, e in enumerate(steps) if e.startswith("[") and e != "[]"), None)
        if at is None:
            return self._items(text, steps) if steps else text
        named = steps[at][1:-1].replace(" ", "").split(",")
        lists = [self._items(text, [*steps[:at], e, "[]", *steps[at + 1 :]]) for e in named]
        return f"({' + '.join(lists)})"

    @staticmethod
    def _type(code: str, steps: Sequence[str]) -> str:
        for each in steps:
            if each == "[]":
                code = parse_type(code).inner if code else ""
            elif each.startswith("["):
                code = parse_type(field_type(code, each[1:-1].split(",")[0])).inner
            else:
                code = field_type(code, each)
        return code

    def _items(self, text: str, steps: list[str]) -> str:
        """Return the items below projections, without missing ones."""
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


def _steps(path: str) -> list[str]:
    steps, at = list[str](), 0
    while at < len(path):
        step = STEP.match(path, at)
        if step is None:
            refuse(f"the path {path} is not plain")
        steps.append(step["name"] or step["quoted"] or step["several"] or "[]")
        at = step.end()
    return steps
