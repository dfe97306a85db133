"""A workload's service account does not change.

Why: a user who can update a Deployment but not create one could otherwise give its pods the rights
of any ServiceAccount in the namespace.

Exempt users with the policy object's `match.exclude`.

Allowed: an update that does not change `serviceAccountName`; setting `default` where it was unset.
Denied:  an update that changes it, removes it, or adds another one.
Fix: restore it, or delete and recreate the workload.
"""

from webhook.engine import Params, Policy, Request, Violations
from webhook.engine.violation import shown
from webhook.policies.service_accounts import FIELD, account_of


def validate(request: Request, params: Params) -> Violations:
    """Yield a violation if an update changes the account."""
    before = request.before()
    pod, old_pod = request.pod(), before.pod() if before is not None else None
    if pod is None or old_pod is None:
        return
    account, old = account_of(pod), account_of(old_pod)
    if account != old:
        rule = f"an update must not change the service account, which is {shown(old)}"
        yield pod.violation(FIELD, account, rule, "restore it, or delete and recreate the workload")


POLICY = Policy(
    "service-account-changes",
    validate=validate,
    operations=("UPDATE",),
    category="rbac",
    severity="high",
)
