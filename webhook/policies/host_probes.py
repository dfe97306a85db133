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

from webhook.engine import Fields, Params, Policy
from webhook.policies._forbids import containers, forbids

HANDLERS = ("livenessProbe", "readinessProbe", "startupProbe", "lifecycle.postStart", "lifecycle.preStop")
PATHS = tuple(f"{handler}.{action}.host" for handler in HANDLERS for action in ("httpGet", "tcpSocket"))


class HostProbes(Params):
    """Which hosts probes and hooks may ask."""

    allowed: list[str] = Field([], description="hosts that may be named, compared as text")


validate = forbids(
    containers,
    PATHS,
    Fields.string,
    unless=lambda found, params: not found or found in params.allowed,
    rule=lambda params: f"probes and lifecycle hooks must ask {' or '.join(('the pod itself', *params.allowed))}",
    fix="remove it",
)

POLICY = Policy("host-probes", HostProbes, validate=validate, category="pod-security")
