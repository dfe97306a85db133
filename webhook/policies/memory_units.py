"""Memory amounts have a plausible unit.

Why: `memory: 100m` is a tenth of a byte and `memory: 512` is 512 bytes. The API server accepts
both, and the container is killed or never scheduled. Intended for `validationActions: [Warn]`.
Amounts below 64Ki are denied, but 0 is ignored.
Judged: memory, ephemeral-storage and huge pages in requests and limits, and size limits of emptyDir
volumes.

Allowed: `memory: 100Mi`; `memory: 128974848000m`, which is 123Mi.
Denied:  `memory: 100m`; `memory: 512`.
Fix: write Mi or Gi.
"""

from collections.abc import Iterator

from config.field_paths import entry
from config.quantities import MILLI, Quantity, parse_quantity
from webhook.engine import Fields, Params, Policy, Request, Violations
from webhook.policies._resources import of_all

SMALLEST = parse_quantity("64Ki")
RULE = f"amounts below {SMALLEST} probably have the wrong unit"
BYTES = ("memory", "ephemeral-storage", "hugepages-")
SIZE_LIMIT = "emptyDir.sizeLimit"


def validate(request: Request, params: Params) -> Violations:
    """Yield one violation for each amount that is implausibly small."""
    for holder, field, amount in _small_amounts(request):
        if holder.is_set(field):  # an unset request equals the limit
            found = f"{amount}, which is {amount.millis / MILLI:.8g} bytes"
            yield holder.violation(field, amount.text, RULE, "write Ki, Mi or Gi", found=found)


def _small_amounts(request: Request) -> Iterator[tuple[Fields, str, Quantity]]:
    """Yield the record, the field and the amount of each implausibly small amount."""
    for resources in of_all(request):
        for part, amounts in (
            ("resources.limits", resources.limits),
            ("resources.requests", resources.requests),
        ):
            for name, amount in amounts.items():
                if 0 < amount.millis < SMALLEST.millis and name.startswith(BYTES):
                    yield resources, entry(part, name), amount
    for volume in request.volumes():
        limit = volume.quantity(SIZE_LIMIT)
        if limit is not None and 0 < limit.millis < SMALLEST.millis:
            yield volume, SIZE_LIMIT, limit


POLICY = Policy("memory-units", validate=validate, category="capacity", severity="low")
