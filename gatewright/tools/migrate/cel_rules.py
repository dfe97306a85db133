"""Adapt CEL rules of other tools; rules about pods are made to judge pod templates, too."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from gatewright.tools.migrate.conditions import VARIABLE
from gatewright.tools.migrate.results import refuse
from webhook.cel.lexer import tokens

POD_OF = (
    "object.kind == 'Pod' ? object : object.kind == 'CronJob' ? "
    "object.spec.jobTemplate.spec.template : object.spec.template"
)
OF_POD = re.compile(r"(?<![\w.])(object|oldObject)\.(spec|metadata)\b(?!\.namespace\b)")


def of_pod(expression: str) -> str:
    """Convert an expression about pods to one for all kinds with a pod template.

    Raises CompileError for invalid text.
    """
    literals = [range(e.at, e.at + len(e.text)) for e in tokens(expression) if e.sort == "literal"]

    def pod_path(found: re.Match[str]) -> str:
        if any(found.start() in each for each in literals):
            return found[0]
        if found[1] == "oldObject":
            refuse("it reads the old pod template")
        return f"variables.pod.{found[2]}"

    return OF_POD.sub(pod_path, expression)


def with_pod_variable(written: dict[str, Any]) -> None:
    """Add the variable `pod` to rules that use it."""
    if "variables.pod." in str(written):
        pod = {"name": "pod", "expression": POD_OF}
        written["variables"] = [pod, *written.get("variables", ())]


def cel_rules(source: Mapping[str, Any], of_pods: bool = False) -> dict[str, Any]:
    """Return the validations, variables and match conditions of a policy that is written in CEL."""
    convert = of_pod if of_pods else str
    rules = {
        "validations": [validation(each, convert) for each in source["validations"]],
        "variables": _name(source.get("variables") or (), convert),
        "matchConditions": _name(source.get("matchConditions") or (), convert),
    }
    return {key: each for key, each in rules.items() if each}


def validation(each: Mapping[str, Any], convert: Callable[[str], str] = str) -> dict[str, Any]:
    """Return a validation, with `…` for each variable in its message."""
    found = {"expression": convert(each["expression"])}
    if message := " ".join(VARIABLE.sub("…", each.get("message") or "").split()):
        found["message"] = message
    if each.get("messageExpression"):
        found["messageExpression"] = convert(each["messageExpression"])
    return found


def _name(rules: Iterable[Any], convert: Callable[[str], str]) -> list[dict[str, str]]:
    return [{"name": e["name"], "expression": convert(e["expression"])} for e in rules]
