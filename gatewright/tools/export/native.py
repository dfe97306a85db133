"""Policy objects as ValidatingAdmissionPolicies and MutatingAdmissionPolicies with bindings."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from config.api.match import MatchClause
from config.api.policy import AdmissionPolicySpec
from config.documents import Document
from config.faults import parse
from config.schemas import resources
from gatewright.tools.cel_text import literal
from gatewright.tools.export.counterparts import COUNTERPARTS, NO_COUNTERPART
from gatewright.tools.export.pod_rules import used_variables
from gatewright.tools.export.scopes import conditions, constraints
from kube.resource import JsonObject
from webhook.engine.kinds import CREATE_AND_UPDATE, Target
from webhook.engine.policy import Policy
from webhook.policy_sets.catalogue import catalogue
from webhook.policy_sets.rule_resources import resources_of

API_VERSION = "admissionregistration.k8s.io/v1"
STATIC = ".static.k8s.io"
TEXT = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')""")
PARAMS = re.compile(r"(?<![\w.])params\b")
# Functions and syntax that the API server's CEL lacks.
BEYOND = re.compile(r"\bmath\.|\bbase64\.|`")
TOLERATED = "updates that do not worsen a violation are denied too"


@dataclass(slots=True)
class ExportedPolicy:
    """The objects for one policy object, and the losses."""

    name: str
    objects: list[JsonObject] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)


def export(documents: Iterable[Document], *, static: bool = False) -> Iterator[ExportedPolicy]:
    """Yield the export of each policy object and exception of a valid policy set."""
    for document in documents:
        value = document.value
        kind, metadata = value["kind"], value.get("metadata") or {}
        exported = ExportedPolicy(str(metadata.get("name") or document.where()))
        if not metadata.get("name"):
            exported.lost.append("an object without a name is not exported")
        elif kind == "PolicyException":
            exported.lost.append("exceptions are not exported")
        elif kind.endswith("AdmissionPolicy") and value["apiVersion"] != API_VERSION:
            spec = parse(AdmissionPolicySpec, value["spec"], at="spec")
            _export(
                exported, spec, value["metadata"].get("namespace") or "", STATIC if static else ""
            )
        yield exported


def _export(
    exported: ExportedPolicy, spec: AdmissionPolicySpec, namespace: str, ending: str
) -> None:
    if any(map(_is_beyond, _expressions(spec.model_dump(by_alias=True)))):
        exported.lost.append("not exported: it calls functions that the API server does not have")
        return
    if any(clause.pod_selector is not None for clause in spec.match.any):
        exported.lost.append("not exported: podSelector")
        return
    rules = _rules(exported, spec)
    if rules is None:
        return
    clauses = spec.match.any or [MatchClause()]
    for at, clause in enumerate(clauses, 1):
        targets = _targets(spec, clause, namespace or None)
        if not targets:
            exported.lost.append(f"match.any[{at - 1}] selects no resource of Kubernetes' own")
            continue
        suffix = f"-{at}" if len(clauses) > 1 else ""
        before = f"{namespace}." if namespace else ""
        name = f"{before}{exported.name}{suffix}{ending}"
        match = conditions(clause, spec.match.exclude, namespace)
        exported.objects += _objects(name, spec, rules, constraints(clause, targets), match)
    exported.lost += _losses(spec)


def _losses(spec: AdmissionPolicySpec) -> Iterator[str]:
    """Yield what the API server's policies cannot do."""
    if not (spec.validations or spec.policy):
        return
    if spec.allow_existing_violations:
        yield TOLERATED
    if any(each.path for each in spec.validations):
        yield "messages do not name the field and its value"
    if spec.policy:
        yield "a denial names the first field that violates a rule, without its value"
    if {"Deny", "Warn"} <= set(spec.validation_actions):
        yield "Warn: the API server does not take it beside Deny"


def _expressions(value: Any) -> Iterator[str]:
    """Yield the expressions of a spec."""
    if isinstance(value, dict):
        for key, item in value.items():
            if isinstance(item, str) and "xpression" in key:
                yield item
            else:
                yield from _expressions(item)
    elif isinstance(value, list):
        for item in value:
            yield from _expressions(item)


def _is_beyond(expression: str) -> bool:
    return BEYOND.search("".join(TEXT.split(expression)[::2])) is not None


