"""Convert Kyverno's ValidatingPolicy and MutatingPolicy: CEL rules with match constraints."""

from collections.abc import Mapping
from typing import Any

from gatewright.migrate.cel_rules import of_pod, validation, variables, with_pod_variable
from gatewright.migrate.kinds import KindNames
from gatewright.migrate.results import Converted, ConvertedPolicy, Origin, refuse, refuse_large
from gatewright.migrate.selection import TEMPLATED

RULE = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}


def convert_cel_policy(origin: Origin, names: KindNames) -> Converted:
    """Yield the policy object of a ValidatingPolicy or a MutatingPolicy."""
    value = origin.document.value
    refuse_large(value)
    spec = value["spec"]
    evaluation = spec.get("evaluation") or {}
    if spec.get("auditAnnotations") or evaluation.get("mode") == "JSON":
        refuse("it writes audit annotations, or judges JSON that is no Kubernetes object")
    clauses = clauses_of(spec["matchConstraints"], names)
    controllers = _controllers(spec)
    converted = of_pod if controllers else str
    if spec.get("mutations"):
        _check_mutations(spec, controllers, clauses, names)
        written: dict[str, Any] = {"mutations": spec["mutations"]}
    else:
        written = {
            "validations": [validation(each, converted) for each in spec["validations"]],
            "validationActions": spec.get("validationActions") or ["Deny"],
        }
    written |= variables(spec, converted)
    conditions = [
        {"name": each["name"], "expression": converted(each["expression"])}
        for each in spec.get("matchConditions") or ()
    ]
    if conditions:
        written["matchConditions"] = conditions
    with_pod_variable(written)
    if controllers:
        clauses[0]["kinds"] = ["Pod", *controllers]
    written["match"] = {"any": clauses}
    if "failurePolicy" in spec:
        written["failurePolicy"] = spec["failurePolicy"]
    namespace = value["metadata"].get("namespace", "")
    kind = "AdmissionPolicy" if namespace else "ClusterAdmissionPolicy"
    yield ConvertedPolicy(origin, written, value["metadata"]["name"], namespace, kind)


def _check_mutations(
    spec: Mapping[str, Any],
    controllers: list[str],
    clauses: list[dict[str, Any]],
    names: KindNames,
) -> None:
    """Refuse mutations of other objects, and patches of fields that a kind lacks."""
    existing = ((spec.get("evaluation") or {}).get("mutateExisting") or {}).get("enabled")
    if existing or spec.get("targetMatchConstraints"):
        refuse("it changes objects that are there already")
    if controllers:
        refuse("it changes pod templates by rules that Kyverno generates")
    kinds = {kind for clause in clauses for kind in clause["kinds"]}
    has_patches = any(each["patchType"] == "JSONPatch" for each in spec["mutations"])
    if has_patches and len(kinds) > 1 and not names.code(kinds):
        refuse("its JSONPatch is for kinds whose fields differ")


def _controllers(spec: Mapping[str, Any]) -> list[str]:
    """Return the controller kinds that Kyverno generates rules for; by default all, for pods."""
    constraints = spec["matchConstraints"]
    rules = constraints.get("resourceRules") or []
    about = {key: rules[0].get(key) for key in RULE} if len(rules) == 1 else {}
    if about != RULE or rules[0].get("resourceNames") or constraints.get("objectSelector"):
        return []
    if constraints.get("excludeResourceRules"):
        return []
    autogen = (spec.get("autogen") or {}).get("podControllers") or {}
    named = autogen.get("controllers")
    plurals = {f"{each.lower()}s": each for each in TEMPLATED if each != "ReplicationController"}
    return [plurals[each] for each in (plurals if named is None else named) if each in plurals]


def clauses_of(constraints: Mapping[str, Any], names: KindNames) -> list[dict[str, Any]]:
    """Return match constraints as clauses of `match`."""
    if constraints.get("excludeResourceRules"):
        refuse(
            "it excludes resources", "a ValidatingAdmissionPolicy, which `check` judges as it is"
        )
    clauses = []
    for rule in constraints.get("resourceRules") or ():
        kinds, subresources = list[str](), set[str]()
        for resource in rule["resources"]:
            plural, _, subresource = resource.partition("/")
            if "*" in (*rule["apiGroups"], plural, subresource):
                refuse("it matches every resource: a policy of Gatewright names its kinds")
            subresources.add(subresource)
            version = rule["apiVersions"][0] if len(rule["apiVersions"]) == 1 else "*"
            kinds += [names.of_resource(group, version, plural) for group in rule["apiGroups"]]
        clause: dict[str, Any] = {"kinds": list(dict.fromkeys(kinds))}
        if "*" not in rule["operations"]:
            clause["operations"] = rule["operations"]
        else:
            clause["operations"] = ["CREATE", "UPDATE", "DELETE"]
        if subresources != {""}:
            clause["subresources"] = sorted(subresources)
        if rule.get("resourceNames"):
            clause["names"] = rule["resourceNames"]
        for key in ("namespaceSelector", "objectSelector"):
            selector = constraints.get(key) or {}
            if selector.get("matchLabels") or selector.get("matchExpressions"):
                clause[key] = selector
        clauses.append(clause)
    return clauses
