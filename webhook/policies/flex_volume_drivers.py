"""flexVolume volumes use approved drivers only.

Why: a flexVolume driver is a program that the kubelet runs as root on the node, with options that the pod chooses.

Allowed: no `flexVolume`; one with a driver listed in `allowed`.
Denied:  `flexVolume: {driver: example/lvm}`.
Fix: use a CSI driver through a persistentVolumeClaim.
See: https://kubernetes.io/docs/concepts/storage/volumes/#flexvolume-deprecated
"""

from pydantic import Field

from webhook.engine import Fields, Params, Policy
from webhook.policies._forbids import forbids, volumes


class FlexVolumeDrivers(Params):
    """Which flexVolume drivers pods may use."""

    allowed: list[str] = Field([], description="drivers that may be used, such as example/lvm")


def _rule(params: FlexVolumeDrivers) -> str:
    names = " or ".join(params.allowed)
    return f"flexVolume drivers must be {names}" if names else "flexVolume must not be used"


validate = forbids(
    volumes,
    "flexVolume.driver",
    Fields.string,
    unless=lambda found, params: found is None or found in params.allowed,
    rule=_rule,
    fix="use a CSI driver through a persistentVolumeClaim",
    compared=lambda volume: volume.value["flexVolume"],
)

POLICY = Policy("flex-volume-drivers", FlexVolumeDrivers, validate=validate, category="pod-security")
