"""Adapt CEL rules of other tools; rules about pods are made to judge pod templates, too."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from gatewright.tools.migrate.conditions import VARIABLE
from gatewright.tools.migrate.results import refuse, refuse_large
from webhook.cel.lexer import tokens

# The pod, or the pod template, by kind; other kinds have it in `spec`.
PODS = {"Pod": "object", "CronJob": "object.spec.jobTemplate.spec.template"}
TEMPLATE = "object.spec.template"
USED = re.compile(r"(?<![\w.])variables\.(\w+)\b")
CONDITION_NAME = re.compile(r"([A-Za-z0-9.-]+/)?[A-Za-z0-9]([\w.-]{0,61}[A-Za-z0-9])?")
OF_POD = re.compile(r"(?<![\w.])(object|oldObject)\.(spec|metadata)\b(?!\.namespace\b)")


def of_pod(expression: str) -> str:
    """Convert an expression about pods to one for all kinds with a pod template.

    Raises CompileError for invalid text.
    """
    literals = [range(e.at, e.at + len(e.text)) for e in tokens(expression) if e.sort == "literal"]

    def pod_path(match: re.Match[str]) -> str:
        if any(match.start() in each for each in literals):
            return match[0]
        if match[1] == "oldObject":
            refuse("it reads the old pod template")
        return f"variables.pod.{match[2]}"

    return OF_POD.sub(pod_path, expression)


def with_variables(written: dict[str, Any], kinds: Iterable[str]) -> None:
    """Add the variable `pod` to rules about objects of these kinds, if they use it.

    Match conditions cannot read variables, and get the expressions of those that they name.
    """
    variables = list(written.get("variables", ()))
    pod = {"name": "pod", "expression": _pod_of(set(kinds))}
    of_name: dict[str, str] = {}
    for variable in (pod, *variables):
        of_name[variable["name"]] = _inline(variable["expression"], of_name)
    for condition in written.get("matchConditions", ()):
        condition["expression"] = _inline(condition["expression"], of_name)
    is_own = any(variable["name"] == "pod" for variable in variables)
    if "variables.pod." in str(written) and not is_own:
        written["variables"] = [pod, *variables]


def _pod_of(kinds: set[str]) -> str:
    """Return the pod, or the pod template, of an object; no kind lacks the fields that it reads."""
    paths = {kind: path for kind, path in PODS.items() if kind in kinds}
    last = TEMPLATE if kinds - PODS.keys() or not paths else paths.popitem()[1]
    return "".join(f"object.kind == '{kind}' ? {path} : " for kind, path in paths.items()) + last


def _inline(expression: str, of_name: Mapping[str, str]) -> str:
    """Return an expression with the expressions of variables in place of their names."""
    literals = [range(e.at, e.at + len(e.text)) for e in tokens(expression) if e.sort == "literal"]

    def expression_of(match: re.Match[str]) -> str:
        if any(match.start() in each for each in literals) or match[1] not in of_name:
            return match[0]
        return f"({of_name[match[1]]})"

    inlined = USED.sub(expression_of, expression)
    refuse_large({"expression": inlined})
    return inlined


def cel_rules(source: Mapping[str, Any], of_pods: bool = False) -> dict[str, Any]:
    """Return the validations, variables and match conditions of a policy that is written in CEL."""
    convert = of_pod if of_pods else str
    conditions = _name(source.get("matchConditions") or (), convert)
    for at, condition in enumerate(conditions, 1):
        if not CONDITION_NAME.fullmatch(condition["name"]):
            condition["name"] = f"condition-{at}"
    rules = {
        "validations": [validation(each, convert) for each in source["validations"]],
        "variables": _name(source.get("variables") or (), convert),
        "matchConditions": conditions,
    }
    return {key: each for key, each in rules.items() if each}


def validation(each: Mapping[str, Any], convert: Callable[[str], str] = str) -> dict[str, Any]:
    """Return a validation, with `…` for each variable in its message."""
    written = {"expression": convert(each["expression"])}
    if message := " ".join(VARIABLE.sub("…", each.get("message") or "").split()):
        written["message"] = message
    if each.get("messageExpression"):
        written["messageExpression"] = convert(each["messageExpression"])
    return written


def _name(rules: Iterable[Any], convert: Callable[[str], str]) -> list[dict[str, str]]:
    return [{"name": e["name"], "expression": convert(e["expression"])} for e in rules]
