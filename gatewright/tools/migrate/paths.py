"""Convert plain JMESPath of Kyverno's variables to CEL: paths, projections, `|| literal`."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from config.schemas import parse_type
from gatewright.tools.cel_text import literal, optional, select
from gatewright.tools.migrate.patterns import field_type
from gatewright.tools.migrate.results import refuse

STEP = re.compile(
    r'\.?(?:(?P<name>[A-Za-z_]\w*)|"(?P<quoted>[^"]+)"|(?P<items>\[\*?\])|'
    r"(?P<several>\[\w+(?:, *\w+)+\])\[\])"
)
PATH = re.compile(r"(?P<path>[^|&!()?{}']+?)(?:\s*\|\|\s*(?P<default>'[^']*'|`[^`]*`))?")
ITEMS = "[]"
MISSING = object()
FALSY = {":string": "", ":boolean": False}


class Queried(NamedTuple):
    """A value in CEL, its type, and the default for a missing value or an empty list."""

    text: str
    code: str = ""
    default: Any = MISSING

    @property
    def is_list(self) -> bool:
        """Whether it is a list."""
        return self.code.startswith("[")


# Variables by name: of two that begin a path, the later one counts.
Names = Mapping[str, Queried]


def query(text: str, names: Names) -> Queried:
    """Convert a JMESPath expression to CEL."""
    match = PATH.fullmatch(text.strip())
    if match is None:
        refuse(f"an expression is more than a path with a default: {text}")
    path, default = match["path"].strip(), MISSING
    steps = _steps(path)
    if raw := match["default"]:
        default = raw[1:-1] if raw[0] == "'" else json.loads(raw[1:-1])
    *_, name = [each for each in names if _begins(path, steps, each, names[each].text)] or [""]
    if not name:
        refuse(f"a variable is not part of the request: {path}")
    root, steps = names[name], steps[name.count(".") + 1 :]
    if not root.text:
        refuse(f"a variable reads the old pod template: {path}")
    code = _type(root.code, steps)
    projects = any(each.startswith("[") for each in steps)
    is_list = projects or code.startswith("[")
    if root.default is None and (is_list or default is not MISSING):
        if root.text != "oldObject":
            refuse(f"{path} is missing where an object is deleted, and Kyverno allows that")
        root = root._replace(text="optional.ofNonZeroValue(oldObject)")
    if projects and code.startswith("["):
        refuse(f"{path} is a list of lists; `[]` at its end would join them")
    if is_list:
        items = steps if projects or not steps else [*steps, ITEMS]
        code = code if code.startswith("[") else f"[{code}"
        return Queried(_lists(root.text, items), code, default)
    if default is MISSING or not steps:
        return Queried(_below(root.text, steps, select), code)
    return Queried(_or_default(_below(root.text, steps, optional), code, default), code, default)


def _begins(path: str, steps: list[str], name: str, text: str) -> bool:
    """Whether a path begins with a variable; `request."object"` is the variable request.object.

    But Kyverno replaces the text of what is of the pod, so that quotes keep it from the template.
    """
    first = name.split(".")
    is_quoted = steps[: len(first)] == first and not text.startswith("variables.pod")
    return f"{path}.".startswith(f"{name}.") or is_quoted


def _or_default(text: str, code: str, default: Any) -> str:
    """Return an optional value or its default, which JMESPath also takes for "" and false."""
    falsy = FALSY.get(code, default)
    if type(default) is type(falsy) and default == falsy:
        return f"{text}.orValue({literal(default)})"
    if code == ":boolean" or not isinstance(default, str):
        refuse(f"the default {default!r} also replaces empty text or false")
    return f"({text}.orValue('') == '' ? {literal(default)} : {text}.value())"


def _below(text: str, steps: Sequence[str], step: Callable[[str, str], str]) -> str:
    for part in steps:
        text = step(text, part)
    return text


def _type(code: str, steps: Sequence[str]) -> str:
    for step in steps:
        if step == ITEMS:
            code = parse_type(code).inner if code else ""
        elif step.startswith("["):
            code = parse_type(field_type(code, step[1:-1].split(",")[0])).inner
        else:
            code = field_type(code, step)
    return code


def _lists(text: str, steps: list[str]) -> str:
    """Return the items of a path; `[a, b][]` joins the items of several lists."""
    at = next((at for at, e in enumerate(steps) if e.startswith("[") and e != ITEMS), None)
    if at is None:
        return _items(text, steps) if steps else text
    named = steps[at][1:-1].replace(" ", "").split(",")
    lists = [_items(text, [*steps[:at], e, ITEMS, *steps[at + 1 :]]) for e in named]
    return f"({' + '.join(lists)})"


def _items(text: str, steps: list[str]) -> str:
    """Return the items below projections, without missing ones."""
    at = steps.index(ITEMS)
    if at:
        text = f"{_below(text, steps[:at], optional)}.orValue([])"
    rest = steps[at + 1 :]
    if not rest:
        return text
    if ITEMS in rest:
        return f"{text}.map(each, {_items('each', rest)}).flatten()"
    inner = _below("each", rest, optional)
    return f"{text}.filter(each, {inner}.hasValue()).map(each, {inner}.value())"


def _steps(path: str) -> list[str]:
    steps, at = list[str](), 0
    while at < len(path):
        step = STEP.match(path, at)
        if step is None:
            refuse(f"a path has more than fields and projections: {path}")
        if step["items"] == "[*]" and ITEMS in steps:
            refuse(f"{path} is a list of lists; `[]` in place of `[*]` would join them")
        steps.append(step["name"] or step["quoted"] or step["several"] or ITEMS)
        at = step.end()
    return steps
