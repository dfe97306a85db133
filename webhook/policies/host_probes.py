"""Probes and lifecycle hooks target the pod itself, not another host.

Why: the kubelet sends them from the node. A probe with a `host` can use the kubelet to bypass network policies and
reach services that only nodes may reach.

Judged: `host` of `httpGet` and `tcpSocket`, in liveness, readiness and startup probes and in `postStart` and `preStop`.

Allowed: no `host`, or an empty one; hosts listed in `allowed`.
Denied:  `livenessProbe: {httpGet: {host: 169.254.169.254, port: 80}}`.
Fix: remove `host`; put a `Host` header into `httpHeaders`.
See: https://kubernetes.io/docs/concepts/security/pod-security-standards/#baseline (since 1.34)
"""

from pydantic import Field

from webhook.engine import Params, Policy, Request, Violations
from webhook.policies._records import having

HANDLERS = {  # by the field of a container that they are in
    "livenessProbe": ("livenessProbe",),
    "readinessProbe": ("readinessProbe",),
    "startupProbe": ("startupProbe",),
    "lifecycle": ("lifecycle.postStart", "lifecycle.preStop"),
}


class HostProbes(Params):
    """Which hosts probes and hooks may ask."""

    allowed: list[str] = Field([], description="hosts that may be named, compared as text")


def validate(request: Request, params: HostProbes) -> Violations:
    """Yield one violation for each host that a probe or a hook targets and that is not allowed."""
    for field, handlers in HANDLERS.items():
        for container in having(request.containers(), field):
            for path in (f"{handler}.{action}.host" for handler in handlers for action in ("httpGet", "tcpSocket")):
                host = container.string(path)
                if host and host not in params.allowed:
                    hosts = " or ".join(("the pod itself", *params.allowed))
                    yield container.violation(
                        path, host, f"probes and lifecycle hooks must target {hosts}", "remove it"
                    )


POLICY = Policy("host-probes", HostProbes, validate=validate, category="pod-security")
