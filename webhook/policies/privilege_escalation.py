"""No process in a container gains more privileges than its parent had.

Why: otherwise a set-user-ID program in the image can turn any user into root.

Judged: all containers; Windows pods, where the API forbids the field, are skipped.

Allowed: `securityContext: {allowPrivilegeEscalation: false}`.
Denied:  `allowPrivilegeEscalation: true`, or not set, which means true.
Fix: set it to false.
See: https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted
"""

from pydantic import Field

from webhook.engine import Fields, Params, Policy
from webhook.policies._forbids import containers, forbids
from webhook.policies._security_contexts import is_windows


class PrivilegeEscalation(Params):
    """Who must forbid the escalation of privileges."""

    exempt_windows: bool = Field(True, description="skip Windows pods, where the API forbids the field")


validate = forbids(
    containers,
    "securityContext.allowPrivilegeEscalation",
    Fields.boolean,
    unless=lambda found, params: found is False,
    rule="must be false",
    fix="set it to false",
    mended=False,
    exempt=lambda request, params: params.exempt_windows and is_windows(request.pod()),
)

POLICY = Policy(
    "privilege-escalation", PrivilegeEscalation, validate=validate, category="pod-security", severity="high"
)
