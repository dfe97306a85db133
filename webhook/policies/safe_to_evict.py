"""Lets the cluster autoscaler evict pods with emptyDir or hostPath volumes.

Why: the autoscaler does not remove a node with a pod that has an emptyDir or hostPath volume, so
the cluster never scales down.

Sets: the annotation `cluster-autoscaler.kubernetes.io/safe-to-evict: "true"` on such pods, where it
is not set. The data in the volume is lost with the node, so enable this policy only where that is
acceptable. Only Pods are changed, on creation; pod templates are not, so that GitOps tools see no
difference.
Fix: on a pod that must stay, set `cluster-autoscaler.kubernetes.io/safe-to-evict: "false"`.
"""

from webhook.engine import Params, Patch, Patches, Policy, Request
from webhook.policies._records import having

ANNOTATION = "cluster-autoscaler.kubernetes.io/safe-to-evict"
LOCAL = ("emptyDir", "hostPath")


def mutate(request: Request, params: Params) -> Patches:
    """Yield the annotation for a pod with a volume of its node."""
    volumes = list(request.volumes())
    if any(having(volumes, kind) for kind in LOCAL):
        yield Patch(("metadata", "annotations", ANNOTATION), "true")


POLICY = Policy(
    "safe-to-evict",
    mutate=mutate,
    kinds=("Pod",),
    operations=("CREATE",),
    category="capacity",
    severity="low",
)
