"""Every container has a seccomp profile: the runtime's default, or an approved profile of the node.

Why: seccomp blocks system calls that a process does not need; most container escapes use one of
them. Without a profile, the node's default applies, which may be none. Windows pods, which have no
seccomp, are not judged.

Allowed: `seccompProfile: {type: RuntimeDefault}` on the pod or on every container; `type:
Localhost`.
Denied:  `type: Unconfined`; no profile at all, unless `required` is false.
Fix: set `type: RuntimeDefault` on the pod.
See: https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted
"""

from pydantic import Field

from webhook.engine import Fix, Policy, Request, Violations
from webhook.engine.violation import UNSET
from webhook.policies._security_contexts import Profiles, is_windows, missing, unless

PATH = "securityContext.seccompProfile.type"
POD_ANNOTATION = "seccomp.security.alpha.kubernetes.io/pod"
CONTAINER_ANNOTATION = "container.seccomp.security.alpha.kubernetes.io/"


class SeccompProfiles(Profiles):
    """Which seccomp profiles containers may run with, and whether they need one."""

    required: bool = Field(
        True, description="whether each container must have a profile, its own or the pod's"
    )


def validate(request: Request, params: SeccompProfiles) -> Violations:
    """Yield a violation for each profile that is not allowed, and each container without one."""
    yield from params.judge(request, "seccompProfile")
    if params.required:
        rule = f"containers must run with a seccomp profile, {' or '.join(params.allowed)}"
        fix_value = "RuntimeDefault" if "RuntimeDefault" in params.allowed else UNSET
        yield from missing(request, PATH, rule, fix_value=fix_value)


def validate_annotations(request: Request, params: SeccompProfiles) -> Violations:
    """Yield a violation for each annotation (the form before 1.19) that is not allowed."""
    metadata = request.pod_metadata()
    if metadata is None:
        return
    annotations = metadata.texts("annotations")
    of_containers = (f"{CONTAINER_ANNOTATION}{each.name or ''}" for each in request.containers())
    for key in dict.fromkeys((POD_ANNOTATION, *of_containers)):
        value = annotations.get(key, "")
        is_allowed = value in ("runtime/default", "docker/default")
        if key in annotations and not is_allowed and not value.startswith("localhost/"):
            rule = "must be runtime/default or localhost/…"
            yield metadata.violation(f"annotations[{key}]", value, rule, "remove it")


POLICY = Policy(
    "seccomp-profiles",
    SeccompProfiles,
    validate=unless(is_windows, validate),
    category="pod-security",
    severity="high",
    fix=Fix(True, "the runtime's default profile allows what programs usually call"),
)
