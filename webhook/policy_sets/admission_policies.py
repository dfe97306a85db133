"""Kubernetes' own admission policies, each in force with a binding and its parameters.

CEL is imported only if there are any.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from config.api.admission import GROUP, BindingSpec, KubernetesPolicySpec, ParamRef
from config.documents import Document
from config.faults import FaultsError, parse
from kube.resource import JsonObject
from webhook.engine.bound import BoundPolicy
from webhook.engine.engine import Engine
from webhook.engine.kinds import Kind
from webhook.engine.match import Match, compile_selector
from webhook.engine.policy import RuleError
from webhook.engine.request import NAMESPACE_LABELS, Request
from webhook.policy_sets.admission_match import condition_of, selects_namespaces, targets_of

VERSIONS = {
    "MutatingAdmissionPolicy": ("v1", "v1beta1", "v1alpha1"),
    "ValidatingAdmissionPolicy": ("v1",),
}
POLICIES = {(f"{GROUP}/{each}", kind) for kind, versions in VERSIONS.items() for each in versions}
PARAMS_NOT_FOUND = (
    "failed to configure binding: no params found for policy binding with `Deny` "
    "parameterNotFoundAction"
)
API_BUDGET = 10_000_000  # units for a policy, as many as in the API server
NO_TYPE = ("", "")  # API version and kind of a document that is not an object

Bindings = list[tuple[str, BindingSpec]]  # of a policy, by name
# Returns whether the match conditions hold for a request and parameters.
Applies = Callable[[Request, Any], bool]


@dataclass(frozen=True, slots=True)
class Native:
    """One of Kubernetes' own policies, or a binding: the policies in force, and its faults."""

    document: Document
    policies: tuple[BoundPolicy, ...]
    faults: tuple[tuple[str, str], ...]


def native_policies(
    documents: Iterable[Document], kinds: Sequence[Kind] = (), *, is_offline: bool = False
) -> tuple[list[Native], list[Document]]:
    """Return Kubernetes' policies among the documents, and the other documents.

    `kinds` are the judged kinds that the table of kinds lacks. Documents that are parameters of a
    policy are not among the others. Where no review waits (`is_offline`), expressions get the API
    server's budget.
    """
    natives: list[Native] = []
    unbound: list[Native] = []
    specs: list[tuple[Document, KubernetesPolicySpec, Bindings]] = []
    bound: dict[tuple[str, str], Bindings] = {}
    bindings: list[Document] = []
    others: list[Document] = []
    for document in documents:
        version, kind = _type(document)
        if (version, kind.removesuffix("Binding")) not in POLICIES:
            others.append(document)
        elif kind.endswith("Binding"):
            bindings.append(document)
        else:
            of_policy = bound[kind, _name(document)] = []
            if spec := _parse(KubernetesPolicySpec, document, natives):
                specs.append((document, spec, of_policy))
    for document in bindings:
        if binding := _parse(BindingSpec, document, unbound):
            kind = _type(document)[1].removesuffix("Binding")
            if (kind, binding.policy_name) in bound:
                bound[kind, binding.policy_name].append((_name(document), binding))
            else:
                fault = "spec.policyName", f'no {kind} "{binding.policy_name}" beside it'
                unbound.append(Native(document, (), (fault,)))
    types = {_param_type(spec) for _, spec, _ in specs} - {NO_TYPE}
    params = [each for each in others if _type(each) in types]
    for document, spec, of_policy in specs:
        values = [each.value for each in params if _type(each) == _param_type(spec)]
        try:
            policies = tuple(_in_force(document, spec, of_policy, values, kinds, is_offline))
            natives.append(Native(document, policies, ()))
        except FaultsError as error:
            natives.append(Native(document, (), error.faults))
    return natives + unbound, [each for each in others if _type(each) not in types]


def join_policies(engine: Engine, policies: Iterable[BoundPolicy]) -> Engine:
    """Return the engine with more policies, named `kubernetes:NAME` if the name is taken."""
    taken, more = {each.title for each in engine.policies}, []
    for policy in policies:
        name = f"kubernetes:{policy.name}" if policy.name in taken else policy.name
        more.append(replace(policy, name=name))
    return engine.with_policies((*engine.policies, *more)) if more else engine


