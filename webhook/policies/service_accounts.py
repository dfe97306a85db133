"""Pods do not run as the namespace's default service account.

Why: all pods of a namespace without a service account share `default`; a right granted for one of
them is granted to all.

Allowed: `serviceAccountName: shop`.
Denied:  `serviceAccountName: default`, or none; with `allowed`, any other account.
Fix: create a ServiceAccount for the workload and set its name.
"""

from pydantic import Field

from webhook.engine import Fields, Params, Policy, Request, Violations
from webhook.engine.globs import Globs

FIELD = "serviceAccountName"


class ServiceAccounts(Params):
    """Which service accounts pods may run as."""

    forbidden: Globs = Field(
        Globs(["default"]), description="accounts (globs) that no pod may run as"
    )
    allowed: Globs = Field(
        Globs(["*"]), min_length=1, description="accounts (globs) that pods may run as"
    )


def validate(request: Request, params: ServiceAccounts) -> Violations:
    """Yield a violation if a pod runs as an account that is not allowed."""
    pod = request.pod()
    if pod is None:
        return
    account = account_of(pod)
    if params.forbidden.match(account):
        rule = "pods need a service account of their own"
        yield pod.violation(FIELD, account, rule, "name one that is created for it")
    elif not params.allowed.match(account):
        rule = f"must be an allowed service account: {', '.join(params.allowed)}"
        yield pod.violation(FIELD, account, rule, "name one of them")


def account_of(pod: Fields) -> str:
    """Return the service account that a pod runs as.

    `serviceAccount` is the older name of the field; a pod without one runs as `default`.
    """
    return pod.string(FIELD) or pod.string("serviceAccount") or "default"


POLICY = Policy("service-accounts", ServiceAccounts, validate=validate, category="rbac")
