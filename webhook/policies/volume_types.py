"""Pods use only approved types of volumes.

Why: inline volumes (nfs, iscsi, hostPath …) give a pod access to storage without any authorization;
a PersistentVolume is created by an administrator.

Judged: the volumes of a pod, including the `projected` token volume that the API server adds unless
`automountServiceAccountToken` is false. Keep that type allowed for Pods that call the API server.

Allowed: `volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]`; no volumes.
Denied:  `volumes: [{name: data, nfs: {server: nas, path: /}}]`.
Fix: use a persistentVolumeClaim.
See: https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted
"""

from typing import Literal

from pydantic import Field

from webhook.engine import Params, Policy, Request, Violations

FIX = "claim the storage by a persistentVolumeClaim"

VolumeType = Literal[
    "awsElasticBlockStore", "azureDisk", "azureFile", "cephfs", "cinder", "configMap", "csi",
    "downwardAPI", "emptyDir", "ephemeral", "fc", "flexVolume", "flocker", "gcePersistentDisk",
    "gitRepo", "glusterfs", "hostPath", "image", "iscsi", "nfs", "persistentVolumeClaim",
    "photonPersistentDisk", "portworxVolume", "projected", "quobyte", "rbd", "scaleIO", "secret",
    "storageos", "vsphereVolume",
]  # fmt: skip
RESTRICTED: list[VolumeType] = [
    "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim",
    "projected", "secret",
]  # fmt: skip


class VolumeTypes(Params):
    """Which types of volumes pods may use."""

    allowed: list[VolumeType] = Field(RESTRICTED, description="types that may be used")


def validate(request: Request, params: VolumeTypes) -> Violations:
    """Yield a violation for each volume of a type that may not be used."""
    rule = f"volumes must be of type {', '.join(params.allowed) or 'none'}"
    for volume in request.volumes():
        types = [
            field for field, value in volume.value.items() if field != "name" and value is not None
        ]
        for type in types or ["emptyDir"]:  # the API server's default for a volume without a type
            if type not in params.allowed:
                yield volume.violation(
                    type, volume.value.get(type), rule, FIX, found=f"type {type}"
                )


POLICY = Policy("volume-types", VolumeTypes, validate=validate, category="pod-security")
