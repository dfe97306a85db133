"""Nothing lives in the namespace `default`.

Why: what lands in `default` mostly forgot to say where it belongs. Quotas, rights and network policies are given by
namespace, so it escapes all of them.

Judged: every kind in the table that lives in a namespace. What Kubernetes itself keeps there is let be: the Service
`kubernetes`, the ServiceAccount `default` and the ConfigMap `kube-root-ca.crt`.

Allowed: any other namespace.
Denied:  a Deployment without `metadata.namespace`, applied while the kubeconfig names no namespace.
Fix: say in which namespace it belongs.
"""

from collections.abc import Iterator

from pydantic import Field

from webhook.engine import Params, Policy, Request, Violation

KEPT = {("Service", "kubernetes"), ("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt")}


class DefaultNamespace(Params):
    """Which namespaces stay empty."""

    namespaces: list[str] = Field(["default"], min_length=1, description="namespaces where nothing may live")


def validate(request: Request, params: DefaultNamespace) -> Iterator[Violation]:
    """Yield a violation for what is in such a namespace."""
    attributes = request.attributes
    if attributes.namespace in params.namespaces and (attributes.kind, request.name) not in KEPT:
        rule = "nothing may live in this namespace"
        yield request.violation("metadata.namespace", attributes.namespace, rule, "name the namespace where it belongs")


POLICY = Policy(
    "default-namespace",
    DefaultNamespace,
    validate=validate,
    kinds="namespaced",
    category="workloads",
)
