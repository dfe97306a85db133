"""A WebApp's pods and its autoscaling are valid.

Why: the API server rejects pods with contradictory resources or security contexts. It validates a
WebApp against its schema only, so such a WebApp would be admitted and never run. Always in force,
as part of the kind.

Allowed: `resources: {requests: {cpu: 100m}, limits: {cpu: "1"}}`; `securityContext: {privileged:
         true}` without `allowPrivilegeEscalation: false`.
Denied:  a request above its limit, or below 0; `requests: {example.com/gpu: 1}` without the same
         limit; `privileged: true` or the capability `CAP_SYS_ADMIN` beside
         `allowPrivilegeEscalation: false`; `runAsUser: -1`; a profile of type Localhost without its
         file; `autoscaling` whose `min` is above its `max`.
Fix: the message names the field, its value and the allowed values.
"""

from webhook.engine import Params, Policy, Request, Violations
from webhook.policies._field_checks import judge_autoscaling, judge_fields


def validate(request: Request, params: Params) -> Violations:
    """Yield one violation for each setting that the API server rejects in a child."""
    spec = request.fields("spec")
    yield from judge_fields(spec)
    yield from judge_autoscaling(spec, excludes_replicas=False)


POLICY = Policy(
    "webapp-rules", validate=validate, kinds=("WebApp",), category="webapp", always=True
)
