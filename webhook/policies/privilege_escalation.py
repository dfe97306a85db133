"""No process in a container gains more privileges than its parent had.

Why: otherwise a set-user-ID program in the image can turn any user into root.

Allowed: `securityContext: {allowPrivilegeEscalation: false}`.
Denied:  `allowPrivilegeEscalation: true`, or not set, which means true.
Fix: set it to false.
See: https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted
"""

from pydantic import Field

from webhook.engine import Params, Policy, Request, Violations
from webhook.policies._security_contexts import is_windows

PATH = "securityContext.allowPrivilegeEscalation"


class PrivilegeEscalation(Params):
    """Which pods are skipped."""

    exempt_windows: bool = Field(True, description="skip Windows pods, where the API forbids the field")


def validate(request: Request, params: PrivilegeEscalation) -> Violations:
    """Yield one violation for each container that does not set the field to false."""
    if params.exempt_windows and is_windows(request.pod()):
        return
    for container in request.containers():
        found = container.boolean(PATH)
        if found is not False:
            words = "unset" if found is None else None
            yield container.violation(PATH, found, "must be false", "set it to false", found=words, mended=False)


POLICY = Policy(
    "privilege-escalation", PrivilegeEscalation, validate=validate, category="pod-security", severity="high"
)
