"""Enforcing a policy warns of existing objects that violate it.

Why: existing objects keep running, but their next update, or their next pod, is denied. The warning
gives the number from the last audit; without an audit there is no warning. Always in force.

Judged: updates that make a policy deny, or that change the parameters or match of a denying policy.
A new policy object gets no warning, since no audit has judged by it: create it with `[Warn,
Audit]`, and add Deny after an audit.

Allowed: always; with a warning if existing objects violate the policy.
Denied:  nothing.
Fix: correct the objects first (the audit's reports and `gatewright check --kubeconfig` list them),
or keep Warn.
"""

from webhook.engine import Params, Policy, Request, Violation, Violations
from webhook.engine.fields import Fields
from webhook.engine.kinds import POLICY_KINDS

DENY = "Deny"
# The fields of spec that decide verdicts.
RULES = ("policy", "params", "match", "validations", "variables", "matchConditions")


def validate(request: Request, params: Params) -> Violations:
    """Yield a warning if the status of the policy object counts objects that would be denied."""
    before = Fields(request.old_object or {})
    would_deny = before.integer("status.wouldDeny")
    objects = before.integer("status.auditedObjects")
    if not would_deny or objects is None or not _denies(request):
        return
    spec, old = request.mapping("spec"), before.mapping("spec")
    changes_rule = any(spec.get(part) != old.get(part) for part in RULES)
    if _denies(before) and not changes_rule:
        return
    by = " by its previous rules" if changes_rule else ""
    found = f"{would_deny:,} of {objects:,} objects judged would be denied{by}"
    rule, fix = "the last audit found violations in them", "correct them first, or keep Warn"
    yield Violation("spec.validationActions", found, rule, fix)


def _denies(policy: Fields) -> bool:
    return DENY in (policy.strings("spec.validationActions") or [DENY])


POLICY = Policy(
    "policy-impact",
    validate=validate,
    kinds=tuple(kind for kind in POLICY_KINDS if kind.kind != "PolicyException"),
    operations=("UPDATE",),
    category="gatewright",
    severity="low",
    always=True,
    action="Warn",
)
