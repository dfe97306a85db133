"""Drafts of the playground."""

from typing import Any

from gatewright.tools.playground.draft import Draft

REPLICAS = """\
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata: {name: replica-limits}
spec: {policy: replica-limits}
"""
SHOP = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec: {replicas: 11}
"""
SAID = (
    '$ kubectl create -f object.yaml\nError from server (Forbidden): error when creating "object.yaml": admission webhook '
    '"validate.gatewright.io" denied the request: 1 violation\n'
    "- replica-limits: spec.replicas: 11; production workloads cannot exceed 10 replicas. Set it to 10 or less."
)


def fields(**changed: Any) -> dict[str, Any]:
    """Return the fields that the page sends: a Deployment with too many replicas."""
    return {
        "policies": REPLICAS,
        "object": SHOP,
        "old_object": "",
        "username": "jane",
        "groups": ["system:authenticated"],
        "namespace": "default",
        **changed,
    }


def draft(**changed: Any) -> Draft:
    """Return a draft."""
    return Draft(**fields(**changed))
