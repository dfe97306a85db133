"""Security contexts of pods whose image Gatewright chooses: Pod Security "restricted".

Source: https://kubernetes.io/docs/concepts/security/pod-security-standards/
"""

from kube.resource import JsonObject


def container(**more: object) -> JsonObject:
    """Return a restricted securityContext of a container.

    Its root filesystem is read-only unless `more` overrides that.
    """
    return {
        "runAsNonRoot": True,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
        **more,
    }


def pod(user: int, **more: object) -> JsonObject:
    """Return the securityContext of a pod that runs as `user`, whose group owns the volumes."""
    return {
        "runAsNonRoot": True,
        "runAsUser": user,
        "runAsGroup": user,
        "fsGroup": user,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
        **more,
    }
