"""Kyverno's ClusterPolicy and Policy: each rule becomes a policy object."""

import re
from collections.abc import Mapping
from typing import Any

from gatewright.migrate.celtext import every, negated, some
from gatewright.migrate.conditions import Conditions, VARIABLE
from gatewright.migrate.kinds import KindNames
from gatewright.migrate.known import known_rule
from config.schemas import parse_type
from gatewright.migrate.patterns import field_type, pattern_to_cel
from gatewright.migrate.results import Converted, ConvertedPolicy, NotEqualError, Origin, Unconverted
from gatewright.migrate.results import refuse
from gatewright.migrate.selection import Selection, pod_controllers

POD_OF = (
    "object.kind == 'Pod' ? object : object.kind == 'CronJob' ? "
    "object.spec.jobTemplate.spec.template : object.spec.template"
)
OF_POD = re.compile(r"(?<![\w.])(object|oldObject)\.(spec|metadata)\b(?!\.namespace\b)")
SORTS = {
    "generate": "it creates objects; an admission policy of Gatewright allows, denies or mutates",
    "verifyImages": "it verifies images",
}
NEAREST = {"verifyImages": "`image-signatures`"}
MAX_NAME = 253


def convert_policy(origin: Origin, names: KindNames) -> Converted:
    """Yield a policy object for each rule, or the reason why there is none."""
    policy = origin.document.value
    rules = policy["spec"].get("rules") or []
    generated = pod_controllers(policy)
    for rule in rules:
        one = Origin(origin.document, str(rule.get("name", "")))
        try:
            converted = _rule(one, policy, rule, names, generated)
        except NotEqualError as error:
            yield Unconverted(one, str(error), error.nearest)
            continue
        name = policy["metadata"]["name"]
        suffix = f"-{slug(one.rule)}" if len(rules) > 1 else ""
        converted.name = f"{name}{suffix}"[:MAX_NAME]
        if policy["kind"] == "Policy":
            converted.kind = "AdmissionPolicy"
            converted.namespace = policy["metadata"].get("namespace") or "default"
        yield converted


def slug(text: str) -> str:
    """Return a text as part of an object's name."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def actions_of(spec: Mapping[str, Any], validate: Mapping[str, Any]) -> list[str]:
    """Return the actions of Kyverno's failure action."""
    overrides = validate.get("failureActionOverrides") or spec.get("validationFailureActionOverrides")
    if overrides:
        refuse("its failure action differs between namespaces", "one policy object for each action")
    action = validate.get("failureAction") or spec.get("validationFailureAction") or "Audit"
    found = ["Deny"] if action.lower() == "enforce" else ["Audit"]
    return [*found, "Warn"] if spec.get("emitWarning") else found


def _rule(
    origin: Origin, policy: Mapping[str, Any], rule: Mapping[str, Any], names: KindNames,
    generated: list[str],
) -> ConvertedPolicy:  # fmt: skip
    for sort, reason in SORTS.items():
        if sort in rule:
            refuse(reason, NEAREST.get(sort, ""))
    spec, validate = policy["spec"], rule.get("validate") or {}
    if "mutate" in rule:
        refuse("it mutates", "a mutation in CEL; `security-defaults`, `resource-defaults`")
    if rule.get("context") or spec.get("context"):
        refuse("it looks data up (context)")
    selection = Selection(rule, names, generated)
    written: dict[str, Any] = {}
    notes = list[str]()
    conditions = list(selection.conditions)
    if "cel" in validate:
        written |= _cel(validate["cel"], selection)
        for each in rule.get("celPreconditions") or ():
            conditions.append(_of_pod(each["expression"], selection))
    else:
        tests = _Tests(rule, selection)
        conditions += tests.preconditions
        known = known_rule(validate)
        if known and not tests.preconditions:
            written |= {"policy": known.policy, "params": known.params}
            notes += known.notes
        elif "podSecurity" in validate:
            written |= _pod_security(validate["podSecurity"])
        else:
            expression = tests.expression(validate)
            if selection.is_generated and "variables.pod" in expression:
                written["variables"] = [{"name": "pod", "expression": POD_OF}]
            written["validations"] = [
                {"expression": expression, "message": message_of(validate.get("message") or "")}
            ]
            if not written["validations"][0]["message"]:
                del written["validations"][0]["message"]
    if "false" in conditions:
        refuse("its preconditions never hold when an object is created or updated")
    if kept := [each for each in dict.fromkeys(conditions) if each != "true"]:
        if any("variables.pod" in each for each in kept):
            written["variables"] = [
                {"name": "pod", "expression": POD_OF},
                *(e for e in written.get("variables", ()) if e["name"] != "pod"),
            ]
        written["matchConditions"] = [
            {"name": f"condition-{at}", "expression": each} for at, each in enumerate(kept, 1)
        ]
    written |= {"match": selection.match, "validationActions": actions_of(spec, validate)}
    if "failurePolicy" in spec:
        written["failurePolicy"] = spec["failurePolicy"]
    if severity := (policy["metadata"].get("annotations") or {}).get("policies.kyverno.io/severity"):
        written["severity"] = severity
    return ConvertedPolicy(origin, written, notes=notes)


