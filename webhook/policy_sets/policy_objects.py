"""Policy objects are valid.

Why: the author of an invalid policy learns of it at once, and not from a policy that is silently
not in force. Always in force: it validates Gatewright's own kinds with the code that loads them.
Objects in Gatewright's own namespace are never sent to the webhook; their status reports what is
wrong.

Allowed: an existing policy with valid parameters.
Denied:  `policy: replica-limit`; `params: {maximun: 3}`; a `kinds` that the policy does not judge.
Fix: `gatewright policies` lists the policies, `gatewright explain POLICY` its parameters.
"""

from config.faults import FaultsError
from config.schemas import CustomTypes
from webhook.engine import SCHEMAS, Params, Policy, Request, Violation, Violations
from webhook.engine.kinds import POLICY_KINDS
from webhook.policy_sets.bound_objects import bind, document_of
from webhook.policy_sets.catalogue import catalogue

# Paths of CEL rules, which name no policy.
RULES = ("spec.validations", "spec.mutations", "spec.variables", "spec.matchConditions")


def validate(request: Request, params: Params) -> Violations:
    """Yield one violation for each fault."""
    request.fields("metadata")
    try:
        custom: CustomTypes = request.looked_up.get(SCHEMAS, CustomTypes)()
        bind(document_of(request.value), catalogue(), custom=custom)
    except FaultsError as error:
        for path, text in error.faults:
            rule = f"this {request.kind} would not be in force"
            lists = "" if path.startswith(RULES) else "; `gatewright policies` lists the policies"
            yield Violation(path or "spec", text, rule, f"correct it{lists}")


POLICY = Policy(
    "policy-objects",
    validate=validate,
    kinds=POLICY_KINDS,
    category="gatewright",
    severity="high",
    needs=(SCHEMAS,),
    always=True,
)
