"""flexVolume volumes use approved drivers only.

Why: a flexVolume driver is a program that the kubelet runs as root on the node, with options that
the pod chooses.

Allowed: no `flexVolume`; one with a driver listed in `allowed`.
Denied:  `flexVolume: {driver: example/lvm}`.
Fix: use a CSI driver through a persistentVolumeClaim.
See: https://kubernetes.io/docs/concepts/storage/volumes/#flexvolume-deprecated
"""

from pydantic import Field

from webhook.engine import Params, Policy, Request, Violations
from webhook.engine.violation import shown
from webhook.policies._records import having

FIX = "use a CSI driver through a persistentVolumeClaim"


class FlexVolumeDrivers(Params):
    """Which flexVolume drivers pods may use."""

    allowed: list[str] = Field([], description="drivers that may be used, such as example/lvm")


def validate(request: Request, params: FlexVolumeDrivers) -> Violations:
    """Yield one violation for each flexVolume with a driver that is not allowed."""
    for volume in having(request.volumes(), "flexVolume"):
        driver = volume.string("flexVolume.driver")
        if driver is not None and driver not in params.allowed:
            names = " or ".join(params.allowed)
            rule = f"flexVolume drivers must be {names}" if names else "flexVolume must not be used"
            # The value is the whole volume: its options count too.
            raw, found = volume.value["flexVolume"], shown(driver)
            yield volume.violation("flexVolume.driver", raw, rule, FIX, found=found)


POLICY = Policy(
    "flex-volume-drivers", FlexVolumeDrivers, validate=validate, category="pod-security"
)
