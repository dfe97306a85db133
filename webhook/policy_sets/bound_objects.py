"""Checks one object of a policy set and turns it into a policy or an exception in force."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import orjson

from config.api.match import MatchSpec
from config.api.policy import (
    API_VERSION,
    UNKNOWN_FIELDS,
    AdmissionPolicySpec,
    PolicyDocument,
    PolicyMetadata,
)
from config.api.policy_exception import PolicyExceptionSpec
from config.faults import FaultsError, did_you_mean, parse, refuse
from webhook.engine.bound import BoundPolicy
from webhook.engine.exceptions import BoundException
from webhook.engine.look_ups import LOOK_UPS
from webhook.engine.match import compile_match
from webhook.engine.policy import Params, Policy
from webhook.policy_sets.clause_faults import clause_faults, exclude_faults
from webhook.policy_sets.compiled_rules import Rules
from webhook.policy_sets.kind_names import with_plain_kinds

Catalogue = Mapping[str, Policy]
# Look-ups that show objects of other namespaces; a tenant's policy judges nothing cluster-scoped.
OF_ALL_NAMESPACES = frozenset(
    name
    for name, look_up in LOOK_UPS.items()
    if look_up.everywhere and any(each.namespaced for each in look_up.resources)
)

if TYPE_CHECKING:
    from config.schemas import CustomTypes
# Size of one object as JSON, or of all objects of a tenant: compiling these takes well below a
# second.
MAX_POLICY_BYTES = 64 * 1024
# Of the objects of all tenants: their patterns and expressions take up to ten times that in memory.
MAX_TENANTS_BYTES = 8 * 1024 * 1024
POLICY_SET_KINDS = ("ClusterAdmissionPolicy", "AdmissionPolicy", "PolicyException")

ALLOW = "allow"  # the value of the annotation UNKNOWN_FIELDS


def bind(
    value: Any,
    catalogue: Catalogue,
    *,
    stored: bool = False,
    custom: "CustomTypes | None" = None,
) -> BoundPolicy | BoundException:
    """Return the policy or exception of one object. Raises FaultsError with all faults.

    `custom` are the types of custom kinds, by which rules in CEL are checked too.

    A `stored` object stays in force if words of its match add nothing, and if its rules read
    fields that no kind has.
    """
    if not isinstance(value, dict):
        refuse("", "not an object")
    if value.get("apiVersion") != API_VERSION or value.get("kind") not in POLICY_SET_KINDS:
        is_typed = {"apiVersion", "kind"} <= value.keys()
        found = f"{value['apiVersion']} {value['kind']}" if is_typed else "this"
        kinds = f"{', '.join(POLICY_SET_KINDS[:-1])} and {POLICY_SET_KINDS[-1]}"
        refuse("", f"a policy set contains {API_VERSION} {kinds} objects, not {found}")
    if (size := size_of(value)) > MAX_POLICY_BYTES:
        refuse("", f"has {size:,} bytes; at most {MAX_POLICY_BYTES:,} are allowed")
    document = parse(PolicyDocument, value)
    if document.kind == "PolicyException":
        excepted = parse(PolicyExceptionSpec, document.spec, at="spec")
        return BoundException(document.metadata.namespace, excepted, document.metadata.name, size)
    spec = parse(AdmissionPolicySpec, document.spec, at="spec")
    in_a_namespace = document.kind == "AdmissionPolicy"
    namespace = document.metadata.namespace if in_a_namespace else None
    _check_sort(spec, in_a_namespace=in_a_namespace)
    rules, uses_cel = Rules(), spec.policy is None or bool(spec.match_conditions)
    if uses_cel:
        # Imported here: it imports CEL, 40 modules that most policy sets do not need.
        from webhook.policy_sets.rules import compile_rules

        rules = compile_rules(spec, namespace, stored=stored)
    if rules.policy is not None:
        policy, params, match = rules.policy, rules.params, rules.match
    else:
        policy, match = _policy(spec, catalogue, namespace, stored=stored)
        params = parse(policy.params, spec.params, noun="parameter", at="spec.params")
    faults = [*exclude_faults(match.exclude)]
    if uses_cel and not stored and document.metadata.annotations.get(UNKNOWN_FIELDS) != ALLOW:
        from webhook.policy_sets.rule_types import check_types

        type_faults = check_types(spec, policy.targets, custom)
        faults += ((fault.path, fault.text) for fault in type_faults if fault.is_certain)
    if faults:
        raise FaultsError(faults)
    if in_a_namespace:
        _check_tenant(policy, params, document.metadata)
    severity, category = spec.severity or policy.severity, spec.category or policy.category
    return BoundPolicy(
        document.metadata.name,
        replace(policy, severity=severity, category=category),
        params,
        compile_match(match),
        frozenset(map(str, spec.validation_actions)),
        fails_closed=spec.failure_policy == "Fail",
        namespace=namespace,
        tolerates_existing=spec.allow_existing_violations and not rules.depends_on_sender,
        condition=rules.condition,
        condition_needs=rules.needs,
        size=size,
        evaluates=uses_cel,
    )


def size_of(value: Mapping[str, Any]) -> int:
    """Return the bytes of an object of a policy set as JSON."""
    return len(orjson.dumps(value, default=str))


def _check_sort(spec: AdmissionPolicySpec, *, in_a_namespace: bool) -> None:
    """Reject an object that has not exactly one of policy, validations and mutations.

    Cases of tenants are rejected: each process would run them at its start.
    """
    if spec.cases and in_a_namespace:
        refuse("spec.cases", "only a ClusterAdmissionPolicy carries cases; leave them out")
    set_fields = [name for name in ("policy", "validations", "mutations") if getattr(spec, name)]
    if not set_fields:
        text = "missing; name a built-in policy, or give validations or mutations in CEL"
        refuse("spec.policy", text)
    if len(set_fields) > 1:
        refuse(f"spec.{set_fields[1]}", f"not beside `{set_fields[0]}`; use one object for each")
    if spec.variables and spec.policy:
        refuse("spec.variables", "not beside `policy`; a built-in policy reads no variables")


def document_of(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return a stored object as its author would write it, without fields of the API server."""
    metadata = stored.get("metadata") or {}
    named = {key: metadata[key] for key in ("name", "namespace") if key in metadata}
    if allowed := (metadata.get("annotations") or {}).get(UNKNOWN_FIELDS):
        named["annotations"] = {UNKNOWN_FIELDS: allowed}
    if "name" not in named and "generateName" in metadata:
        named["name"] = f"{metadata['generateName']}generated"
    kept = {key: stored[key] for key in ("apiVersion", "kind", "spec") if key in stored}
    return {**kept, "metadata": named}


