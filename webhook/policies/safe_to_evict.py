"""Pods whose volumes are of their node may be evicted when the cluster autoscaler takes the node away.

Why: the autoscaler keeps a node on which one pod has an emptyDir or hostPath volume, so a cluster never shrinks.

Sets: the annotation `cluster-autoscaler.kubernetes.io/safe-to-evict: "true"` on pods with an emptyDir or hostPath
volume that do not have it. What the pods keep in such a volume is lost with the node, so put this in force only where
that is so by intent. Pods are changed as they are made, and their templates are not, so that no tool sees a
difference.
Fix: a pod that must stay says `cluster-autoscaler.kubernetes.io/safe-to-evict: "false"`.
"""

from collections.abc import Iterator

from webhook.engine import Params, Patch, Policy, Request

ANNOTATION = "cluster-autoscaler.kubernetes.io/safe-to-evict"
LOCAL = ("emptyDir", "hostPath")


def mutate(request: Request, params: Params) -> Iterator[Patch]:
    """Yield the annotation for a pod with a volume of its node."""
    if any(volume.value.get(kind) is not None for volume in request.each("spec.volumes") for kind in LOCAL):
        yield Patch(("metadata", "annotations", ANNOTATION), "true")


POLICY = Policy(
    "safe-to-evict", mutate=mutate, kinds=("Pod",), operations=("CREATE",), category="capacity", severity="low"
)
