"""Probes and lifecycle hooks target the pod itself, not another host.

Why: the kubelet sends them from the node. A probe with a `host` can use the kubelet to bypass network policies and
reach services that only nodes may reach.

Judged: `host` of `httpGet` and `tcpSocket`, in liveness, readiness and startup probes and in `postStart` and `preStop`.

Allowed: no `host`, or an empty one; hosts listed in `allowed`.
Denied:  `livenessProbe: {httpGet: {host: 169.254.169.254, port: 80}}`.
Fix: remove `host`; put a `Host` header into `httpHeaders`.
See: https://kubernetes.io/docs/concepts/security/pod-security-standards/#baseline (since 1.34)
"""

from collections.abc import Iterator

from pydantic import Field

from webhook.engine import Fields, Params, Policy, Request
from webhook.engine.forbids import forbids

HANDLERS = ("livenessProbe", "readinessProbe", "startupProbe", "lifecycle.postStart", "lifecycle.preStop")


class HostProbes(Params):
    """Which hosts probes and hooks may ask."""

    allowed: list[str] = Field([], description="hosts that may be named, compared as text")


def _handlers(request: Request, params: HostProbes) -> Iterator[Fields]:
    for container in request.containers():
        yield from (container.fields(handler) for handler in HANDLERS if container.is_set(handler))


validate = forbids(
    _handlers,
    ("httpGet.host", "tcpSocket.host"),
    Fields.string,
    unless=lambda found, params: not found or found in params.allowed,
    rule=lambda params: f"probes and lifecycle hooks must ask {' or '.join(('the pod itself', *params.allowed))}",
    fix="remove it",
)

POLICY = Policy("host-probes", HostProbes, validate=validate, category="pod-security")
