"""Which objects a controller owns."""

from webhook.engine import Fields


def is_controlled(object: Fields) -> bool:
    """Return whether an object has an owner that is its controller."""
    return any(owner.boolean("controller") for owner in object.each("metadata.ownerReferences"))


def is_scaled_by_deployment(workload: Fields) -> bool:
    """Return whether it is a ReplicaSet of a Deployment, which decides how many replicas it has."""
    return workload.string("kind") == "ReplicaSet" and is_controlled(workload)
