"""Volumes name an approved storage class.

Why: the default class of a cluster may change, and with it cost, performance and reclaim policy;
some classes are reserved for a few workloads.

Judged: PersistentVolumeClaims, the claim templates of StatefulSets, and ephemeral volumes of pods.
The annotation `volume.beta.kubernetes.io/storage-class` takes precedence over the field, as in
Kubernetes. The API server sets the default class of a PersistentVolumeClaim before the webhook is
called, but not of the others.

Allowed: `storageClassName: fast` with `allowed: [fast]`; an empty name (for a manually bound
         volume) if `allowed` matches it.
Denied:  another class; with `required`, none.
Fix: set an allowed class.
"""

from collections.abc import Iterator

from pydantic import Field

from webhook.engine import Fields, Params, Policy, Request, Violations
from webhook.engine.globs import Globs

FIELD = "spec.storageClassName"
ANNOTATION = "volume.beta.kubernetes.io/storage-class"


class StorageClasses(Params):
    """Which storage classes volumes may name."""

    allowed: Globs = Field(
        Globs(["*"]), min_length=1, description="storage classes (globs) that may be named"
    )
    required: bool = Field(True, description="whether one must be named")


def validate(request: Request, params: StorageClasses) -> Violations:
    """Yield a violation for each claim without a class, or with one that is not allowed."""
    allowed = ", ".join(params.allowed)
    for claim in _claims(request):
        field = f"metadata.annotations[{ANNOTATION}]"
        name = claim.texts("metadata.annotations").get(ANNOTATION)
        if name is None:
            field, name = FIELD, claim.string(FIELD)
        if name is not None and not params.allowed.match(name):
            rule = f"allowed storage classes: {allowed}"
            yield claim.violation(field, name, rule, "name one of them")
        elif name is None and params.required:
            rule, fix = "a claim must name its storage class", f"name one of {allowed}"
            yield claim.violation(field, None, rule, fix, found="missing")


def _claims(request: Request) -> Iterator[Fields]:
    if request.kind == "PersistentVolumeClaim":
        yield request
    if request.kind == "StatefulSet":
        yield from request.each("spec.volumeClaimTemplates")
    for volume in request.volumes():
        if volume.mapping("ephemeral"):
            yield volume.fields("ephemeral.volumeClaimTemplate")


POLICY = Policy(
    "storage-classes",
    StorageClasses,
    validate=validate,
    kinds=("pods", "PersistentVolumeClaim"),
    category="storage",
)
