"""flexVolume volumes use approved drivers only.

Why: a flexVolume driver is a program that the kubelet runs as root on the node, with options that the pod chooses.

Allowed: no `flexVolume`; one with a driver that `allowed` names.
Denied:  `flexVolume: {driver: example/lvm}`.
Fix: use a CSI driver through a persistentVolumeClaim.
See: https://kubernetes.io/docs/concepts/storage/volumes/#flexvolume-deprecated
"""

from collections.abc import Iterator

from pydantic import Field

from webhook.engine import Params, Policy, Request, Violation
from webhook.engine.fields import shown

PATH = "flexVolume.driver"


class FlexVolumeDrivers(Params):
    """Which flexVolume drivers pods may use."""

    allowed: list[str] = Field([], description="drivers that may be used, such as example/lvm")


def validate(request: Request, params: FlexVolumeDrivers) -> Iterator[Violation]:
    """Yield a violation for each volume of a driver that may not be used."""
    pod = request.pod()
    if pod is None:
        return
    for volume in pod.each("volumes"):
        driver = volume.string(PATH)
        if driver is not None and driver not in params.allowed:
            rule = (
                f"flexVolume drivers must be {' or '.join(params.allowed)}"
                if params.allowed
                else "flexVolume must not be used"
            )
            yield Violation(volume.path(PATH), shown(driver), rule, "use a CSI driver through a persistentVolumeClaim")


POLICY = Policy("flex-volume-drivers", FlexVolumeDrivers, validate=validate, category="pod-security")
