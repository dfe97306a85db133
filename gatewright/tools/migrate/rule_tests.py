"""Convert the tests of a Kyverno rule to one CEL expression: pattern, deny or foreach."""

from collections.abc import Mapping, Sequence
from typing import Any

from config.schemas import METADATA, parse_type
from gatewright.tools.cel_text import every, negate, some
from gatewright.tools.migrate.conditions import Conditions
from gatewright.tools.migrate.paths import MISSING, Names, Queried, query
from gatewright.tools.migrate.patterns import field_type, patterns_to_cel
from gatewright.tools.migrate.results import refuse
from gatewright.tools.migrate.selection import RuleScope

# Types of fields that all kinds have.
OF_ALL = {"spec": "", "metadata": METADATA, "apiVersion": ":string", "kind": ":string"}


class RuleTests:
    """The tests of a rule: its preconditions, and its expression."""

    def __init__(self, rule: Mapping[str, Any], scope: RuleScope) -> None:
        """Take a rule and its scope."""
        operations = [
            operation
            for clause in scope.match["any"]
            for operation in clause.get("operations") or ("CREATE", "UPDATE")
        ]
        self._operations = list(dict.fromkeys(operations))
        self._names = _names(scope, self._operations)
        self._judged = Queried("variables.pod" if scope.is_generated else "object", scope.code)
        block = rule.get("preconditions")
        conditions = Conditions(self._operations, self._names)
        self.preconditions = [conditions.hold(block)] if block else []

    def expression(self, validate: Mapping[str, Any]) -> str:
        """Return the condition that must hold."""
        if "foreach" in validate:
            return every(map(self._each, validate["foreach"]))
        expression = _check(validate, self._judged, Conditions(self._operations, self._names))
        checks = ", ".join(sorted(validate.keys() - {"message"}))
        return expression or refuse(f"its check is not converted: {checks or 'there is none'}")

    def _each(self, one: Mapping[str, Any]) -> str:
        if one.get("context") or one.get("foreach") or one.get("elementScope") is False:
            refuse("its foreach has a context, another foreach or elementScope: false")
        listed = query(one["list"], self._names)
        if not listed.is_list:
            refuse(f"its foreach may not be about a list: {one['list']}")
        type = parse_type(listed.code)
        element = Queried("element", type.inner)
        keys = [f"element.{key}" for key in type.keys]
        inner = Conditions(self._operations, {**self._names, "element": element}, keys)
        test = _check(one, element, inner) or refuse("its foreach has no check")
        if one.get("preconditions"):
            if not inner.never_fail(one["preconditions"]):
                refuse("the preconditions of its foreach read a field that may be missing")
            test = some([negate(inner.hold(one["preconditions"])), test])
        return f"{listed.text}.all(element, {test})"


def _names(scope: RuleScope, operations: Sequence[str]) -> Names:
    """Return the variables that a rule can read, by name, the longest name last.

    The default of one that some of its requests do not have is None.
    """
    code = scope.code
    names = {
        "request": Queried("request"),
        "request.object": Queried("object", code, None if "DELETE" in operations else MISSING),
        "request.oldObject": Queried(
            "oldObject", code, None if "CREATE" in operations else MISSING
        ),
    }
    for field, default in OF_ALL.items():
        is_of_pod = scope.is_generated and field in ("spec", "metadata")
        if field == "spec" and not is_of_pod:
            continue  # some kinds have none
        text = f"variables.pod.{field}" if is_of_pod else f"object.{field}"
        names[f"request.object.{field}"] = names["request.object"]._replace(
            text=text, code=field_type(code, field) or default
        )
        if is_of_pod:
            names[f"request.oldObject.{field}"] = Queried("")  # there is none for templates
    return names


def _check(given: Mapping[str, Any], judged: Queried, conditions: Conditions) -> str:
    """Return the condition that the check of a rule or of a foreach allows; "" if it has none."""
    patterns: Sequence[Any] = given.get("anyPattern") or ()
    if "pattern" in given:
        patterns = [given["pattern"]]
    if "pattern" in given or "anyPattern" in given:
        return patterns_to_cel(patterns, judged.text, judged.code)
    if "deny" in given:
        return negate(conditions.hold(given["deny"].get("conditions") or []))
    return ""
