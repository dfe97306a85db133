"""Probes and lifecycle hooks ask the pod itself, not another host.

Why: the kubelet sends them from the node. One that names a host makes the kubelet a way around network policies, to
services that only nodes may reach.

Judged: `host` of `httpGet` and `tcpSocket`, in liveness, readiness and startup probes and in `postStart` and `preStop`.

Allowed: no `host`, or an empty one; those that `allowed` names.
Denied:  `livenessProbe: {httpGet: {host: 169.254.169.254, port: 80}}`.
Fix: remove `host`; a `Host` header goes into `httpHeaders`.
See: https://kubernetes.io/docs/concepts/security/pod-security-standards/#baseline (since 1.34)
"""

from collections.abc import Iterator

from pydantic import Field

from webhook.engine import Params, Policy, Request, Violation
from webhook.engine.fields import shown

HANDLERS = ("livenessProbe", "readinessProbe", "startupProbe", "lifecycle.postStart", "lifecycle.preStop")
PATHS = tuple(f"{handler}.{action}.host" for handler in HANDLERS for action in ("httpGet", "tcpSocket"))


class HostProbes(Params):
    """Which hosts probes and hooks may ask."""

    allowed: list[str] = Field([], description="hosts that may be named, as they are written")


def validate(request: Request, params: HostProbes) -> Iterator[Violation]:
    """Yield a violation for each host that a probe or a hook may not name."""
    hosts = " or ".join(("the pod itself", *params.allowed))
    for container in request.containers():
        for path in PATHS:
            host = container.string(path)
            if host and host not in params.allowed:
                rule = f"probes and lifecycle hooks must ask {hosts}"
                yield Violation(container.path(path), shown(host), rule, "remove it")


POLICY = Policy("host-probes", HostProbes, validate=validate, category="pod-security")
