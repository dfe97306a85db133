"""Every emptyDir volume has a size limit.

Why: without a limit an emptyDir can fill the disk or memory of its node, and other pods are
evicted. A volume with only a name is an emptyDir.

Allowed: `emptyDir: {sizeLimit: 500Mi}`.
Denied:  `emptyDir: {}`; a sizeLimit of 0, which means no limit; one above `maximum`.
Fix: set a sizeLimit.
See: https://kubernetes.io/docs/concepts/storage/volumes/#emptydir
"""

from pydantic import Field

from webhook.engine import Params, Policy, Request, Violations
from webhook.policies._resources import Amount

PATH = "emptyDir.sizeLimit"


class EmptyDirSize(Params):
    """How large an emptyDir may become."""

    maximum: Amount | None = Field(None, description="largest sizeLimit; any, if left out")


def validate(request: Request, params: EmptyDirSize) -> Violations:
    """Yield one violation for each emptyDir without a size limit, or with too large a one."""
    for volume in request.volumes():
        sources = {key for key, value in volume.value.items() if value is not None} - {"name"}
        if sources and "emptyDir" not in sources:
            continue
        limit = volume.quantity(PATH)
        if limit is None or not limit.millis:
            fix = "set it" if params.maximum is None else f"set it to {params.maximum} or less"
            found = "missing" if limit is None else limit.text
            yield volume.violation(PATH, found, "a size limit is required", fix, found=found)
        elif params.maximum is not None and (over := limit.millis - params.maximum.millis) > 0:
            rule, fix = f"must be at most {params.maximum}", f"lower it to {params.maximum} or less"
            yield volume.violation(PATH, limit.text, rule, fix, found=limit.text, excess=over)


POLICY = Policy("empty-dir-size", EmptyDirSize, validate=validate, category="capacity")
