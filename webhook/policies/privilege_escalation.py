"""No process in a container gains more privileges than its parent had.

Why: otherwise a set-user-ID program in the image can turn any user into root. Judged: all
containers, but not those of Windows pods, where the API forbids the field.

Allowed: `securityContext: {allowPrivilegeEscalation: false}`.
Denied:  `allowPrivilegeEscalation: true`, or not set, which means true.
Fix: set it to false.
See: https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted
"""

from webhook.engine import Fix, Params, Policy, Request, Violations
from webhook.policies._security_contexts import is_windows, unless

PATH = "securityContext.allowPrivilegeEscalation"


def validate(request: Request, params: Params) -> Violations:
    """Yield one violation for each container that does not set the field to false."""
    for container in request.containers():
        allows = container.boolean(PATH)
        if allows is not False:
            words = "unset" if allows is None else None
            yield container.violation(
                PATH, allows, "must be false", "set it to false", found=words, fix_value=False
            )


POLICY = Policy(
    "privilege-escalation",
    validate=unless(is_windows, validate),
    category="pod-security",
    severity="high",
    fix=Fix(False, "programs such as sudo and ping fail"),
)