def message_of(text: str) -> str:
    """Return a message in one line; a variable in it becomes `…`."""
    return " ".join(VARIABLE.sub("…", text).split())


def _of_pod(expression: str, selection: Selection) -> str:
    """Return an expression about pods, for all kinds with a pod template."""
    if not selection.is_generated:
        return expression
    return OF_POD.sub(_pod_path, expression)


def _pod_path(found: re.Match[str]) -> str:
    if found[1] == "oldObject":
        refuse("it compares the old pod template")
    return f"variables.pod.{found[2]}"


def _cel(cel: Mapping[str, Any], selection: Selection) -> dict[str, Any]:
    if cel.get("paramKind") or cel.get("auditAnnotations"):
        refuse("it has parameters of another object, or audit annotations",
               "a ValidatingAdmissionPolicy, which `gatewright check` judges as it is")  # fmt: skip
    found: dict[str, Any] = {}
    variables = [
        {"name": each["name"], "expression": _of_pod(each["expression"], selection)}
        for each in cel.get("variables") or ()
    ]
    found["validations"] = [
        validation(each, lambda text: _of_pod(text, selection)) for each in cel["expressions"]
    ]
    if "variables.pod" in str([variables, found]):
        variables.insert(0, {"name": "pod", "expression": POD_OF})
    if variables:
        found["variables"] = variables
    return found


def validation(each: Mapping[str, Any], converted: Any) -> dict[str, Any]:
    """Return a validation in CEL with converted expressions."""
    found = {"expression": converted(each["expression"])}
    if message := message_of(each.get("message") or ""):
        found["message"] = message
    if each.get("messageExpression"):
        found["messageExpression"] = converted(each["messageExpression"])
    return found


def _pod_security(about: Mapping[str, Any]) -> dict[str, Any]:
    if about.get("exclude"):
        refuse("it excludes controls for some images or fields",
               "`pod-security` with `excluded_checks`, and a PolicyException with `images`")  # fmt: skip
    if about.get("version", "latest") != "latest":
        refuse(f"it judges by the standard of Kubernetes {about['version']}", "`pod-security`")
    return {"policy": "pod-security", "params": {"level": about["level"]}}


class _Tests:
    """What a rule tests: its preconditions, and its expression."""

    def __init__(self, rule: Mapping[str, Any], selection: Selection) -> None:
        operations = [each for clause in selection.match["any"]
                      for each in clause.get("operations") or ("CREATE", "UPDATE")]  # fmt: skip
        self._operations = list(dict.fromkeys(operations))
        pod = "variables.pod" if selection.is_generated else "object"
        roots = {"request.object": "object", "request.oldObject": "oldObject"}
        roots |= {f"request.object.{each}": f"{pod}.{each}" for each in ("spec", "metadata")}
        if selection.is_generated:
            roots |= {f"request.oldObject.{each}": "" for each in ("spec", "metadata")}
        self._roots, self._pod = roots, pod
        self._code = code = selection.code
        self._codes = {"request.object": code, "request.oldObject": code}
        for each in ("spec", "metadata"):
            self._codes[f"request.object.{each}"] = field_type(code, each)
        self._conditions = Conditions(self._operations, roots, self._codes)
        block = rule.get("preconditions")
        self.preconditions = [self._conditions.hold(block)] if block else []

    def expression(self, validate: Mapping[str, Any]) -> str:
        """Return what must hold."""
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
        refuse(f"the rule has {', '.join(sorted(validate.keys() - {'message'})) or 'no check'}")

    def _deny(self, deny: Mapping[str, Any]) -> str:
        if not deny.get("conditions"):
            return "false"
        return negated(self._conditions.hold(deny["conditions"]))

    def _each(self, one: Mapping[str, Any]) -> str:
        if one.get("context") or one.get("foreach") or one.get("elementScope") is False:
            refuse("its foreach has a context, or another foreach")
        listed = self._conditions.query(one["list"])
        if not listed.is_list:
            refuse(f"the type of {one['list']} is not known: it may be no list")
        code = parse_type(listed.code).inner
        roots = {**self._roots, "element": "element"}
        inner = Conditions(self._operations, roots, {**self._codes, "element": code})
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


