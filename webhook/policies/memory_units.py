"""Memory amounts have a plausible unit.

Why: `memory: 100m` is a tenth of a byte and `memory: 512` is 512 bytes. The API server accepts both, and the container
is killed or never scheduled. Intended for `validationActions: [Warn]`. Amounts below 64Ki are denied, but 0 is ignored.
Judged: memory, ephemeral-storage and huge pages in requests and limits, and size limits of emptyDir volumes.

Allowed: `memory: 100Mi`; `memory: 128974848000m`, which is 123Mi.
Denied:  `memory: 100m`; `memory: 512`.
Fix: write Mi or Gi.
"""

from collections.abc import Iterator

from config.quantities import MILLI, Quantity, parse_quantity
from webhook.engine import Fields, Params, Policy, Request, Violations
from webhook.engine.fields import entry

SMALLEST = parse_quantity("64Ki")
BYTES = ("memory", "ephemeral-storage", "hugepages-")
SIZE_LIMIT = "emptyDir.sizeLimit"


def validate(request: Request, params: Params) -> Violations:
    """Yield one violation for each amount that is implausibly small."""
    rule = f"amounts below {SMALLEST} probably have the wrong unit"
    for holder, field, amount in _amounts(request):
        if 0 < amount.millis < SMALLEST.millis:
            found = f"{amount}, which is {amount.millis / MILLI:.8g} bytes"
            yield holder.violation(field, amount.text, rule, "write Ki, Mi or Gi", found=found)


def _amounts(request: Request) -> Iterator[tuple[Fields, str, Quantity]]:
    """Yield each number of bytes that is set: the record and its field, and the amount."""
    pod = request.pod()
    for holder in request.containers() if pod is None else (*request.containers(), pod):
        for part in ("resources.limits", "resources.requests"):
            for name, amount in holder.quantities(part).items():
                if name.startswith(BYTES):
                    yield holder, entry(part, name), amount
    for volume in request.volumes():
        limit = volume.quantity(SIZE_LIMIT)
        if limit is not None:
            yield volume, SIZE_LIMIT, limit


POLICY = Policy("memory-units", validate=validate, category="capacity", severity="low")
