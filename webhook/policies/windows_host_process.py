"""No Windows container runs as a HostProcess container.

Why: a HostProcess container is not isolated: it has access to the node's files, network and
privileges.

Allowed: not set, or `false`.
Denied:  `windowsOptions: {hostProcess: true}`.
Fix: remove it, or ask for an exception for software that manages the node.
See: https://kubernetes.io/docs/concepts/security/pod-security-standards/#baseline
"""

from webhook.engine import Fix, Params, Policy, Request, Violations
from webhook.policies._security_contexts import contexts, inheriting_containers

PATH = "securityContext.windowsOptions.hostProcess"


def validate(request: Request, params: Params) -> Violations:
    """Yield a violation for each HostProcess container, and for a pod that sets it."""
    for context in contexts(request):
        if context.boolean(PATH):
            rule = "containers must not be HostProcess containers"
            excess = inheriting_containers(request, context, PATH, True)
            yield context.violation(PATH, True, rule, "remove it", excess=excess, fix_value=None)


POLICY = Policy(
    "windows-host-process",
    validate=validate,
    category="pod-security",
    severity="critical",
    fix=Fix(False, "a program that manages the Windows node stops working"),
)
