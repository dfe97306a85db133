"""Kubernetes' own admission policies in force: each policy, bound by a binding, with its parameters."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from config.api.admission import GROUP, BindingSpec, KubernetesPolicySpec, ParamRef
from config.documents import Document
from config.faults import FaultsError, parse
from webhook.engine.bound import BoundPolicy
from webhook.engine.kinds import Kind, Target
from webhook.engine.match import Match, compile_selector
from webhook.engine.request import NAMESPACE_LABELS, Request
from webhook.engine.rules import Native, RuleError
from webhook.policies._admission_match import condition_of, selects_namespaces, targets_of
from webhook.policies._expressions import Expressions
from webhook.policies._rules import CATEGORY, NAME, RuleParams, RulePolicy, shown

POLICIES = {
    f"{GROUP}/{version}": kinds
    for version, kinds in {
        "v1": {"ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"},
        "v1beta1": {"MutatingAdmissionPolicy"},
        "v1alpha1": {"MutatingAdmissionPolicy"},
    }.items()
}
NO_PARAMS = "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"
NO_TYPE = ("", "")  # API version and kind of what is no object

Object = Mapping[str, Any]
Choose = Callable[[Request], Sequence[Object | None]]
Bindings = list[tuple[str, BindingSpec]]  # of a policy, by name


def native_policies(documents: Iterable[Document], kinds: Sequence[Kind] = ()) -> tuple[list[Native], list[Document]]:
    """Return Kubernetes' policies among the documents, and the documents that are no part of these.

    `kinds` are those of a cluster that the table of kinds does not have.
    """
    faulty: list[Native] = []
    specs: dict[tuple[str, str], tuple[Document, KubernetesPolicySpec]] = {}
    bound: dict[tuple[str, str], Bindings] = {}
    bindings: list[tuple[str, Document]] = []
    others: list[Document] = []
    for document in documents:
        version, kind = _type(document)
        if kind.removesuffix("Binding") not in POLICIES.get(version, ()):
            others.append(document)
        elif kind.endswith("Binding"):
            bindings.append((kind.removesuffix("Binding"), document))
        else:
            bound[kind, _name(document)] = []
            if spec := _parsed(KubernetesPolicySpec, document, faulty):
                specs[kind, _name(document)] = document, spec
    lost: list[Native] = []
    for kind, document in bindings:
        binding = _parsed(BindingSpec, document, faulty)
        if binding is not None and (kind, binding.policy_name) in bound:
            bound[kind, binding.policy_name].append((_name(document), binding))
        elif binding is not None:
            lost.append(Native(document, (), (("spec.policyName", f'no {kind} "{binding.policy_name}" beside it'),)))
    types = {_param_type(spec) for _, spec in specs.values()} - {NO_TYPE}
    params = [each for each in others if _type(each) in types]
    found = [_native(*each, bound[key], params, kinds) for key, each in specs.items()]
    return faulty + found + lost, [each for each in others if _type(each) not in types]


def _native(
    document: Document, spec: KubernetesPolicySpec, bindings: Bindings, params: list[Document], kinds: Sequence[Kind]
) -> Native:
    values = [each.value for each in params if _type(each) == _param_type(spec)]
    try:
        targets = targets_of(spec.match_constraints, kinds)
        return Native(document, tuple(_in_force(_name(document), spec, bindings, values, targets)), ())
    except FaultsError as error:
        return Native(document, (), error.faults)


def _type(document: Document) -> tuple[str, str]:
    """Return API version and kind of a document, blank where it has none."""
    value = document.value if isinstance(document.value, dict) else {}
    return str(value.get("apiVersion", "")), str(value.get("kind", ""))


def _param_type(spec: KubernetesPolicySpec) -> tuple[str, str]:
    return (spec.param_kind.api_version, spec.param_kind.kind) if spec.param_kind else NO_TYPE


def _name(document: Document) -> str:
    metadata = document.value.get("metadata")
    return str(metadata.get("name")) if isinstance(metadata, dict) else ""


def _parsed(model: Any, document: Document, faulty: list[Native]) -> Any:
    try:
        return parse(model, document.value.get("spec") or {}, at="spec")
    except FaultsError as error:
        faulty.append(Native(document, (), error.faults))
        return None


def _in_force(
    name: str, spec: KubernetesPolicySpec, bindings: Bindings, params: Sequence[Object], targets: tuple[Target, ...]
) -> Iterator[BoundPolicy]:
    """Yield the policy as each binding puts it in force. FaultsError where it does not compile, bound or not."""
    found = Expressions(spec, has_params=spec.param_kind is not None)
    for binding_name, binding in bindings:
        matches = spec.match_constraints, binding.match_resources
        yield BoundPolicy(
            name if len(bindings) == 1 else f"{name}:{binding_name}",
            _policy(found, spec, _choose(spec, binding, params), targets),
            RuleParams(),
            Match(),
            frozenset({"Deny"}) if spec.mutations else frozenset(map(str, binding.validation_actions)),
            fails_closed=found.fails_closed,
            tolerates_existing=False,
            severity="medium",
            category=CATEGORY,
            condition=condition_of(*matches),
            condition_needs=found.needs | ({NAMESPACE_LABELS} if selects_namespaces(*matches) else set()),
        )


def _policy(found: Expressions, spec: KubernetesPolicySpec, choose: Choose, targets: tuple[Target, ...]) -> RulePolicy:
    """Return the policy that judges a request by each of the parameters that `choose` returns for it."""

    def each(judge: Callable[[Request, Any], Iterable[Any]]) -> Callable[[Request, Any], Iterator[Any]]:
        def judged(request: Request, _: Any) -> Iterator[Any]:
            for params in choose(request):
                if found.apply(request, params):
                    yield from judge(request, params)

        return judged

    return RulePolicy(
        NAME,
        RuleParams,
        validate=each(found.violations) if spec.validations or found.annotations else None,
        mutate=each(found.patches) if spec.mutations else None,
        annotate=each(found.annotated) if found.annotations else None,
        category=CATEGORY,
        resources=targets,
        rules=shown(spec),
    )


def _choose(spec: KubernetesPolicySpec, binding: BindingSpec, params: Sequence[Object]) -> Choose:
    """Return what chooses the parameters for a request: those of the binding, by name or by labels."""
    reference = binding.param_ref
    if spec.param_kind is None or reference is None:
        return lambda request: (None,)
    named = [(each.get("metadata") or {}, each) for each in params]
    chosen = [(metadata.get("namespace"), each) for metadata, each in named if _is_chosen(reference, metadata)]

    def choose(request: Request) -> Sequence[Object | None]:
        own = request.attributes.namespace
        found = [each for namespace, each in chosen if not namespace or namespace == (reference.namespace or own)]
        if not found and reference.parameter_not_found_action == "Deny":
            raise RuleError(NO_PARAMS)
        return found

    return choose


def _is_chosen(reference: ParamRef, metadata: Object) -> bool:
    if reference.selector is not None:
        return compile_selector(reference.selector)(metadata.get("labels") or {})
    return bool(metadata.get("name") == reference.name)
