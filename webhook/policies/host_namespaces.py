"""Pods stay out of the node's own namespaces.

Why: a pod in the node's network can listen to its traffic and reach what listens on its loopback; in its process or
IPC namespace it can see and signal other processes, and read their memory.

Allowed: no `hostNetwork`, `hostPID` or `hostIPC`, or `false`; those that `allowed` names.
Denied:  `hostNetwork: true`.
Fix: remove it; expose ports by a Service, share processes within the pod by `shareProcessNamespace`.
See: https://kubernetes.io/docs/concepts/security/pod-security-standards/#baseline
"""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from webhook.engine import Params, Policy, Request, Violation

NAMESPACES = ("hostNetwork", "hostPID", "hostIPC")


class HostNamespaces(Params):
    """Which of the node's namespaces pods may be in."""

    allowed: list[Literal["hostNetwork", "hostPID", "hostIPC"]] = Field([], description="namespaces that may be used")


def validate(request: Request, params: HostNamespaces) -> Iterator[Violation]:
    """Yield a violation for each of the node's namespaces that the pod is in."""
    pod = request.pod()
    if pod is None:
        return
    for field in NAMESPACES:
        if field not in params.allowed and pod.boolean(field):
            yield Violation(pod.path(field), "true", "pods must not be in a namespace of the node", "remove it")


POLICY = Policy("host-namespaces", HostNamespaces, validate=validate, category="pod-security", severity="high")
