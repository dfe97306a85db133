"""A workload keeps the service account that it was made with.

Why: who may edit a Deployment but not make one could otherwise hand its pods the rights of any account in the
namespace.

Judged: updates of everything that makes pods. Who may do it all the same is said by the policy object's
`match.exclude`.

Allowed: an update that leaves `serviceAccountName` as it is; naming `default` where there was none.
Denied:  an update that changes it, removes it, or adds another one.
Fix: leave it, or make the workload anew.
"""

from collections.abc import Iterator

from webhook.engine import Params, Policy, Request, Violation
from webhook.engine.service_accounts import FIELD, account_of
from webhook.engine.violation import shown


def validate(request: Request, params: Params) -> Iterator[Violation]:
    """Yield a violation where an update changes the account."""
    before = request.before()
    pod, old_pod = request.pod(), before.pod() if before is not None else None
    if pod is None or old_pod is None:
        return
    account, old = account_of(pod), account_of(old_pod)
    if account != old:
        rule = f"an update must not change the service account, which is {shown(old)}"
        yield pod.violation(FIELD, account, rule, "leave it, or make the workload anew")


POLICY = Policy(
    "service-account-changes",
    validate=validate,
    kinds="pods",
    operations=("UPDATE",),
    category="rbac",
    severity="high",
)
