"""No object is created in the namespace `default`.

Why: an object in `default` is usually there because its manifest names no namespace. Quotas, RBAC
and network policies are set per namespace, so none of those meant for the object apply.

Judged: every namespaced kind in the table. The objects that Kubernetes itself creates there are
ignored: the Service `kubernetes`, the ServiceAccount `default` and the ConfigMap
`kube-root-ca.crt`.

Allowed: any other namespace.
Denied:  a Deployment without `metadata.namespace`, applied while the kubeconfig names no namespace.
Fix: set `metadata.namespace`.
"""

from webhook.engine import Params, Policy, Request, Violations

DEFAULT = "default"
KEPT = {("Service", "kubernetes"), ("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt")}


def validate(request: Request, params: Params) -> Violations:
    """Yield a violation for an object in this namespace."""
    if request.attributes.namespace == DEFAULT and (request.kind, request.name) not in KEPT:
        rule = "no objects are allowed in this namespace"
        yield request.violation(
            "metadata.namespace", DEFAULT, rule, "set the namespace where it belongs"
        )


POLICY = Policy("default-namespace", validate=validate, kinds="namespaced", category="workloads")
