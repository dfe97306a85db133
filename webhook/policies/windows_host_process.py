"""No Windows container runs as a process of its node.

Why: a HostProcess container is no container: it has the node's files, network and rights.

Judged: `securityContext.windowsOptions.hostProcess` of the pod and of each container.

Allowed: not set, or `false`.
Denied:  `windowsOptions: {hostProcess: true}`.
Fix: remove it, or ask for an exception for what manages the node.
See: https://kubernetes.io/docs/concepts/security/pod-security-standards/#baseline
"""

from collections.abc import Iterator

from webhook.engine import Params, Policy, Request, Violation
from webhook.engine.security_contexts import contexts

PATH = "securityContext.windowsOptions.hostProcess"


def validate(request: Request, params: Params) -> Iterator[Violation]:
    """Yield a violation where the pod or a container is a process of its node."""
    for context in contexts(request):
        if context.boolean(PATH):
            yield Violation(context.path(PATH), "true", "containers must not be processes of their node", "remove it")


POLICY = Policy("windows-host-process", validate=validate, category="pod-security", severity="critical")
