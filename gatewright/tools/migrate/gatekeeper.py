"""Convert Gatekeeper's constraints to their template's CEL rules, or to built-in policies.

CEL in a template is converted; of templates in Rego, only those of Gatekeeper's library are known.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gatewright.tools.cel_text import any_glob, every, negated
from gatewright.tools.migrate.cel_rules import cel_rules
from gatewright.tools.migrate.constraints import CONSTRAINTS
from gatewright.tools.migrate.context import Context
from gatewright.tools.migrate.kinds import KindNames
from gatewright.tools.migrate.results import ConvertedPolicy, Origin, refuse, texts
from webhook.policy_sets.catalogue import catalogue

CEL_ENGINE = "K8sNativeValidation"
ACTIONS = {"deny": ["Deny"], "dryrun": ["Audit"], "warn": ["Warn"]}
OF_LIBRARY = "metadata.gatekeeper.sh/"
ANY_OBJECT = {"name": "anyObject", "expression": "object == null ? oldObject : object"}
NOTE = "Gatewright's policy may judge more fields: see `gatewright explain`"
# Fields of `match`, by the field of a clause with the same meaning.
SAME = {"namespaces": "namespaces", "namespaceSelector": "namespaceSelector",
        "labelSelector": "objectSelector"}  # fmt: skip
CONVERTED = {*SAME, "kinds", "excludedNamespaces", "scope", "name", "source"}


def convert_constraint(origin: Origin, context: Context) -> Iterator[ConvertedPolicy]:
    """Yield the policy objects of a constraint."""
    kind, spec = origin.value["kind"], origin.value.get("spec") or {}
    name, template = origin.value["metadata"]["name"], context.templates.get(kind)
    action = spec.get("enforcementAction", "deny")
    if action not in ACTIONS:
        refuse(f"the enforcement action {action} has no equivalent")
    clause, conditions = scope_of(
        spec.get("match") or {}, context.kinds, context.excluded_from("webhook")
    )
    actions = {"validationActions": ACTIONS[action]}
    parameters = dict(spec.get("parameters") or {})
    if (source := _cel_of(template)) is not None:
        written = _with_source(source, parameters, conditions) | actions
        yield ConvertedPolicy(origin, written | _match(clause), name)
        return
    is_foreign = template is not None and OF_LIBRARY not in str(template.get("metadata"))
    if is_foreign or kind not in CONSTRAINTS:
        refuse("its template is in Rego, and no equivalent policy is known")
    policies = CONSTRAINTS[kind](parameters)
    if unknown := [key for key, each in parameters.items() if each]:
        refuse(f"the parameter {unknown[0]} has no equivalent")
    for policy, params in policies:
        written = {"policy": policy, "params": params} | actions | conditions
        suffix = f"-{policy}" if len(policies) > 1 else ""
        yield ConvertedPolicy(
            origin, written | _match(_judged(clause, policy)), f"{name}{suffix}", notes=[NOTE]
        )


def _cel_of(template: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return the CEL source of a template; None if it has none."""
    for target in ((template or {}).get("spec") or {}).get("targets") or ():
        for code in target.get("code") or ():
            if code.get("engine") == CEL_ENGINE:
                return dict(code["source"])
    return None


def _with_source(
    source: Mapping[str, Any], parameters: dict[str, Any], conditions: dict[str, Any]
) -> dict[str, Any]:
    """Return the rules of a template, with the parameters and conditions of a constraint."""
    given = {"name": "params", "expression": "params" if parameters else "null"}
    both = [*conditions.get("matchConditions", ()), *(source.get("matchConditions") or ())]
    variables = [ANY_OBJECT, given, *source.get("variables", ())]
    written = cel_rules({**source, "variables": variables, "matchConditions": both})
    return written | ({"params": parameters} if parameters else {})


def scope_of(
    match: Mapping[str, Any], names: KindNames, excluded: Sequence[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a clause of `match`, and match conditions, for a constraint or a mutator."""
    if unknown := match.keys() - CONVERTED:
        refuse(f"it selects by {', '.join(sorted(unknown))}")
    if match.get("source", "All") not in ("All", "Original"):
        refuse("it judges only expanded resources")
    kinds = [
        names.spelled(group, "*", kind)
        for each in match.get("kinds") or ()
        for kind in texts(each.get("kinds")) or ["*"]
        for group in texts(each.get("apiGroups")) or ["*"]
    ]
    clause: dict[str, Any] = {"kinds": list(dict.fromkeys(kinds))} if kinds else {}
    clause |= {ours: match[key] for key, ours in SAME.items() if match.get(key)}
    if match.get("name"):
        clause["names"] = [match["name"]]
    tests = []
    if excluded := [*texts(match.get("excludedNamespaces")), *excluded]:
        tests.append(negated(any_glob("request.namespace", excluded)))
    if match.get("scope", "*") != "*":
        is_namespaced = match["scope"] == "Namespaced"
        tests.append(f"request.namespace {'!=' if is_namespaced else '=='} ''")
    scope = {"matchConditions": [{"name": "scope", "expression": every(tests)}]}
    return clause, scope if tests else {}


def _match(clause: dict[str, Any]) -> dict[str, Any]:
    return {"match": {"any": [clause]}} if clause else {}


def _judged(clause: dict[str, Any], policy: str) -> dict[str, Any]:
    """Return a clause without the kinds that neither a built-in policy nor Gatekeeper's judges."""
    judged = {target.kind.kind for target in catalogue()[policy].targets}
    kinds = [each for each in clause.get("kinds") or () if each in judged]
    if not kinds and clause.get("kinds"):
        refuse(f"`{policy}` does not judge {', '.join(clause['kinds'])}")
    if "Pod" in judged and (not kinds or "Pod" in kinds):
        kinds = ["Pod"]  # Gatekeeper's library does not judge pod templates
    return clause | ({"kinds": kinds} if kinds else {})
