"""Applying CEL rules warns of type errors, as a ValidatingAdmissionPolicy's status does.

Why: the API's objects have types, but an expression about them compiles without. A comparison of a
number with a text is never true, and a rule that reads a field of Deployments fails for every
StatefulSet that it matches. Always in force.

Judged: policy objects with CEL expressions, against the kinds that they match (at most ten; custom
kinds, as the API server serves them). A field that none of these kinds has is a violation of
policy-objects. Rules that test `object.kind`, or that a field exists, may read fields of one kind
only.

Allowed: always; with a warning for each error.
Denied:  nothing.
Fix: correct the expression, or test `object.kind` first.
"""

from config.api.policy import AdmissionPolicySpec
from config.faults import FaultsError
from config.schemas import CustomTypes
from webhook.engine import SCHEMAS, BoundPolicy, Params, Policy, Request, Violation, Violations
from webhook.engine.kinds import POLICY_KINDS
from webhook.policy_sets.bound_objects import bind, document_of
from webhook.policy_sets.catalogue import catalogue


def validate(request: Request, params: Params) -> Violations:
    """Yield a violation for each type error of an expression."""
    custom: CustomTypes = request.looked_up.get(SCHEMAS, CustomTypes)()
    try:
        bound = bind(document_of(request.value), catalogue(), custom=custom)
    except FaultsError:
        return  # policy-objects denies it
    if not isinstance(bound, BoundPolicy) or not bound.evaluates:
        return
    # Imported here: it imports CEL, and this policy is in force in every process.
    from webhook.policy_sets.rule_types import check_types

    spec = AdmissionPolicySpec.model_validate(request.value["spec"])
    for fault in check_types(spec, bound.policy.targets, custom):
        fix = "correct it, or test `object.kind` first"
        yield Violation(fault.path, fault.text, fault.checked_kinds, fix)


POLICY = Policy(
    "rule-types",
    validate=validate,
    kinds=tuple(kind for kind in POLICY_KINDS if kind.kind != "PolicyException"),
    category="gatewright",
    severity="medium",
    needs=(SCHEMAS,),
    always=True,
    action="Warn",
)
