"""Convert a rule of Kyverno's ClusterPolicy or Policy to a policy object."""

from collections.abc import Iterator, Mapping
from typing import Any

from gatewright.tools.migrate.builtin import builtin_policy
from gatewright.tools.migrate.cel_rules import cel_rules, of_pod, validation, with_variables
from gatewright.tools.migrate.container_rules import split_containers
from gatewright.tools.migrate.context import Context
from gatewright.tools.migrate.mutations import changes_of, mutation_to_cel
from gatewright.tools.migrate.results import (
    AS_IT_IS,
    KEEP,
    OMIT,
    OWN_RULE,
    ConvertedPolicy,
    Origin,
    refuse,
    slug,
)
from gatewright.tools.migrate.rule_tests import RuleTests
from gatewright.tools.migrate.selection import RuleScope, pod_controllers

# The reason and the nearest equivalent, by field of a rule.
UNCONVERTED = {
    "generate": ("it generates objects; an admission policy only allows, denies or mutates", KEEP),
    "verifyImages": ("it verifies images", "`image-signatures`"),
    "context": ("it looks data up (context), which no converted rule does", OWN_RULE),
}
MAX_NAME = 253
SORTS = ("validate", "mutate", "generate", "verifyImages")
CHECKS = ("pattern", "anyPattern", "deny", "foreach", "podSecurity", "cel", "manifests")


def convert_rule(origin: Origin, context: Context) -> Iterator[ConvertedPolicy]:
    """Yield the policy object of a rule."""
    policy, rule = origin.document.value, origin.value
    spec = policy["spec"]
    for key, (reason, nearest) in UNCONVERTED.items():
        if rule.get(key) or (key == "context" and spec.get(key)):
            refuse(reason, nearest)
    _refuse_contradictions(spec, rule)
    scope = RuleScope(rule, context.kinds, pod_controllers(policy))
    written, preconditions = _rules(rule, scope)
    conditions = dict.fromkeys(e for e in (*scope.conditions, *preconditions) if e != "true")
    if "false" in conditions:
        refuse("its preconditions never hold when an object is created or updated", OMIT)
    if conditions:
        written["matchConditions"] = [
            {"name": f"condition-{at}", "expression": condition}
            for at, condition in enumerate(conditions, 1)
        ]
    with_variables(written, scope.kinds)
    written["match"] = scope.match
    if not rule.get("mutate"):
        validate = rule.get("validate") or {}
        written["validationActions"] = _actions(spec, validate)
        if validate.get("allowExistingViolations") is False or scope.judges_only_updates:
            written["allowExistingViolations"] = False
    if "failurePolicy" in spec:
        written["failurePolicy"] = spec["failurePolicy"]
    annotations = policy["metadata"].get("annotations") or {}
    if severity := annotations.get("policies.kyverno.io/severity"):
        written["severity"] = str(severity).lower()
    suffix = f"-{slug(origin.rule)}" if len(spec["rules"]) > 1 else ""
    name = f"{policy['metadata']['name']}{suffix}"[:MAX_NAME]
    namespace = policy["metadata"].get("namespace") or "default"
    yield ConvertedPolicy(origin, written, name, namespace if policy["kind"] == "Policy" else "")


def _refuse_contradictions(spec: Mapping[str, Any], rule: Mapping[str, Any]) -> None:
    """Refuse a rule that is several rules at once, of which a conversion could drop one."""
    sorts = [each for each in SORTS if rule.get(each)]
    if len(sorts) != 1:
        has = " and ".join(sorts) or "none"
        refuse(f"a rule has exactly one of {', '.join(SORTS)}; it has {has}", "one rule for each")
    validate = rule.get("validate") or {}
    checks = [each for each in CHECKS if each in validate]
    if rule.get("validate") and len(checks) != 1:
        has = " and ".join(checks) or "none"
        refuse(f"a rule has exactly one check; it has {has}", "one rule for each check")
    for block in ("match", "exclude"):
        forms = [each for each in ("any", "all", "resources") if (rule.get(block) or {}).get(each)]
        if len(forms) > 1:
            refuse(f"its {block} has {' and '.join(forms)}", "one rule for each")
    if spec.get("admission") is False:
        refuse("it is not evaluated at admission", "`gatewright check --kubeconfig`, or the audit")
    if spec.get("applyRules") == "One" and len(spec["rules"]) > 1:
        refuse("only the first of its rules that matches an object is applied", "one rule")


def _rules(rule: Mapping[str, Any], scope: RuleScope) -> tuple[dict[str, Any], list[str]]:
    """Return what a rule tests or changes, and its preconditions."""
    mutate, validate = rule.get("mutate"), rule.get("validate") or {}
    if mutate or {"pattern", "anyPattern"} & validate.keys():
        scope.without_deletions()
    if "cel" in validate:
        conditions = [each["expression"] for each in rule.get("celPreconditions") or ()]
        preconditions = list(map(of_pod, conditions)) if scope.is_generated else conditions
        return _cel(validate["cel"], scope.is_generated), preconditions
    tests = RuleTests(rule, scope)
    if mutate:
        return mutation_to_cel(changes_of(mutate), scope.is_generated), tests.preconditions
    if "podSecurity" in validate:
        return _pod_security(validate["podSecurity"]), tests.preconditions
    if built_in := builtin_policy(validate, scope.kinds, scope.is_generated):
        return built_in, tests.preconditions
    each = {"expression": tests.expression(validate), "message": validate.get("message")}
    whole = validation(each)
    return {
        "validations": [*split_containers(whole["expression"], whole.get("message", ""))]
    }, tests.preconditions


def _actions(spec: Mapping[str, Any], validate: Mapping[str, Any]) -> list[str]:
    """Return the actions for the failure action that a rule or its policy names."""
    overrides = validate.get("failureActionOverrides") or spec.get(
        "validationFailureActionOverrides"
    )
    if overrides:
        refuse("its failure action differs between namespaces", "one policy object for each action")
    action = validate.get("failureAction") or spec.get("validationFailureAction") or "Audit"
    actions = ["Deny"] if action.lower() == "enforce" else ["Audit"]
    return [*actions, "Warn"] if spec.get("emitWarning") else actions


def _cel(cel: Mapping[str, Any], of_pods: bool) -> dict[str, Any]:
    if cel.get("paramKind") or cel.get("auditAnnotations"):
        refuse("paramKind and auditAnnotations have no equivalent",
               AS_IT_IS)  # fmt: skip
    return cel_rules(
        {"validations": cel["expressions"], "variables": cel.get("variables")}, of_pods
    )


def _pod_security(about: Mapping[str, Any]) -> dict[str, Any]:
    if about.get("exclude"):
        refuse(
            "podSecurity.exclude has no equivalent",
            "`pod-security` with `excluded_checks`, and a PolicyException with `images`",
        )
    if about.get("version", "latest") != "latest":
        refuse(f"it judges by the standard of Kubernetes {about['version']}", "`pod-security`")
    return {"policy": "pod-security", "params": {"level": about["level"]}}
