"""No object is created in the namespace `default`.

Why: an object in `default` is usually there because its manifest names no namespace. Quotas, RBAC
and network policies are set per namespace, so none of those meant for the object apply.

Judged: every namespaced kind in the table. The objects that Kubernetes itself creates in every
namespace, and the Service `kubernetes`, are ignored. A manifest without a namespace is judged where
it is applied: by the webhook, and by `gatewright check -n NAMESPACE`.

Allowed: any other namespace.
Denied:  a Deployment without `metadata.namespace`, applied while the kubeconfig names no namespace.
Fix: set `metadata.namespace`.
"""

from webhook.engine import Params, Policy, Request, Violations
from webhook.policies._records import is_of_every_namespace

DEFAULT, FIELD = "default", "metadata.namespace"


def validate(request: Request, params: Params) -> Violations:
    """Yield a violation for an object in this namespace."""
    # The API server sets the namespace of each object; the manifest of a file may leave it open.
    if request.string(FIELD) == DEFAULT and not is_of_every_namespace(request):
        rule = "no objects are allowed in this namespace"
        yield request.violation(FIELD, DEFAULT, rule, "set the namespace where it belongs")


POLICY = Policy("default-namespace", validate=validate, kinds="namespaced", category="workloads")
