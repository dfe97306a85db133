"""Convert Kyverno's ClusterPolicy and Policy: each rule becomes a policy object."""

import re
from collections.abc import Mapping
from typing import Any

from gatewright.migrate.builtin import builtin_policy
from gatewright.migrate.cel_rules import (
    ConvertExpression,
    of_pod,
    validation,
    variables,
    with_pod_variable,
)
from gatewright.migrate.kinds import KindNames
from gatewright.migrate.mutations import changes_of, mutation_to_cel
from gatewright.migrate.results import (
    Converted,
    ConvertedPolicy,
    NotEqualError,
    Origin,
    Unconverted,
    refuse,
    refuse_large,
)
from gatewright.migrate.rule_tests import RuleTests
from gatewright.migrate.selection import RuleScope, pod_controllers

# The reason and the nearest equivalent, by field of a rule.
UNCONVERTED = {
    "generate": ("it creates objects; an admission policy allows, denies or mutates", ""),
    "verifyImages": ("it verifies images", "`image-signatures`"),
    "context": ("it looks data up (context)", ""),
}
MAX_NAME = 253


def convert_policy(origin: Origin, names: KindNames) -> Converted:
    """Yield a policy object for each rule, or the reason why it is not converted."""
    policy = origin.document.value
    rules = policy["spec"].get("rules") or []
    generated = pod_controllers(policy)
    for rule in rules:
        one = Origin(origin.document, str(rule.get("name", "")))
        try:
            refuse_large(rule)
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
    """Return the actions for the failure action that a Kyverno rule or its policy names."""
    overrides = validate.get("failureActionOverrides") or spec.get(
        "validationFailureActionOverrides"
    )
    if overrides:
        refuse("its failure action differs between namespaces", "one policy object for each action")
    action = validate.get("failureAction") or spec.get("validationFailureAction") or "Audit"
    found = ["Deny"] if action.lower() == "enforce" else ["Audit"]
    return [*found, "Warn"] if spec.get("emitWarning") else found


def _rule(
    origin: Origin,
    policy: Mapping[str, Any],
    rule: Mapping[str, Any],
    names: KindNames,
    generated: list[str],
) -> ConvertedPolicy:
    for sort, (reason, nearest) in UNCONVERTED.items():
        if rule.get(sort) or (sort == "context" and policy["spec"].get(sort)):
            refuse(reason, nearest)
    spec, validate = policy["spec"], rule.get("validate") or {}
    selection = RuleScope(rule, names, generated)
    mutate = rule.get("mutate")
    if mutate or {"pattern", "anyPattern"} & validate.keys():
        selection.without_deletions()
    if "cel" in validate:
        converted = of_pod if selection.is_generated else str
        written = _cel(validate["cel"], converted)
        preconditions = [
            converted(each["expression"]) for each in rule.get("celPreconditions") or ()
        ]
    else:
        tests = RuleTests(rule, selection)
        preconditions = tests.preconditions
        written = (
            _tested(validate, selection, tests)
            if not mutate
            else mutation_to_cel(changes_of(mutate), selection.is_generated)
        )
    conditions = [e for e in (*selection.conditions, *preconditions) if e != "true"]
    if "false" in conditions:
        refuse("its preconditions never hold when an object is created or updated")
    if conditions:
        written["matchConditions"] = [
            {"name": f"condition-{at}", "expression": each}
            for at, each in enumerate(dict.fromkeys(conditions), 1)
        ]
    with_pod_variable(written)
    written["match"] = selection.match
    if not mutate:
        written["validationActions"] = actions_of(spec, validate)
    if "failurePolicy" in spec:
        written["failurePolicy"] = spec["failurePolicy"]
    annotations = policy["metadata"].get("annotations") or {}
    if severity := annotations.get("policies.kyverno.io/severity"):
        written["severity"] = str(severity).lower()
    return ConvertedPolicy(origin, written)


def _tested(validate: Mapping[str, Any], selection: RuleScope, tests: RuleTests) -> dict[str, Any]:
    """Return the built-in policy that decides the same, or the rule in CEL."""
    if "podSecurity" in validate:
        return _pod_security(validate["podSecurity"])
    if found := builtin_policy(validate, selection.kinds, selection.is_generated):
        return found
    each = {"expression": tests.expression(validate), "message": validate.get("message")}
    return {"validations": [validation(each, str)]}


def _cel(cel: Mapping[str, Any], converted: ConvertExpression) -> dict[str, Any]:
    if cel.get("paramKind") or cel.get("auditAnnotations"):
        refuse("it has parameters of another object, or audit annotations",
               "a ValidatingAdmissionPolicy, which `gatewright check` judges as it is")  # fmt: skip
    validations = [validation(each, converted) for each in cel["expressions"]]
    return {"validations": validations} | variables(cel, converted)


def _pod_security(about: Mapping[str, Any]) -> dict[str, Any]:
    if about.get("exclude"):
        refuse(
            "it excludes controls for some images or fields",
            "`pod-security` with `excluded_checks`, and a PolicyException with `images`",
        )
    if about.get("version", "latest") != "latest":
        refuse(f"it judges by the standard of Kubernetes {about['version']}", "`pod-security`")
    return {"policy": "pod-security", "params": {"level": about["level"]}}
