"""Convert Gatekeeper's constraints to their template's CEL rules, or to built-in policies.

CEL in a template is converted; of templates in Rego, only those of Gatekeeper's library are known.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gatewright.tools.cel_text import any_glob, every, negate
from gatewright.tools.migrate.cel_rules import cel_rules
from gatewright.tools.migrate.constraints import CONSTRAINTS, is_known, rego_of
from gatewright.tools.migrate.context import Context
from gatewright.tools.migrate.kinds import KindNames
from gatewright.tools.migrate.known_fields import SOURCE, refuse_unknown
from gatewright.tools.migrate.results import OMIT, ConvertedPolicy, Origin, refuse, texts

CEL_ENGINE = "K8sNativeValidation"
ACTIONS = {"deny": ["Deny"], "dryrun": ["Audit"], "warn": ["Warn"]}
ANY_OBJECT = {"name": "anyObject", "expression": "object == null ? oldObject : object"}
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
    if template is None:
        refuse(
            f"the ConstraintTemplate of {kind} is not among the FILEs, so its rules are unknown",
            f"add the ConstraintTemplate {kind.lower()} to the FILEs",
        )
    rego = rego_of(template)
    if kind not in CONSTRAINTS:
        refuse("its template is in Rego, and no equal rules are known")
    if not is_known(kind, rego):
        refuse("its template is in Rego, and no known version of the one in Gatekeeper's library")
    rules = CONSTRAINTS[kind](parameters, rego)
    if parameters:
        refuse(f"the parameter {next(iter(parameters))} has no equivalent")
    yield ConvertedPolicy(
        origin, rules.spec | actions | conditions | _match(rules.scope(clause)), name
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
    given = {"name": "params", "expression": "params" if parameters else "{}"}
    refuse_unknown(source, SOURCE)
    if source.get("failurePolicy", "Fail") != "Fail":
        refuse("its template is ignored where it fails (failurePolicy Ignore)")
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
        names.spell(group, "*", kind)
        for entry in match.get("kinds") or ()
        for kind in texts(entry.get("kinds")) or ["*"]
        for group in texts(entry.get("apiGroups")) or ["*"]
        if not names.is_gone(group, kind)
    ]
    if match.get("kinds") and not kinds:
        refuse("no API server serves its kinds", OMIT)
    clause: dict[str, Any] = {"kinds": list(dict.fromkeys(kinds))} if kinds else {}
    clause |= {ours: match[key] for key, ours in SAME.items() if match.get(key)}
    if match.get("name"):
        clause["names"] = [match["name"]]
    tests = []
    if excluded := [*texts(match.get("excludedNamespaces")), *excluded]:
        tests.append(negate(any_glob("request.namespace", excluded)))
    if match.get("scope", "*") != "*":
        is_namespaced = match["scope"] == "Namespaced"
        tests.append(f"request.namespace {'!=' if is_namespaced else '=='} ''")
    scope = {"matchConditions": [{"name": "scope", "expression": every(tests)}]}
    return clause, scope if tests else {}


def _match(clause: dict[str, Any]) -> dict[str, Any]:
    return {"match": {"any": [clause]}} if clause else {}
