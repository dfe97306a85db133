"""Pods do not mount a service account token unless they need one.

Why: a token is mounted into every pod by default. Few programs use it, and an attacker in the pod
gets all rights of its service account.

A pod must set `false` itself, since an unset field follows the ServiceAccount, which may change
later. A ServiceAccount must not set `true`. Tokens in explicit projected volumes are allowed.

Allowed: `automountServiceAccountToken: false`; any value for a service account listed in `allowed`.
Denied:  `automountServiceAccountToken: true`, or an unset field in a pod.
Fix: set it to false; give a program that calls the API server its own service account.
See: https://kubernetes.io/docs/tasks/configure-pod-container/configure-service-account/
"""

from pydantic import Field

from webhook.engine import Fix, Params, Policy, Request, Violations
from webhook.engine.globs import Globs
from webhook.policies.service_accounts import account_of

PATH = "automountServiceAccountToken"


class ServiceAccountTokens(Params):
    """Whose tokens may be mounted."""

    allowed: Globs = Field(
        Globs(), description="service accounts whose token may be mounted, as patterns (`*`, `?`)"
    )


def validate(request: Request, params: ServiceAccountTokens) -> Violations:
    """Yield a violation if a token is mounted that must not be."""
    pod = request.pod()
    if pod is None and request.kind != "ServiceAccount":
        return
    judged, account = (request, request.name) if pod is None else (pod, account_of(pod))
    mounted = judged.boolean(PATH)
    is_unset = mounted is None and pod is not None
    if (mounted or is_unset) and not params.allowed.match(account):
        found = f"{'unset' if mounted is None else 'true'}, with the service account {account}"
        names = ", ".join(params.allowed)
        rule = f"only tokens of {names} may be mounted" if names else "no token may be mounted"
        yield judged.violation(
            PATH, (mounted, account), rule, "set it to false", found=found, fix_value=False
        )


POLICY = Policy(
    "service-account-tokens",
    ServiceAccountTokens,
    validate=validate,
    kinds=("pods", "ServiceAccount"),
    category="pod-security",
    fix=Fix(False, "a program that calls the API server loses its token"),
)
