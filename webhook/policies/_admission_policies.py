"""Kubernetes' own admission policies in force: each policy, bound by a binding, with its parameters."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from config.api.admission import GROUP, BindingSpec, KubernetesPolicySpec, ParamRef
from config.api.policy import AdmissionPolicySpec
from config.documents import Document
from config.faults import FaultsError, parse
from webhook.engine.bound import BoundPolicy
from webhook.engine.match import Match, compile_selector
from webhook.engine.request import NAMESPACE_LABELS, Request
from webhook.engine.rules import Condition, Native, RuleError
from webhook.policies._admission_match import condition_of, selects_namespaces, targets_of
from webhook.policies._rules import RuleParams, compile_expressions

POLICIES = {
    f"{GROUP}/{version}": kinds
    for version, kinds in {
        "v1": {"ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"},
        "v1beta1": {"MutatingAdmissionPolicy"},
        "v1alpha1": {"MutatingAdmissionPolicy"},
    }.items()
}


@dataclass(frozen=True, slots=True)
class Bound:
    """One pair of a policy and a binding, before it has its parameters."""

    name: str
    kind: str
    spec: KubernetesPolicySpec
    binding: BindingSpec


def native_policies(documents: Iterable[Document]) -> tuple[list[Native], list[Document]]:
    """Return Kubernetes' policies among the documents, and the documents that are no part of these."""
    policies: dict[tuple[str, str], Document] = {}
    bindings: list[tuple[str, Document]] = []
    others: list[Document] = []
    for document in documents:
        kind = _kind(document)
        if kind is None:
            others.append(document)
        elif kind.endswith("Binding"):
            bindings.append((kind.removesuffix("Binding"), document))
        else:
            policies[kind, str((document.value.get("metadata") or {}).get("name"))] = document
    if not policies and not bindings:
        return [], others
    found: list[Native] = []
    params: dict[int, Document] = {}
    specs = {key: _parsed(KubernetesPolicySpec, document, found) for key, document in policies.items()}
    for (kind, name), spec in specs.items():
        if spec is None:
            continue
        known = [each for each in others if spec.param_kind and _is_param(each.value, spec)]
        params |= {id(each): each for each in known}
        used = [(each, _parsed(BindingSpec, each, found)) for of, each in bindings if of == kind]
        bound = [Bound(name, kind, spec, each) for _, each in used if each is not None and each.policy_name == name]
        found += _in_force(policies[kind, name], bound, [each.value for each in known])
    for of, document in bindings:
        wanted = (document.value.get("spec") or {}).get("policyName")
        if (of, wanted) not in policies:
            found.append(Native(document, (), (("spec.policyName", f'no {of} "{wanted}" beside it'),)))
    return found, [each for each in others if id(each) not in params]


def _kind(document: Document) -> str | None:
    value = document.value
    if not isinstance(value, dict):
        return None
    kinds, kind = POLICIES.get(str(value.get("apiVersion")), set()), str(value.get("kind"))
    return kind if kind.removesuffix("Binding") in kinds else None


def _parsed(model: Any, document: Document, found: list[Native]) -> Any:
    try:
        return parse(model, document.value.get("spec") or {})
    except FaultsError as error:
        found.append(Native(document, (), error.below("spec").faults))
        return None


def _is_param(value: Any, spec: KubernetesPolicySpec) -> bool:
    wanted = spec.param_kind
    assert wanted is not None
    return isinstance(value, dict) and (value.get("apiVersion"), value.get("kind")) == (wanted.api_version, wanted.kind)


def _in_force(document: Document, bound: Sequence[Bound], params: Sequence[dict[str, Any]]) -> Iterator[Native]:
    try:
        made = [policy for each in bound for policy in _bound(each, params)]
        if not bound:
            _bound_once(
                Bound(document.value["metadata"]["name"], "", _spec(document), BindingSpec(policy_name="")), None
            )
    except FaultsError as error:
        yield Native(document, (), error.faults)
        return
    if len(made) > 1:
        made = [replace(each, name=f"{each.name}-{index}") for index, each in enumerate(made, start=1)]
    yield Native(document, tuple(made), ())


def _spec(document: Document) -> KubernetesPolicySpec:
    spec: KubernetesPolicySpec = parse(KubernetesPolicySpec, document.value.get("spec") or {})
    return spec


def _bound(bound: Bound, params: Sequence[dict[str, Any]]) -> Iterator[BoundPolicy]:
    """Yield the policy with each of its parameters."""
    reference = bound.binding.param_ref
    if bound.spec.param_kind is None or reference is None:
        yield _bound_once(bound, None)
        return
    chosen = [each for each in params if _is_chosen(reference, each.get("metadata") or {})]
    for param in chosen:
        policy = _bound_once(bound, param)
        namespace = (param.get("metadata") or {}).get("namespace")
        if namespace and not reference.namespace:
            policy = replace(policy, condition=_also(policy.condition, _in(namespace)))
        yield policy
    if not chosen and reference.parameter_not_found_action == "Deny":
        policy = _bound_once(bound, {})
        yield replace(policy, condition=_also(policy.condition, _without_params))


def _in(namespace: str) -> Condition:
    return lambda request: request.attributes.namespace == namespace


def _without_params(_: Request) -> bool:
    raise RuleError(
        "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"
    )


def _is_chosen(reference: ParamRef, metadata: Mapping[str, Any]) -> bool:
    if reference.namespace and metadata.get("namespace") != reference.namespace:
        return False
    if reference.selector is not None:
        return compile_selector(reference.selector)(metadata.get("labels") or {})
    return bool(metadata.get("name") == reference.name)


def _bound_once(bound: Bound, params: dict[str, Any] | None) -> BoundPolicy:
    spec, binding = bound.spec, bound.binding
    rules = AdmissionPolicySpec.model_construct(
        policy=None,
        params=params or {},
        validations=spec.validations,
        mutations=spec.mutations,
        variables=spec.variables,
        match_conditions=spec.match_conditions,
        failure_policy=spec.failure_policy,
    )
    compiled = compile_expressions(
        rules, targets_of(spec.match_constraints.resource_rules), spec.param_kind is not None
    )
    assert compiled.policy is not None
    needs = compiled.needs
    if any(map(selects_namespaces, (spec.match_constraints, binding.match_resources))):
        needs |= {NAMESPACE_LABELS}
    condition = _also(condition_of(spec.match_constraints), condition_of(binding.match_resources))
    if compiled.condition is not None:
        condition = _also(condition, compiled.condition)
    return BoundPolicy(
        bound.name,
        compiled.policy,
        RuleParams.model_validate(params or {}),
        Match(),
        frozenset(map(str, binding.validation_actions)) if spec.validations else frozenset({"Deny"}),
        fails_closed=spec.failure_policy == "Fail",
        tolerates_existing=False,
        severity="medium",
        category="custom",
        condition=condition,
        condition_needs=needs,
    )


def _also(one: Condition | None, other: Condition) -> Condition:
    return other if one is None else lambda request: one(request) and other(request)
