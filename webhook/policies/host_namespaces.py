"""Pods do not use the node's network, PID or IPC namespace.

Why: a pod in the node's network namespace can capture the node's traffic and reach services on its
loopback address; in the PID or IPC namespace it can see and signal other processes, and read their
memory.

Allowed: no `hostNetwork`, `hostPID` or `hostIPC`, or `false`; those listed in `allowed`.
Denied:  `hostNetwork: true`.
Fix: remove it; expose ports by a Service, share processes within the pod by
`shareProcessNamespace`.
See: https://kubernetes.io/docs/concepts/security/pod-security-standards/#baseline
"""

from typing import Literal

from pydantic import Field

from webhook.engine import Fix, Params, Policy, Request, Violations


class HostNamespaces(Params):
    """Which of the node's namespaces pods may be in."""

    allowed: list[Literal["hostNetwork", "hostPID", "hostIPC"]] = Field(
        [], description="namespaces that may be used"
    )


def validate(request: Request, params: HostNamespaces) -> Violations:
    """Yield one violation for each namespace of the node that the pod is in."""
    pod = request.pod()
    if pod is None:
        return
    for field in ("hostNetwork", "hostPID", "hostIPC"):
        if field not in params.allowed and pod.boolean(field):
            yield pod.violation(
                field, True, "pods must not use namespaces of the node", "remove it", fix_value=None
            )


POLICY = Policy(
    "host-namespaces",
    HostNamespaces,
    validate=validate,
    category="pod-security",
    severity="high",
    fix=Fix(False, "a program that watches the node, or answers at its address, stops working"),
)