def _rules(exported: ExportedPolicy, spec: AdmissionPolicySpec) -> JsonObject | None:
    """Return variables and rules; None, with the reason in `lost`, if CEL cannot express them."""
    if spec.policy is None:
        inlined = [{"name": "params", "expression": _constant(spec.params)}] if spec.params else []
        variables = [each.model_dump(by_alias=True) for each in spec.variables]
        written: JsonObject = {"variables": inlined + [_inline(each) for each in variables]}
        for key in ("validations", "mutations"):
            rules = [
                rule.model_dump(by_alias=True, exclude_none=True, exclude={"path"})
                for rule in getattr(spec, key)
            ]
            if rules:
                written[key] = [_inline(each) for each in rules]
        return written
    policy = catalogue()[spec.policy]
    counterpart = COUNTERPARTS.get(spec.policy)
    expressions = counterpart(policy.params.model_validate(spec.params)) if counterpart else []
    if not expressions:
        exported.lost.append(f"not exported: {spec.policy} {_why_not(policy, spec.params)}")
        return None
    exported.lost.append("custom resources, and what is created for them, are not judged")
    validations = [each.validation for each in expressions]
    return {"variables": used_variables(expressions), "validations": validations}


def _why_not(policy: Policy, params: JsonObject) -> str:
    """Return why a built-in policy has no rules in CEL."""
    if policy.validate is None:
        return "changes fields by what they contain, which no exported mutation does"
    if policy.needed_look_ups(policy.params.model_validate(params)):
        return "looks up other objects, which CEL in the API server cannot"
    if policy.name in COUNTERPARTS:
        return "with these parameters has no equal rules in CEL"
    return NO_COUNTERPART.get(policy.name, "is written in Python, for the webhook")


def _constant(value: Any) -> str:
    """Return parameters as CEL; the API server rejects a map with values of several types."""
    if isinstance(value, dict):
        entries = (f"{literal(key)}: dyn({_constant(each)})" for key, each in value.items())
        return f"{{{', '.join(entries)}}}"
    if isinstance(value, list):
        return f"[{', '.join(f'dyn({_constant(each)})' for each in value)}]"
    return literal(value)


def _inline(rule: Any) -> Any:
    """Return a rule whose expressions read the parameters from a variable."""
    if isinstance(rule, dict):
        return {
            key: _params(item) if "xpression" in key and isinstance(item, str) else _inline(item)
            for key, item in rule.items()
        }
    return rule


def _params(expression: str) -> str:
    parts = TEXT.split(expression)
    parts[::2] = [PARAMS.sub("variables.params", each) for each in parts[::2]]
    return "".join(parts)


def _targets(spec: AdmissionPolicySpec, clause: MatchClause, namespace: str | None) -> list[Target]:
    """Return the resources of one clause."""
    alone = spec.model_copy(update={"match": spec.match.model_copy(update={"any": [clause]})})
    if spec.policy is None:
        return list(resources_of([], alone, namespace)[0])
    selected = []
    for target in catalogue()[spec.policy].targets:
        kind = target.kind
        requested = clause.operations or target.operations or CREATE_AND_UPDATE
        operations = tuple(each for each in target.operations if each in requested)
        is_named = clause.kinds is None or kind.kind in [e.split("/")[-1] for e in clause.kinds]
        in_clause = clause.subresources is None or target.subresource in clause.subresources
        is_native = f"{kind.resource.api_version}/{kind.kind}" in resources()
        if operations and is_named and in_clause and is_native:
            selected.append(Target(kind, target.subresource, operations))
    return selected


def _objects(
    name: str,
    spec: AdmissionPolicySpec,
    rules: JsonObject,
    match: JsonObject,
    match_conditions: list[JsonObject],
) -> Iterator[JsonObject]:
    sort = "MutatingAdmissionPolicy" if spec.mutations else "ValidatingAdmissionPolicy"
    own = [each.model_dump(by_alias=True) for each in spec.match_conditions]
    policy: JsonObject = {
        "failurePolicy": str(spec.failure_policy),
        "matchConstraints": match,
        "matchConditions": [*match_conditions, *map(_inline, own)],
    }
    policy |= {key: each for key, each in rules.items() if each}
    binding: JsonObject = {"policyName": name}
    if spec.mutations:
        policy["reinvocationPolicy"] = "IfNeeded"
    else:
        is_denied = "Deny" in spec.validation_actions
        binding["validationActions"] = [
            str(action)
            for action in spec.validation_actions
            if not (is_denied and action == "Warn")
        ]
    for kind, body in ((sort, policy), (f"{sort}Binding", binding)):
        yield {
            "apiVersion": API_VERSION,
            "kind": kind,
            "metadata": {"name": name},
            "spec": body,
        }
