"""A probe's timeout is shorter than its period.

Why: with a `timeoutSeconds` of `periodSeconds` or more, a slow container is probed without a pause,
and its failure is detected too late.

Judged: liveness, readiness and startup probes. Unset fields count as Kubernetes' defaults: a
timeout of 1 second and a period of 10 seconds. The shortest timeout, 1 second, is always allowed.

Allowed: `{timeoutSeconds: 2, periodSeconds: 10}`.
Denied:  `{timeoutSeconds: 10}`, which is as long as the period.
Fix: shorten the timeout, or lengthen the period.
"""

from webhook.engine import Params, Policy, Request, Violations
from webhook.policies._records import having

PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
SHORTEST = 1
FIELD, RULE = "timeoutSeconds", "must be less than periodSeconds"
FIX = "shorten the timeout, or lengthen the period"


def validate(request: Request, params: Params) -> Violations:
    """Yield a violation for each probe whose timeout is not shorter than its period."""
    for name in PROBES:
        for container in having(request.containers(ephemeral=False), name):
            probe = container.fields(name)
            timeout = probe.integer(FIELD) or 1
            period = probe.integer("periodSeconds") or 10
            if timeout >= period and timeout > SHORTEST:
                found, excess = f"{timeout}, and periodSeconds is {period}", timeout - period
                yield probe.violation(FIELD, timeout, RULE, FIX, found=found, excess=excess)


POLICY = Policy("probe-timeouts", validate=validate, category="reliability", severity="low")
