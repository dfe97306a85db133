"""Convert Kyverno's ValidatingPolicy and MutatingPolicy: CEL rules with match constraints."""

from collections.abc import Iterator, Mapping
from typing import Any

from gatewright.tools.migrate.cel_rules import cel_rules, with_variables
from gatewright.tools.migrate.context import Context
from gatewright.tools.migrate.kinds import KindNames
from gatewright.tools.migrate.results import (
    AS_IT_IS,
    EVERY_KIND,
    KEEP,
    MUTATION,
    ConvertedPolicy,
    Origin,
    refuse,
    texts,
)
from gatewright.tools.migrate.selection import TEMPLATED
from webhook.policy_sets.rule_resources import EVERY_OPERATION, OPERATIONS_OF

# The resource rule for which Kyverno generates rules about pod templates.
OF_PODS = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
PLURALS = {f"{each.lower()}s": each for each in TEMPLATED if each != "ReplicationController"}


def convert_cel_policy(origin: Origin, context: Context) -> Iterator[ConvertedPolicy]:
    """Yield the policy object of a ValidatingPolicy or a MutatingPolicy."""
    spec, metadata = origin.value["spec"], origin.value["metadata"]
    evaluation = spec.get("evaluation") or {}
    if (evaluation.get("admission") or {}).get("enabled") is False:
        refuse("it is not evaluated at admission", "`gatewright check --kubeconfig`, or the audit")
    if spec.get("validations") and spec.get("mutations"):
        refuse("it has validations and mutations", "one policy for each")
    if spec.get("auditAnnotations") or evaluation.get("mode") == "JSON":
        refuse("auditAnnotations, and the mode JSON, have no equivalent", AS_IT_IS)
    clauses = _clauses(spec["matchConstraints"], context.kinds)
    controllers = _controllers(spec)
    if spec.get("mutations"):
        if (evaluation.get("mutateExisting") or {}).get("enabled") or spec.get(
            "targetMatchConstraints"
        ):
            refuse("it changes other objects than that of the request", KEEP)
        if controllers:
            refuse("it changes pods, and pod templates by rules that Kyverno generates", MUTATION)
        _refuse_patch_of_several_types(spec["mutations"], clauses, context.kinds)
        for clause in clauses:  # a deletion has no object to change
            clause["operations"] = [each for each in clause["operations"] if each != "DELETE"]
        written = {"mutations": spec["mutations"]} | cel_rules({**spec, "validations": ()})
    else:
        written = cel_rules(spec, of_pods=bool(controllers))
        written["validationActions"] = spec.get("validationActions") or ["Deny"]
    if controllers:
        clauses[0]["kinds"] = ["Pod", *controllers]
    with_variables(written, [kind for clause in clauses for kind in clause["kinds"]])
    written["match"] = {"any": clauses}
    if "failurePolicy" in spec:
        written["failurePolicy"] = spec["failurePolicy"]
    # The API server ignores a namespace of a kind that has none.
    is_namespaced = str(origin.value["kind"]).startswith("Namespaced")
    namespace = metadata.get("namespace") or "default" if is_namespaced else ""
    yield ConvertedPolicy(origin, written, metadata["name"], namespace)


def _refuse_patch_of_several_types(
    mutations: list[Any], clauses: list[dict[str, Any]], names: KindNames
) -> None:
    """Refuse a JSONPatch that may add fields that a kind lacks."""
    kinds = {kind for clause in clauses for kind in clause["kinds"]}
    has_patches = any(each["patchType"] == "JSONPatch" for each in mutations)
    if has_patches and len(kinds) > 1 and not names.code(kinds):
        refuse("its JSONPatch is for kinds with different fields", "one policy for each kind")


def _controllers(spec: Mapping[str, Any]) -> list[str]:
    """Return the controller kinds that Kyverno generates rules for; by default all, for pods."""
    constraints = spec["matchConstraints"]
    rules = constraints.get("resourceRules") or []
    about = {key: rules[0].get(key) for key in OF_PODS} if len(rules) == 1 else {}
    if about != OF_PODS or rules[0].get("resourceNames") or constraints.get("objectSelector"):
        return []
    autogen = (spec.get("autogen") or {}).get("podControllers") or {}
    named = autogen.get("controllers")
    return [PLURALS[each] for each in (PLURALS if named is None else named) if each in PLURALS]


def _clauses(constraints: Mapping[str, Any], names: KindNames) -> list[dict[str, Any]]:
    """Return match constraints as clauses of `match`."""
    if constraints.get("excludeResourceRules"):
        refuse("excludeResourceRules has no equivalent", AS_IT_IS)
    selectors = {
        key: constraints[key]
        for key in ("namespaceSelector", "objectSelector")
        if any((constraints.get(key) or {}).values())
    }
    return [_clause(rule, names) | selectors for rule in constraints.get("resourceRules") or ()]


def _clause(rule: Mapping[str, Any], names: KindNames) -> dict[str, Any]:
    if rule.get("scope", "*") != "*":
        refuse(f"it matches by scope: {rule['scope']}", AS_IT_IS)
    groups, versions = texts(rule["apiGroups"]), texts(rule["apiVersions"])
    version = versions[0] if len(versions) == 1 else "*"
    kinds, subresources = dict[str, None](), set[str]()
    for resource in texts(rule["resources"]):
        plural, _, subresource = resource.partition("/")
        if "*" in (*groups, plural, subresource):
            refuse("it matches every resource; policies of Gatewright name their kinds", EVERY_KIND)
        subresources.add(subresource)
        kinds |= dict.fromkeys(names.of_resource(group, version, plural) for group in groups)
    operations = texts(rule["operations"])
    if "*" in operations:
        of_each = [OPERATIONS_OF.get(each, EVERY_OPERATION) for each in subresources]
        operations = [
            operation
            for operation in EVERY_OPERATION
            if any(operation in allowed for allowed in of_each)
        ]
    clause: dict[str, Any] = {"kinds": list(kinds), "operations": operations}
    if subresources != {""}:
        clause["subresources"] = sorted(subresources)
    if rule.get("resourceNames"):
        clause["names"] = rule["resourceNames"]
    return clause
