"""No process in a container gains more privileges than its parent had.

Why: without this, a set-user-ID program in the image turns any user into root.

Judged: containers, init containers and ephemeral containers, and a WebApp's security context; Windows pods, which
cannot say it, are left alone.

Allowed: `securityContext: {allowPrivilegeEscalation: false}`.
Denied:  `allowPrivilegeEscalation: true`, or not set, which stands for true.
Fix: set it to false.
See: https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted
"""

from collections.abc import Iterator

from pydantic import Field

from webhook.engine import Params, Policy, Request, Violation
from webhook.engine.fields import shown
from webhook.engine.security_contexts import is_windows

PATH = "securityContext.allowPrivilegeEscalation"


class PrivilegeEscalation(Params):
    """Who must forbid the escalation of privileges."""

    exempt_windows: bool = Field(True, description="leave Windows pods alone, where the API forbids the field")


def validate(request: Request, params: PrivilegeEscalation) -> Iterator[Violation]:
    """Yield a violation for each container that does not forbid it."""
    if params.exempt_windows and is_windows(request.pod()):
        return
    for container in request.containers():
        found = container.boolean(PATH)
        if found is not False:
            shown_as = "unset" if found is None else shown(found)
            yield Violation(container.path(PATH), shown_as, "must be false", "set it to false")


POLICY = Policy(
    "privilege-escalation", PrivilegeEscalation, validate=validate, category="pod-security", severity="high"
)
