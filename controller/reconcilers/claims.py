"""The volumes of databases and of their dumps: PersistentVolumeClaims, their size and their class.

A StatefulSet's claim template is immutable, so each claim is resized by itself. A claim that
somebody else enlarged keeps its size.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from config.quantities import parse_quantity
from controller.reconcilers.indexes import by_name, keep_metadata
from controller.reconcilers.resources import CLAIM, STORAGE_CLASS
from controller.runtime.kind import Reads
from controller.runtime.plan import ApplyFields, CreateOnly, Observed, Problem, Reference
from kube.resource import JsonObject

KIND = {"apiVersion": CLAIM.api_version, "kind": CLAIM.kind}
IS_DEFAULT = "storageclass.kubernetes.io/is-default-class"
# On a claim: the size that the spec requested, where that is not the template's. A larger claim
# without it was enlarged by somebody else.
REQUESTED = "gatewright.io/requested-storage"


class Requested(NamedTuple):
    """What a spec requests of volumes, and the path of the fields that say so."""

    storage: str
    class_name: str | None
    labels: Mapping[str, str]  # of the claims
    path: str = "spec"


class Volumes(NamedTuple):
    """The existing volumes of a StatefulSet, and what of the spec they allow."""

    template: JsonObject
    claims: Sequence[JsonObject]
    patches: Sequence[ApplyFields]
    problems: Sequence[Problem]

    @property
    def smallest(self) -> str | None:
        """The smallest size of the existing volumes; None if there are none."""
        capacities = [capacity for claim in self.claims if (capacity := _capacity(claim))]
        return min(capacities, key=amount, default=None)

    @property
    def are_grown(self) -> bool:
        """Whether no claim still has to be expanded."""
        return all(
            requested_storage(claim) >= _amount_in(patch.fields)
            for claim, patch in zip(self.claims, self.patches, strict=True)
        )


def volumes(
    requested: Requested,
    stateful_set: JsonObject | None,
    template: JsonObject,
    claims: Sequence[JsonObject],
    observed: Observed,
) -> Volumes:
    """Compare a spec with the existing volumes.

    `template` is the claim template of a new StatefulSet; an existing one keeps its own.
    """
    stored = None if stateful_set is None else _stored_template(stateful_set)
    first = stored or template
    return Volumes(
        template=first,
        claims=claims,
        patches=[_data_patch(claim, requested, first, observed) for claim in claims],
        problems=[
            *_class_problems(requested, stored, claims),
            *_size_problems(requested, stored, claims, observed),
        ],
    )


def new_template(name: str, requested: Requested, labels: Mapping[str, str]) -> JsonObject:
    """Return the claim template of a new StatefulSet."""
    spec = claim_spec(requested.storage, requested.class_name)
    return {**KIND, "metadata": {"name": name, "labels": dict(labels)}, "spec": spec}


def dump_claim(
    metadata: JsonObject,
    requested: Requested,
    *,
    adopt_labels: Mapping[str, str],
    origin: Mapping[str, str],
) -> CreateOnly:
    """Return the creation of the claim for dumps, which outlives its database."""
    claim = {**KIND, "metadata": metadata}
    claim["spec"] = claim_spec(requested.storage, requested.class_name)
    return CreateOnly(claim, adopt_labels=adopt_labels, origin=origin)


def dump_patches(
    requested: Requested, claims: Iterable[JsonObject], observed: Observed
) -> list[ApplyFields]:
    """Return the patches of the claims for dumps: labels, and the size where it can grow."""
    return [_patch(claim, requested, {}, observed) for claim in claims]


def claim_spec(storage: str, class_name: str | None) -> JsonObject:
    """Return the spec of a claim."""
    spec: JsonObject = {"accessModes": ["ReadWriteOnce"], **request_size(storage)}
    return {**spec, "storageClassName": class_name} if class_name else spec


def request_size(storage: str) -> JsonObject:
    """Return the part of a claim's spec that sets its size."""
    return {"resources": {"requests": {"storage": storage}}}


def origin(storage: str, class_name: str, at: str = "") -> dict[str, str]:
    """Return the origins of a claim's size and class.

    `at` is the path of the claim in the child.
    """
    return {f"{at}spec.resources": storage, f"{at}spec.storageClassName": class_name}


def storage_of(claim: JsonObject) -> str:
    """Return the size that a claim requests."""
    return str(claim["spec"]["resources"]["requests"]["storage"])


def requested_storage(claim: JsonObject) -> int:
    """Return how much a claim requests, in thousandths of a byte."""
    return amount(storage_of(claim))


def largest(claims: Sequence[JsonObject]) -> str | None:
    """Return the size of the largest claim; None if there are none."""
    claim = max(claims, key=requested_storage, default=None)
    return None if claim is None else storage_of(claim)


def amount(storage: str | int) -> int:
    """Return a quantity in thousandths of a byte."""
    return parse_quantity(str(storage)).millis


def by_default(storage_class: JsonObject) -> Iterator[str]:
    """Yield the value of the annotation that marks the default StorageClass."""
    if value := storage_class["metadata"].get("annotations", {}).get(IS_DEFAULT):
        yield value


READS_CLASSES = Reads(STORAGE_CLASS, {"name": by_name, "default": by_default})


def keep_claim(claim: JsonObject) -> JsonObject:
    """Return what plans read of a claim: all but the annotations and the selector of others."""
    kept = keep_metadata(claim)
    size = (claim["metadata"].get("annotations") or {}).get(REQUESTED)
    if size is not None:
        kept["metadata"]["annotations"] = {REQUESTED: size}
    return {
        **kept,
        "spec": {key: value for key, value in claim["spec"].items() if key != "selector"},
        "status": claim.get("status", {}),
    }


