"""Security contexts of pods whose image Gatewright chooses, at the Pod Security Standard "restricted".

Source: https://kubernetes.io/docs/concepts/security/pod-security-standards/
"""

from kube.resource import JsonObject


def container(**more: object) -> JsonObject:
    """Return a container's securityContext: restricted, with a read-only root filesystem unless `more` overrides it."""
    return {
        "runAsNonRoot": True,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
        **more,
    }


def pod(user: int, **more: object) -> JsonObject:
    """Return a pod's securityContext for an image that runs as `user`, whose group owns the volumes."""
    return {
        "runAsNonRoot": True,
        "runAsUser": user,
        "runAsGroup": user,
        "fsGroup": user,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
        **more,
    }
