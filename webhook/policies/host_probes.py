"""Probes and lifecycle hooks target the pod itself, not another host.

Why: the kubelet sends them from the node, past network policies and to services that only nodes may
reach.

Judged: `host` of `httpGet` and `tcpSocket`, in liveness, readiness and startup probes and in
`postStart` and `preStop`.

Allowed: no `host`, or an empty one; hosts listed in `allowed`.
Denied:  `livenessProbe: {httpGet: {host: 169.254.169.254, port: 80}}`.
Fix: remove `host`; put a `Host` header into `httpHeaders`.
See: https://kubernetes.io/docs/concepts/security/pod-security-standards/#baseline (since 1.34)
"""

from pydantic import Field

from webhook.engine import Params, Policy, Request, Violations
from webhook.policies._records import having

HOOKS = ("lifecycle.postStart", "lifecycle.preStop")
HANDLERS = ("livenessProbe", "readinessProbe", "startupProbe", *HOOKS)


class HostProbes(Params):
    """The hosts that probes and hooks may target."""

    allowed: list[str] = Field([], description="hosts that may be named, compared as text")


def validate(request: Request, params: HostProbes) -> Violations:
    """Yield one violation for each host that a probe or a hook targets and that is not allowed."""
    targets = " or ".join(("the pod itself", *params.allowed))
    rule = f"probes and lifecycle hooks must target {targets}"
    for handler in HANDLERS:
        for container in having(request.containers(), handler.partition(".")[0]):
            for path in (f"{handler}.httpGet.host", f"{handler}.tcpSocket.host"):
                host = container.string(path)
                if host and host not in params.allowed:
                    yield container.violation(path, host, rule, "remove it")


POLICY = Policy("host-probes", HostProbes, validate=validate, category="pod-security")
