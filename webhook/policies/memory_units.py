"""Memory amounts have a plausible unit.

Why: `memory: 100m` is a tenth of a byte and `memory: 512` is 512 bytes. The API server accepts both, and the container
is killed or never scheduled. Intended for `validationActions: [Warn]`. Judged: memory, ephemeral-storage and huge pages
in requests and limits, and size limits of emptyDir volumes. 0 is ignored.

Allowed: `memory: 100Mi`; `memory: 128974848000m`, which is 123Mi.
Denied:  `memory: 100m`; `memory: 512`.
Fix: write Mi or Gi.
"""

from pydantic import Field

from config.quantities import MILLI, Quantity
from webhook.engine import Fields, Params, Policy, Request, Violation, Violations
from webhook.engine.fields import entry
from webhook.policies._resources import Amount, amount, of_all

BYTES = ("memory", "ephemeral-storage", "hugepages-")


class MemoryUnits(Params):
    """Which amounts are reported."""

    smallest: Amount = Field("64Ki", description="amounts below this are reported")


def validate(request: Request, params: MemoryUnits) -> Violations:
    """Yield one violation for each amount that is implausibly small."""
    smallest = amount(params.smallest).millis
    for each in of_all(request):
        for part, amounts in (("limits", each.limits), ("requests", each.requests)):
            for name, found in amounts.items():
                if 0 < found.millis < smallest and name.startswith(BYTES) and each.is_set(f"resources.{part}.{name}"):
                    yield _violation(each, entry(f"resources.{part}", name), found, params)
    for volume in request.volumes():
        limit = volume.quantity("emptyDir.sizeLimit")
        if limit is not None and 0 < limit.millis < smallest:
            yield _violation(volume, "emptyDir.sizeLimit", limit, params)


def _violation(holder: Fields, field: str, found: Quantity, params: MemoryUnits) -> Violation:
    said = f"{found}, which is {found.millis / MILLI:.8g} bytes"
    rule = f"amounts below {params.smallest} probably have the wrong unit"
    return holder.violation(field, found.text, rule, "write Ki, Mi or Gi", found=said)


POLICY = Policy("memory-units", MemoryUnits, validate=validate, category="capacity", severity="low")
