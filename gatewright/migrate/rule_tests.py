"""Convert the tests of a Kyverno rule to one CEL expression: pattern, deny or foreach."""

from collections.abc import Mapping
from typing import Any

from config.schemas import METADATA, parse_type
from gatewright.migrate.celtext import every, negated, some
from gatewright.migrate.conditions import Conditions
from gatewright.migrate.paths import QueryPaths
from gatewright.migrate.patterns import field_type, pattern_to_cel
from gatewright.migrate.results import refuse
from gatewright.migrate.selection import RuleScope

# Types of fields that all kinds have.
OF_ALL = {"spec": "", "metadata": METADATA, "apiVersion": ":string", "kind": ":string"}


class RuleTests:
    """The tests of a rule: its preconditions, and its expression."""

    def __init__(self, rule: Mapping[str, Any], selection: RuleScope) -> None:
        """Take a rule and its scope."""
        operations = [each for clause in selection.match["any"]
                      for each in clause.get("operations") or ("CREATE", "UPDATE")]  # fmt: skip
        self._operations = list(dict.fromkeys(operations))
        pod = "variables.pod" if selection.is_generated else "object"
        roots = {"request.object": "object", "request.oldObject": "oldObject"}
        roots |= {f"request.object.{each}": f"object.{each}" for each in OF_ALL}
        roots |= {f"request.object.{each}": f"{pod}.{each}" for each in ("spec", "metadata")}
        if selection.is_generated:
            roots |= {f"request.oldObject.{each}": "" for each in ("spec", "metadata")}
        self._pod, self._code = pod, selection.code
        codes = {"request.object": self._code, "request.oldObject": self._code}
        for each, default in OF_ALL.items():
            codes[f"request.object.{each}"] = field_type(self._code, each) or default
        self._paths = QueryPaths(roots, codes)
        self._conditions = Conditions(self._operations, self._paths)
        block = rule.get("preconditions")
        self.preconditions = [self._conditions.hold(block)] if block else []

    def expression(self, validate: Mapping[str, Any]) -> str:
        """Return the condition that must hold."""
        if "pattern" in validate:
            return pattern_to_cel(validate["pattern"], self._pod, self._code)
        if "anyPattern" in validate:
            return some(
                pattern_to_cel(each, self._pod, self._code) for each in validate["anyPattern"]
            )
        if "deny" in validate:
            return self._deny(validate["deny"])
        if "foreach" in validate:
            return every(map(self._each, validate["foreach"]))
        checks = ", ".join(sorted(validate.keys() - {"message"}))
        return refuse(f"the rule has {checks or 'no check'}")

    def _deny(self, deny: Mapping[str, Any]) -> str:
        if not deny.get("conditions"):
            return "false"
        return negated(self._conditions.hold(deny["conditions"]))

    def _each(self, one: Mapping[str, Any]) -> str:
        if one.get("context") or one.get("foreach") or one.get("elementScope") is False:
            refuse("its foreach has a context, or another foreach")
        listed = self._paths.query(one["list"])
        if not listed.is_list:
            refuse(f"the type of {one['list']} is not known: it may be no list")
        code = parse_type(listed.code).inner
        inner = Conditions(self._operations, self._paths.below("element", code))
        if "pattern" in one:
            text = pattern_to_cel(one["pattern"], "element", code)
        elif "anyPattern" in one:
            text = some(pattern_to_cel(each, "element", code) for each in one["anyPattern"])
        elif "deny" in one:
            text = negated(inner.hold(one["deny"].get("conditions") or []))
        else:
            refuse("its foreach has no check")
        if one.get("preconditions"):
            text = some([negated(inner.hold(one["preconditions"])), text])
        return f"{listed.text}.all(element, {text})"
