"""Rules in CEL about pods, pod templates and their containers."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from gatewright.tools.cel_text import literal, negate, parenthesise, some

# `dyn`, since the API server checks the expressions for each kind, and the kinds' fields differ.
ANY_OBJECT = "dyn(object)"
TEMPLATE = (
    f"object.kind == 'Pod' ? {ANY_OBJECT} : object.kind == 'CronJob' ? "
    f"{ANY_OBJECT}.?spec.?jobTemplate.?spec.?template.orValue({{}}) : "
    f"object.kind == 'PodTemplate' ? {ANY_OBJECT}.?template.orValue({{}}) : "
    f"{ANY_OBJECT}.?spec.?template.orValue({{}})"
)
# The variables that rules read; each may read those before it.
VARIABLES = {
    "template": TEMPLATE,
    "pod": "variables.template.?spec.orValue({})",
    "annotations": "variables.template.?metadata.?annotations.orValue({})",
    "running": "variables.pod.?containers.orValue([]) + variables.pod.?initContainers.orValue([])",
    "containers": "variables.running + variables.pod.?ephemeralContainers.orValue([])",
    "images": "variables.containers.filter(container, container.?image.orValue('') != '')"
    ".map(container, container.image) + variables.pod.?volumes.orValue([])"
    ".filter(volume, volume.?image.?reference.orValue('') != '')"
    ".map(volume, volume.image.reference)",
    "account": "variables.pod.?serviceAccountName.orValue('') != '' ? "
    "variables.pod.serviceAccountName : variables.pod.?serviceAccount.orValue('') != '' ? "
    "variables.pod.serviceAccount : 'default'",
    "contexts": "([variables.pod] + variables.containers)"
    ".filter(holder, has(holder.securityContext))",
}


@dataclass(frozen=True, slots=True)
class CelRule:
    """A validation: an expression, its message, and an expression for a message with more."""

    expression: str
    message: str
    message_expression: str = ""

    @property
    def validation(self) -> dict[str, str]:
        """The rule as a validation of a ValidatingAdmissionPolicy."""
        rule = {"expression": self.expression, "message": self.message}
        if self.message_expression:
            rule["messageExpression"] = self.message_expression
        return rule


def of_pod(test: str, message: str) -> CelRule:
    """Return a rule about the spec of a pod, or about what all its records share."""
    return CelRule(test, message)


def of_containers(test: str, message: str, *, ephemeral: bool = True) -> CelRule:
    """Return a rule that each container passes; the message names those that do not."""
    containers = "variables.containers" if ephemeral else "variables.running"
    bad = f"{containers}.filter(container, {negate(test)})"
    names = f"{bad}.map(container, container.name).join(', ')"
    return CelRule(
        f"{containers}.all(container, {test})",
        message,
        f"'containers ' + {names} + {literal(f': {message}')}",
    )


def of_contexts(test: str, message: str) -> CelRule:
    """Return a rule that each security context passes: `holder.securityContext`.

    The message names the pod or the containers.
    """
    bad = f"variables.contexts.filter(holder, {negate(test)})"
    names = f"{bad}.map(holder, has(holder.name) ? holder.name : 'the pod').join(', ')"
    return CelRule(
        f"variables.contexts.all(holder, {test})",
        message,
        f"{names} + {literal(f': {message}')}",
    )


def within(value: str, ranges: Iterable[Any]) -> str:
    """Return the test that a number is in one of several ranges."""
    return some(f"({value} >= {each.minimum} && {value} <= {each.maximum})" for each in ranges)


def unless(condition: str, rules: list[CelRule]) -> list[CelRule]:
    """Return rules that pass where a condition holds."""
    return [
        replace(rule, expression=f"{condition} || {parenthesise(rule.expression)}")
        for rule in rules
    ]


def on_windows(rules: list[CelRule]) -> list[CelRule]:
    """Return rules that do not judge pods of Windows."""
    return unless("variables.pod.?os.?name.orValue('') == 'windows'", rules)


def in_user_namespaces(rules: list[CelRule]) -> list[CelRule]:
    """Return rules that do not judge pods in a user namespace."""
    return unless("!variables.pod.?hostUsers.orValue(true)", rules)


def used_variables(rules: list[CelRule]) -> list[dict[str, str]]:
    """Return the variables that rules read, with those that these read."""
    text, used = str(rules), list[str]()
    for name in reversed(VARIABLES):
        if f"variables.{name}" in text:
            used.insert(0, name)
            text += VARIABLES[name]
    return [{"name": name, "expression": VARIABLES[name]} for name in used]
