"""Every Pod has a controller that recreates it.

Why: a pod without a controller is lost with its node, and `kubectl drain` refuses to evict it.

Judged: the creation of pods. Mirror pods of static pods, created by a node, are ignored: denying
one hides the pod but does not stop it. The owner is not looked up: the garbage collector deletes
pods whose owner does not exist.

Allowed: a pod with an owner that is its controller (a ReplicaSet, a Job …).
Denied:  `kubectl run`, or a manifest of `kind: Pod`.
Fix: use a Deployment, a StatefulSet, a DaemonSet or a Job.
"""

from webhook.engine import Params, Policy, Request, Violation, Violations
from webhook.policies._records import is_controlled


def validate(request: Request, params: Params) -> Violations:
    """Yield a violation for a pod without a controller."""
    if is_controlled(request) or request.is_mirror_pod:
        return
    found = "no owner that is its controller"
    rule = "pods must have a controller that recreates them"
    fix = "use a Deployment, a StatefulSet, a DaemonSet or a Job"
    yield Violation("metadata.ownerReferences", found, rule, fix)


POLICY = Policy(
    "naked-pods", validate=validate, kinds=("Pod",), operations=("CREATE",), category="reliability"
)