def without_class(claims: Iterable[JsonObject], observed: Observed) -> Problem | None:
    """Return why a pending claim never gets a volume: no StorageClass, or no default one.

    None if the controller may not read StorageClasses, as with a Role in one namespace alone.
    """
    if not observed.serves(STORAGE_CLASS):
        return None
    for claim in claims:
        if claim.get("status", {}).get("phase") == "Pending":
            name, named = claim["metadata"]["name"], claim["spec"].get("storageClassName")
            if named and not observed.find(STORAGE_CLASS, "name", named):
                message = (
                    f'StorageClass "{named}" does not exist, and claim {name} waits for it. '
                    "Create it"
                )
                return Problem(message, "StorageClassNotFound")
            if named is None and not observed.find(STORAGE_CLASS, "default", "true"):
                message = (
                    f"no StorageClass is the default, and claim {name} names none. "
                    "Make one the default"
                )
                return Problem(message, "StorageClassNotFound")
    return None


def _stored_template(stateful_set: JsonObject) -> JsonObject:
    (template,) = stateful_set["spec"]["volumeClaimTemplates"]
    metadata, class_name = template["metadata"], template["spec"].get("storageClassName")
    return {
        **KIND,
        "metadata": {"name": metadata["name"], "labels": metadata.get("labels", {})},
        "spec": claim_spec(storage_of(template), class_name),
    }


def _data_patch(
    claim: JsonObject, requested: Requested, template: JsonObject, observed: Observed
) -> ApplyFields:
    """Return the patch of a data volume, which records the size that the spec requested."""
    size = claim["metadata"].get("annotations", {}).get(REQUESTED)
    if _may_have(claim, requested.storage, observed) and (
        amount(requested.storage) > requested_storage(template)
    ):
        size = requested.storage
    return _patch(claim, requested, {REQUESTED: size} if size else {}, observed)


def _patch(
    claim: JsonObject, requested: Requested, annotations: Mapping[str, str], observed: Observed
) -> ApplyFields:
    """Return the patch of a claim: its labels, and its new size if it can be expanded now.

    Otherwise its present size: a server-side apply without a size would remove an applied one.
    """
    metadata = claim["metadata"]
    size = requested.storage if _may_have(claim, requested.storage, observed) else storage_of(claim)
    about: JsonObject = {"labels": dict(requested.labels)}
    if annotations:
        about["annotations"] = dict(annotations)
    reference = Reference(CLAIM, metadata["name"], metadata["uid"], metadata.get("namespace"))
    return ApplyFields(reference, {"metadata": about, "spec": request_size(size)})


def _may_have(claim: JsonObject, storage: str, observed: Observed) -> bool:
    """Return whether a claim has this size, or can be expanded to it now."""
    if requested_storage(claim) == amount(storage):
        return True
    is_bound = claim.get("status", {}).get("phase") == "Bound"
    return is_bound and requested_storage(claim) < amount(storage) and _expands(claim, observed)


def _class_problems(
    requested: Requested, template: JsonObject | None, claims: Sequence[JsonObject]
) -> Iterator[Problem]:
    """Yield the problem of another class than the volumes have."""
    existing = [*claims, *([template] if template else [])]
    if not existing or requested.class_name is None:
        return
    classes = sorted({_class_of(each) for each in existing} - {""})
    if requested.class_name not in classes:
        yield Problem(
            f"{requested.path}.storageClassName: {requested.class_name}; the volumes' class is "
            f"{', '.join(classes) or 'the default'} and cannot change. Set it back",
            "StorageClassChanged",
        )


def _size_problems(
    requested: Requested,
    template: JsonObject | None,
    claims: Sequence[JsonObject],
    observed: Observed,
) -> Iterator[Problem]:
    desired, field = requested.storage, f"{requested.path}.storage"
    sizes = [_size_requested(claim, template) for claim in claims]
    had = max([*sizes, *([storage_of(template)] if template else [])], key=amount, default=desired)
    if amount(desired) < amount(had):
        yield Problem(
            f"{field}: {desired}; volumes of {had} cannot shrink. Set it to {had} or more",
            "StorageShrunk",
        )
        return
    fixed = [
        claim
        for claim in claims
        if requested_storage(claim) < amount(desired) and not _expands(claim, observed)
    ]
    for class_name in sorted({_class_of(claim) for claim in fixed}):
        named = f"storage class {class_name}" if class_name else "no storage class"
        yield Problem(
            f"{field}: {desired}; volumes of {named} do not grow. Set it back to {largest(fixed)}",
            "StorageNotExpandable",
        )


def _size_requested(claim: JsonObject, template: JsonObject | None) -> str:
    """Return the size that the spec requested for a claim when it last changed it.

    That of a claim which an earlier StatefulSet left is its own.
    """
    default = storage_of(claim if template is None else template)
    return str(claim["metadata"].get("annotations", {}).get(REQUESTED) or default)


def _class_of(claim: JsonObject) -> str:
    return str(claim["spec"].get("storageClassName") or "")


def _expands(claim: JsonObject, observed: Observed) -> bool:
    """Return whether a claim can grow; the API server decides where StorageClasses are unknown."""
    return not observed.serves(STORAGE_CLASS) or any(
        storage_class.get("allowVolumeExpansion")
        for storage_class in observed.find(STORAGE_CLASS, "name", _class_of(claim))
    )


def _capacity(claim: JsonObject) -> str | None:
    capacity = claim.get("status", {}).get("capacity", {}).get("storage")
    return None if capacity is None else str(capacity)


def _amount_in(fields: JsonObject) -> int:
    return amount(fields["spec"]["resources"]["requests"]["storage"])
