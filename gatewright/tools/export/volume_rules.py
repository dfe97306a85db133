"""Rules in CEL about volumes and their claims."""

from typing import Any

from gatewright.tools.cel_text import any_glob, literal, negate
from gatewright.tools.export.pod_rules import ANY_OBJECT, CelRule, of_pod
from webhook.policies.storage_classes import ANNOTATION

VOLUMES = "variables.pod.?volumes.orValue([])"
CLAIMS = (
    f"(object.kind == 'PersistentVolumeClaim' ? [{ANY_OBJECT}] : object.kind == 'StatefulSet' ? "
    f"{ANY_OBJECT}.?spec.?volumeClaimTemplates.orValue([]) : [])"
    f" + {VOLUMES}.filter(volume, volume.?ephemeral.?volumeClaimTemplate.hasValue())"
    ".map(volume, volume.ephemeral.volumeClaimTemplate)"
)


def empty_dir_size(params: Any) -> list[CelRule]:
    """Return the rules of empty-dir-size."""
    rules = [_of_empty_dirs("isGreaterThan(quantity('0'))", "false", "a size limit is required")]
    if params.maximum is not None:
        maximum = str(params.maximum)
        is_most = f"compareTo(quantity({literal(maximum)})) <= 0"
        rules.append(_of_empty_dirs(is_most, "true", f"must be at most {maximum}"))
    return rules


def _of_empty_dirs(test: str, unset: str, message: str) -> CelRule:
    """Return a rule about the size limit of each emptyDir; the message names the volumes."""
    # A volume with only a name is an emptyDir.
    empty_dirs = f"{VOLUMES}.filter(volume, has(volume.emptyDir) || volume.size() == 1)"
    limit = "volume.?emptyDir.?sizeLimit"
    passes = f"{limit}.optMap(limit, quantity(string(limit)).{test}).orValue({unset})"
    bad = f"{empty_dirs}.filter(volume, {negate(passes)})"
    message = f"emptyDir.sizeLimit: {message}"
    return CelRule(
        f"{empty_dirs}.all(volume, {passes})",
        f"volumes: {message}",
        f"'volumes ' + {bad}.map(volume, volume.name).join(', ') + {literal(f': {message}')}",
    )


def storage_classes(params: Any) -> list[CelRule]:
    """Return the rule of storage-classes; the annotation takes precedence over the field."""
    annotation = f"claim.?metadata.?annotations[?{literal(ANNOTATION)}]"
    name = f"{annotation}.or(claim.?spec.?storageClassName)"
    allowed = any_glob("name", params.allowed)
    unset = literal(not params.required)
    test = f"({CLAIMS}).all(claim, {name}.optMap(name, {allowed}).orValue({unset}))"
    message = f"spec.storageClassName: allowed storage classes: {', '.join(params.allowed)}"
    return [CelRule(test, message)]


def flex_volume_drivers(params: Any) -> list[CelRule]:
    """Return the rule of flex-volume-drivers."""
    names = literal(params.allowed)
    test = f"!has(volume.flexVolume) || volume.flexVolume.?driver.orValue('') in {names}"
    message = f"flexVolume drivers must be {' or '.join(params.allowed)}"
    must = message if params.allowed else "no flexVolume may be used"
    return [of_pod(f"{VOLUMES}.all(volume, {test})", f"volumes: {must}")]