def _incomplete(spec: KubernetesPolicySpec, kind: str) -> Iterator[tuple[str, str]]:
    """Yield the fields that the API server requires or rejects in a policy of this kind."""
    if not spec.match_constraints.resource_rules:
        yield "spec.matchConstraints.resourceRules", "missing; name the resources that it is about"
    if kind == "ValidatingAdmissionPolicy":
        if not (spec.validations or spec.audit_annotations):
            yield "spec.validations", "missing; give at least one, or auditAnnotations"
    elif not spec.mutations:
        yield "spec.mutations", "missing; give at least one"
    elif any("DELETE" in each.operations for each in spec.match_constraints.resource_rules):
        text = "a MutatingAdmissionPolicy changes no object that is deleted: leave out DELETE"
        yield "spec.matchConstraints.resourceRules", text


def _type(document: Document) -> tuple[str, str]:
    """Return API version and kind of a document; empty if it has none."""
    value = document.value if isinstance(document.value, dict) else {}
    return str(value.get("apiVersion", "")), str(value.get("kind", ""))


def _param_type(spec: KubernetesPolicySpec) -> tuple[str, str]:
    return (spec.param_kind.api_version, spec.param_kind.kind) if spec.param_kind else NO_TYPE


def _name(document: Document) -> str:
    metadata = document.value.get("metadata")
    return str(metadata.get("name")) if isinstance(metadata, dict) else ""


def _parse(model: Any, document: Document, faulty: list[Native]) -> Any:
    try:
        return parse(model, document.value.get("spec") or {}, at="spec")
    except FaultsError as error:
        faulty.append(Native(document, (), error.faults))
        return None


def _in_force(
    document: Document,
    spec: KubernetesPolicySpec,
    bindings: Bindings,
    params: Sequence[JsonObject],
    kinds: Sequence[Kind],
    is_offline: bool,
) -> Iterator[BoundPolicy]:
    """Yield the policy with each binding.

    Raises FaultsError if it does not compile, also without a binding.
    """
    if faults := tuple(_incomplete(spec, _type(document)[1])):
        raise FaultsError(faults)
    from webhook.policy_sets.expressions import Expressions  # with CEL: 40 modules
    from webhook.policy_sets.rules import RuleParams, rule_policy

    targets = targets_of(spec.match_constraints, kinds)
    budget = API_BUDGET if is_offline else None
    expressions = Expressions(spec, has_params=spec.param_kind is not None, budget=budget)
    name = _name(document)
    for binding_name, binding in bindings:
        matches = spec.match_constraints, binding.match_resources
        params_of = _params_of(expressions.apply, spec, binding, params)
        yield BoundPolicy(
            name if len(bindings) == 1 else f"{name}:{binding_name}",
            rule_policy(spec, expressions, targets, params_of),
            RuleParams(),
            Match(),
            frozenset(["Deny"] if spec.mutations else map(str, binding.validation_actions)),
            fails_closed=expressions.fails_closed,
            tolerates_existing=False,
            condition=condition_of(*matches, kinds=kinds),
            condition_needs=frozenset({NAMESPACE_LABELS} if selects_namespaces(*matches) else ()),
        )


def _params_of(
    applies: Applies, spec: KubernetesPolicySpec, binding: BindingSpec, params: Sequence[JsonObject]
) -> Callable[[Request, Any], Iterable[Any]]:
    """Return a function of a request that yields the parameters for which the conditions hold."""
    reference = binding.param_ref
    if spec.param_kind is None or reference is None:
        return lambda request, _: [None] if applies(request, None) else []
    named = [(each.get("metadata") or {}, each) for each in params]
    chosen = [(own.get("namespace"), each) for own, each in named if _is_chosen(reference, own)]

    def params_of(request: Request, _: Any) -> Iterator[JsonObject]:
        own = reference.namespace or request.attributes.namespace
        values = [each for namespace, each in chosen if not namespace or namespace == own]
        if not values and reference.parameter_not_found_action == "Deny":
            raise RuleError(PARAMS_NOT_FOUND)
        return (each for each in values if applies(request, each))

    return params_of


def _is_chosen(reference: ParamRef, metadata: JsonObject) -> bool:
    if reference.selector is not None:
        return compile_selector(reference.selector)(metadata.get("labels") or {})
    return bool(metadata.get("name") == reference.name)
