"""Every container sets `runAsNonRoot: true`, or inherits it from its pod.

Why: through a flaw of the kernel or the runtime, root in a container is root on the node. With
`runAsNonRoot: true` the kubelet does not start an image that would run as root. Judged: pods, but
not those in a user namespace (`hostUsers: false`), whose root is unprivileged on the node.

Allowed: `runAsNonRoot: true` on the pod, and `false` on no container; or true on every container.
Denied:  `runAsNonRoot: false` anywhere; a container with the field set on neither it nor its pod.
Fix: set `runAsNonRoot: true` on the pod, and build the image with a numeric `USER`.
See: https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted,
https://kep.k8s.io/127
"""

from pydantic import Field

from webhook.engine import Fields, Fix, Params, Policy, Request, Violations
from webhook.policies._security_contexts import (
    contexts,
    in_user_namespace,
    inheriting_containers,
    missing,
    unless,
)

PATH = "securityContext.runAsNonRoot"
USER = "securityContext.runAsUser"


class RunAsNonRoot(Params):
    """Whether a user id suffices."""

    user_suffices: bool = Field(False, description="whether a `runAsUser` other than 0 is enough")


def validate(request: Request, params: RunAsNonRoot) -> Violations:
    """Yield a violation for each `runAsNonRoot: false`, and each container that may be root."""
    for context in contexts(request):
        if context.boolean(PATH) is False:
            excess = inheriting_containers(request, context, PATH, False)
            yield context.violation(
                PATH, False, "must not be false", "set it to true", excess=excess, fix_value=True
            )
    pod = request.pod()
    with_user = [each for each in request.containers() if params.user_suffices and _user(each, pod)]
    for violation in missing(request, PATH, "must be true", "set it to true", fix_value=True):
        if violation.holder not in with_user:
            yield violation


def _user(container: Fields, pod: Fields | None) -> int | None:
    """Return the user id of a container: its own, or the pod's."""
    ids = (each.integer(USER) for each in (container, pod) if each is not None)
    return next((id for id in ids if id is not None), None)


POLICY = Policy(
    "run-as-non-root",
    RunAsNonRoot,
    validate=unless(in_user_namespace, validate),
    category="pod-security",
    severity="high",
    fix=Fix(False, "an image that runs as root does not start"),
)
