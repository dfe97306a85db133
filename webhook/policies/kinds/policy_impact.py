"""Applying a policy warns of what it does to others: existing objects, and requests elsewhere.

Why: existing objects keep running, but their next update, or their next pod, is denied. The warning
gives the number from the last audit; without an audit there is no warning. And the API server can
select the namespaces of a limited number of labels: with more, requests from other namespaces are
sent too, and are denied while no webhook answers. Always in force.

Judged: updates that make a policy deny, or that change the parameters or match of a denying policy.
A new policy object gets no warning of existing objects, since no audit has judged by it: create it
with `[Warn, Audit]`, and add Deny after an audit. Requests from other namespaces: every new or
changed policy, compared with those in force.

Allowed: always; with a warning if existing objects violate the policy, or if it widens what is sent
for itself or another policy.
Denied:  nothing.
Fix: correct the objects first (the audit's reports and `gatewright check --kubeconfig` list them),
or keep Warn. Select namespaces by name, or by values of one label.
"""

from collections.abc import Callable, Sequence

from kube.resource import JsonObject
from webhook.engine import Params, Policy, Request, Violation, Violations
from webhook.engine.fields import Fields
from webhook.engine.kinds import POLICY_KINDS

DENY = "Deny"
# The look-up of a function that returns the titles of the policies for which requests from more
# namespaces than they select would be sent, if a policy object were in force.
WIDENED_BY = "widened_by"
MAX_TITLES = 3
# The fields of spec that decide verdicts.
RULES = ("policy", "params", "match", "validations", "variables", "matchConditions")


def validate(request: Request, params: Params) -> Violations:
    """Yield a warning of existing objects, and one of requests from other namespaces."""
    before = Fields(request.old_object or {})
    if request.attributes.operation == "UPDATE":
        yield from _existing_objects(request, before)
    if request.mapping("spec") != before.mapping("spec"):
        yield from _other_namespaces(request)


def _existing_objects(request: Request, before: Fields) -> Violations:
    """Yield a warning if the status of the policy object counts objects that would be denied."""
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


def _other_namespaces(request: Request) -> Violations:
    """Yield a warning if requests from more namespaces than policies select would be sent."""
    widened_by: Callable[[JsonObject], Sequence[str]] | None = request.looked_up.get(WIDENED_BY)
    if widened_by is None or not (titles := widened_by(request.value)):
        return
    names = ", ".join(titles[:MAX_TITLES])
    more = f" and {len(titles) - MAX_TITLES:,} more" if len(titles) > MAX_TITLES else ""
    selects = "selects" if len(titles) == 1 else "select"
    found = f"requests from more namespaces than {names}{more} {selects} would reach the webhook"
    rule = "they are denied while no webhook answers"
    yield Violation("spec.match", found, rule, "select namespaces by name, or values of one label")


def _denies(policy: Fields) -> bool:
    return DENY in (policy.strings("spec.validationActions") or [DENY])


POLICY = Policy(
    "policy-impact",
    validate=validate,
    kinds=tuple(kind for kind in POLICY_KINDS if kind.kind != "PolicyException"),
    category="gatewright",
    severity="low",
    needs=(WIDENED_BY,),
    always=True,
    action="Warn",
)
