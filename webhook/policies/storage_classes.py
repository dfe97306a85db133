"""Volumes name an approved storage class.

Why: the default class of a cluster may change, and with it cost, performance and reclaim policy; some classes are
reserved for a few workloads.

Judged: PersistentVolumeClaims, the claim templates of StatefulSets, and ephemeral volumes of pods and of workloads with
a pod template. The annotation `volume.beta.kubernetes.io/storage-class` takes precedence over the field, as in
Kubernetes. The API server sets the default class of a PersistentVolumeClaim before the webhook is called, but not of
the others.

Allowed: `storageClassName: fast` with `allowed: [fast]`; an empty name (for a manually bound volume) if
         `allowed` matches it.
Denied:  another class; with `required`, none.
Fix: set an allowed class.
"""

from collections.abc import Iterator

from pydantic import Field

from webhook.engine import Fields, Params, Policy, Request, Violations
from webhook.engine.globs import Globs

ANNOTATION = "volume.beta.kubernetes.io/storage-class"


class StorageClasses(Params):
    """Which storage classes there may be."""

    allowed: Globs = Field(Globs(["*"]), min_length=1, description="storage classes (globs) that may be named")
    required: bool = Field(True, description="whether one must be named")


def validate(request: Request, params: StorageClasses) -> Violations:
    """Yield a violation for each claim without a class, or with one that is not allowed."""
    for claim in _claims(request):
        name, path = _class(claim)
        rule = f"allowed storage classes: {', '.join(params.allowed)}"
        if name is None:
            if params.required:
                fix = f"name one of {', '.join(params.allowed)}"
                yield claim.violation(path, None, "a claim must name its storage class", fix, found="missing")
        elif not params.allowed.match(name):
            yield claim.violation(path, name, rule, "name one of them")


def _class(claim: Fields) -> tuple[str | None, str]:
    """Return the class that a claim names, and where."""
    older = claim.texts("metadata.annotations").get(ANNOTATION)
    if older is not None:
        return older, f"metadata.annotations[{ANNOTATION}]"
    return claim.string("spec.storageClassName"), "spec.storageClassName"


def _claims(request: Request) -> Iterator[Fields]:
    if request.kind == "PersistentVolumeClaim":
        yield request
    if request.kind == "StatefulSet":
        yield from request.each("spec.volumeClaimTemplates")
    for volume in request.volumes():
        if volume.mapping("ephemeral"):
            yield volume.fields("ephemeral.volumeClaimTemplate")


POLICY = Policy(
    "storage-classes", StorageClasses, validate=validate, kinds=("pods", "PersistentVolumeClaim"), category="storage"
)
