"""Containers use the runtime's default AppArmor profile, or an approved profile of the node.

Why: AppArmor restricts a process to the files and capabilities in its profile; `Unconfined`
disables that.

Judged: `securityContext.appArmorProfile` of the pod and of each container, and the annotations
`container.apparmor.security.beta.kubernetes.io/<container>`, which the field replaced in Kubernetes
1.30.

Allowed: nothing set; `type: RuntimeDefault`; `type: Localhost`.
Denied:  `type: Unconfined`; the annotation `unconfined`.
Fix: remove the profile, or name an allowed one.
See: https://kubernetes.io/docs/concepts/security/pod-security-standards/#baseline,
https://kep.k8s.io/24
"""

from webhook.engine import Policy, Request, Violations
from webhook.policies._security_contexts import Profiles

PREFIX = "container.apparmor.security.beta.kubernetes.io/"
LOCALHOST = "localhost/"
TYPES = {"runtime/default": "RuntimeDefault", "unconfined": "Unconfined"}


def validate(request: Request, params: Profiles) -> Violations:
    """Yield a violation for each AppArmor profile that may not be set."""
    yield from params.judge(request, "appArmorProfile")
    metadata = request.pod_metadata()
    if metadata is None:
        return
    for key, value in metadata.texts("annotations").items():
        if key.startswith(PREFIX) and value:
            path = f"annotations[{key}]"
            type = "Localhost" if value.startswith(LOCALHOST) else TYPES.get(value, "")
            yield from params.faults(
                metadata, path, value, type, path, value.removeprefix(LOCALHOST)
            )


POLICY = Policy("app-armor", Profiles, validate=validate, category="pod-security")
