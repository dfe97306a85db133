"""Convert Gatekeeper's constraints to their template's CEL rules, or to built-in policies.

CEL in a template is converted; of templates in Rego, only those of Gatekeeper's library are known.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from gatewright.migrate.cel_rules import validation
from gatewright.migrate.celtext import every, glob, literal, negated, some
from gatewright.migrate.constraints import CONSTRAINTS
from gatewright.migrate.kinds import KindNames
from gatewright.migrate.results import Converted, ConvertedPolicy, Origin, refuse, refuse_large
from webhook.policy_sets.catalogue import catalogue

GROUP = "constraints.gatekeeper.sh/"
CEL_ENGINE = "K8sNativeValidation"
ACTIONS = {"deny": ["Deny"], "dryrun": ["Audit"], "warn": ["Warn"]}
OF_LIBRARY = "metadata.gatekeeper.sh/"
VARIABLES = [{"name": "anyObject", "expression": "object == null ? oldObject : object"}]
UNDERSTOOD = {"kinds", "namespaces", "excludedNamespaces", "namespaceSelector", "labelSelector",
              "scope", "name", "source"}  # fmt: skip


def convert_constraint(
    origin: Origin,
    names: KindNames,
    templates: Mapping[str, Mapping[str, Any]],
    excluded: Sequence[str],
) -> Converted:
    """Yield the policy objects of a constraint.

    `templates` are the ConstraintTemplates by the kind that they define; `excluded` are the
    namespaces that Gatekeeper's Config excludes.
    """
    value = origin.document.value
    refuse_large(value)
    spec, template = value.get("spec") or {}, templates.get(value["kind"])
    action = spec.get("enforcementAction", "deny")
    if action not in ACTIONS:
        refuse(f"its enforcement action is {action}")
    common, conditions = match_of(spec.get("match") or {}, names, excluded)
    common["validationActions"] = ACTIONS[action]
    name, parameters = value["metadata"]["name"], dict(spec.get("parameters") or {})
    if (source := _cel_of(template)) is not None:
        yield ConvertedPolicy(origin, _rules(source, parameters, conditions) | common, name)
        return
    is_foreign = template is not None and OF_LIBRARY not in str(template.get("metadata"))
    if is_foreign or value["kind"] not in CONSTRAINTS:
        refuse("its template is in Rego, and no policy is known to decide the same")
    policies = CONSTRAINTS[value["kind"]](parameters)
    if unknown := [key for key, each in parameters.items() if each]:
        refuse(f"the parameter {unknown[0]} has no equal")
    if conditions:
        common["matchConditions"] = conditions
    for policy, params in policies:
        written = {"policy": policy, "params": params} | common
        suffix = f"-{policy}" if len(policies) > 1 else ""
        note = "Gatewright's policy may judge more fields: see `gatewright explain`"
        yield ConvertedPolicy(origin, _with_kinds(written, policy), f"{name}{suffix}", notes=[note])


def excluded_namespaces(config: Mapping[str, Any], process: str) -> list[str]:
    """Return the namespaces that Gatekeeper's Config excludes from one of its processes."""
    return [
        namespace
        for each in (config.get("spec") or {}).get("match") or ()
        if {"*", process} & set(each.get("processes") or ())
        for namespace in each.get("excludedNamespaces") or ()
    ]


def _cel_of(template: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return the CEL source of a template; None if it has none."""
    for target in ((template or {}).get("spec") or {}).get("targets") or ():
        for code in target.get("code") or ():
            if code.get("engine") == CEL_ENGINE:
                return dict(code["source"])
    return None


def _rules(
    source: Mapping[str, Any], parameters: Mapping[str, Any], conditions: list[dict[str, Any]]
) -> dict[str, Any]:
    given = {"name": "params", "expression": "params" if parameters else "null"}
    written: dict[str, Any] = {"params": parameters} if parameters else {}
    written["variables"] = [*VARIABLES, given, *source.get("variables", ())]
    written["validations"] = [validation(each, str) for each in source["validations"]]
    if found := [*conditions, *(source.get("matchConditions") or ())]:
        written["matchConditions"] = found
    return written


def match_of(
    match: Mapping[str, Any], names: KindNames, excluded: Sequence[str]
) -> tuple[dict[str, Any], list[Any]]:
    """Convert the match of a constraint or a mutator to `match` and match conditions."""
    if unknown := match.keys() - UNDERSTOOD:
        refuse(f"match by {', '.join(sorted(unknown))}")
    if match.get("source", "All") not in ("All", "Original"):
        refuse("it judges expanded resources only")
    kinds = [
        names.spelled(group, "*", kind)
        for each in match.get("kinds") or ()
        for kind in each.get("kinds") or ["*"]
        for group in each.get("apiGroups") or ["*"]
    ]
    clause: dict[str, Any] = {"kinds": list(dict.fromkeys(kinds))} if kinds else {}
    for key, ours in (("namespaceSelector", "namespaceSelector"),
                      ("labelSelector", "objectSelector")):  # fmt: skip
        if match.get(key):
            clause[ours] = match[key]
    if match.get("namespaces"):
        clause["namespaces"] = match["namespaces"]
    if match.get("name"):
        clause["names"] = [match["name"]]
    tests = _tests(match, excluded)
    conditions = [{"name": "scope", "expression": every(tests)}] if tests else []
    return {"match": {"any": [clause]}} if clause else {}, conditions


def _tests(match: Mapping[str, Any], excluded: Sequence[str]) -> list[str]:
    tests = []
    if excluded := [*(match.get("excludedNamespaces") or ()), *excluded]:
        plain = [each for each in excluded if "*" not in each]
        globs = [glob("request.namespace", each) for each in excluded if "*" in each]
        named = [f"request.namespace in {literal(plain)}"] if plain else []
        tests.append(negated(some([*named, *globs])))
    if match.get("scope", "*") != "*":
        is_namespaced = match["scope"] == "Namespaced"
        tests.append(f"request.namespace {'!=' if is_namespaced else '=='} ''")
    return tests


def _with_kinds(written: dict[str, Any], policy: str) -> dict[str, Any]:
    """Leave out kinds that a built-in policy never judges, nor does Gatekeeper's."""
    judged = {target.kind.kind for target in catalogue()[policy].targets}
    clause = dict((written.get("match") or {"any": [{}]})["any"][0])
    kinds = [each for each in clause.get("kinds") or () if each in judged]
    if not kinds and clause.get("kinds"):
        refuse(f"`{policy}` does not judge {', '.join(clause['kinds'])}")
    if "Pod" in judged and (not kinds or "Pod" in kinds):
        kinds = ["Pod"]  # Gatekeeper's library does not judge pod templates
    if kinds:
        clause["kinds"] = kinds
    return written | ({"match": {"any": [clause]}} if clause else {})
