"""Adapt CEL rules of other tools; rules about pods are made to judge pod templates, too."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from gatewright.migrate.conditions import VARIABLE
from gatewright.migrate.results import refuse

POD_OF = (
    "object.kind == 'Pod' ? object : object.kind == 'CronJob' ? "
    "object.spec.jobTemplate.spec.template : object.spec.template"
)
OF_POD = re.compile(r"(?<![\w.])(object|oldObject)\.(spec|metadata)\b(?!\.namespace\b)")

# A function that converts an expression.
ConvertExpression = Callable[[str], str]


def of_pod(expression: str) -> str:
    """Convert an expression about pods to one for all kinds with a pod template."""
    return OF_POD.sub(_pod_path, expression)


def _pod_path(found: re.Match[str]) -> str:
    if found[1] == "oldObject":
        refuse("it compares the old pod template")
    return f"variables.pod.{found[2]}"


def with_pod_variable(written: dict[str, Any]) -> None:
    """Add the variable `pod` to rules that use it."""
    if "variables.pod." in str(written):
        pod = {"name": "pod", "expression": POD_OF}
        written["variables"] = [pod, *written.get("variables", ())]


def message_of(text: str) -> str:
    """Return a message on one line, with variables replaced by `…`."""
    return " ".join(VARIABLE.sub("…", text).split())


def validation(each: Mapping[str, Any], converted: ConvertExpression) -> dict[str, Any]:
    """Return a validation with converted expressions."""
    found = {"expression": converted(each["expression"])}
    if message := message_of(each.get("message") or ""):
        found["message"] = message
    if each.get("messageExpression"):
        found["messageExpression"] = converted(each["messageExpression"])
    return found


def variables(rules: Mapping[str, Any], converted: ConvertExpression) -> dict[str, Any]:
    """Return the variables of rules, if they have any."""
    found = [
        {"name": each["name"], "expression": converted(each["expression"])}
        for each in rules.get("variables") or ()
    ]
    return {"variables": found} if found else {}