def _policy(
    spec: AdmissionPolicySpec, catalogue: Catalogue, namespace: str | None, *, stored: bool
) -> tuple[Policy, MatchSpec]:
    """Return the named built-in policy, and the match with plain names of kinds.

    A tenant's policy judges no cluster-scoped kinds.
    """
    assert spec.policy is not None
    policy = catalogue.get(spec.policy)
    if policy is None:
        refuse("spec.policy", f'no policy "{spec.policy}"{did_you_mean(spec.policy, catalogue)}')
    everything = policy.targets
    targets = [target for target in everything if target.kind.namespaced or namespace is None]
    if everything and not targets:
        text = "judges only cluster-scoped kinds; use a ClusterAdmissionPolicy"
        refuse("spec.policy", f"{policy.name} {text}")
    match = spec.match
    if any(clause.kinds for clause in match.any):
        match = with_plain_kinds(match, [target.kind for target in targets])
    judged = {
        "kinds": {target.kind.kind for target in targets},
        "operations": {operation for target in targets for operation in target.operations},
        "subresources": {target.subresource for target in targets},
    }
    faults = [
        (
            f"spec.match.any[{index}].{field}",
            f'{policy.name} does not look at "{word}"{did_you_mean(word, _quoted_names(words))}',
        )
        for index, clause in enumerate(match.any)
        for field, words in judged.items()
        for word in getattr(clause, field) or ()
        if word not in words
    ] or [
        fault
        for index, clause in enumerate(match.any)
        for fault in clause_faults(
            f"spec.match.any[{index}]", clause, targets, namespace, lambda: targets, stored=stored
        )
    ]
    if faults:
        raise FaultsError(faults)
    return policy, match


def _quoted_names(known: set[str]) -> set[str]:
    return {each or '""' for each in known}


def _check_tenant(policy: Policy, params: Params, metadata: PolicyMetadata) -> None:
    """Reject a tenant's policy that mutates, reads other namespaces, or has no namespace."""
    if metadata.namespace is None:
        text = "missing; an AdmissionPolicy is in force in its own namespace"
        refuse("metadata.namespace", text)
    if policy.mutate is not None:
        refuse("spec.policy", f"{policy.name} changes objects; an AdmissionPolicy can only deny")
    if policy.needed_look_ups(params) & OF_ALL_NAMESPACES:
        text = "looks at objects of all namespaces; an AdmissionPolicy knows those of its own"
        refuse("spec.policy", f"{policy.name} {text}")
