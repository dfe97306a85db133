"""Interactive sessions in running containers are denied.

Why: changes made in a session are in no repository, have no review, and are lost with the pod. A
session can also read every secret of the container.

Judged: `kubectl exec` and `kubectl attach`, which `kubectl run -it` and `kubectl debug -it` use
too.

Allowed: a command that requests neither a terminal nor input, such as `kubectl exec shop -- date`.
Denied:  `kubectl exec -it shop -- sh`; with `forbidden: [exec, attach]`, every session.
Fix: use logs and metrics, or ask for an exception.
"""

from typing import Literal

from pydantic import Field

from webhook.engine import Params, Policy, Request, Violation, Violations

FIX = "use logs and metrics, or ask for an exception"


class InteractiveSessions(Params):
    """Which sessions are denied."""

    forbidden: list[Literal["tty", "stdin", "exec", "attach"]] = Field(
        ["tty", "stdin"],
        min_length=1,
        description="a terminal, input, or either kind of session as a whole",
    )


def validate(request: Request, params: InteractiveSessions) -> Violations:
    """Yield a violation for the session, or for each part of it that is forbidden."""
    session = request.attributes.subresource
    if session in params.forbidden:
        yield Violation("kind", request.kind, f"{session} is not allowed", FIX)
        return
    for field in ("tty", "stdin"):
        if field in params.forbidden and request.boolean(field):
            yield Violation(field, "true", "sessions must not be interactive", FIX)


POLICY = Policy(
    "interactive-sessions",
    InteractiveSessions,
    validate=validate,
    kinds="exec",
    category="rbac",
    severity="high",
)
