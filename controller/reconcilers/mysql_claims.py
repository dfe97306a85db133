"""The volume of a MySQL server.

The StatefulSet's claim template is immutable, so the claim is resized directly.
"""

from collections.abc import Iterator, Mapping, Sequence

from controller.reconcilers.claims import amount, requested_storage, sized
from controller.reconcilers.indexes import by_label
from controller.reconcilers.resources import CLAIM
from controller.runtime.kind import Reads
from controller.runtime.plan import ApplyFields, Observed, Problem, Reference
from kube.resource import JsonObject

MYSQL_LABELS = {"app.kubernetes.io/name": "mysql", "app.kubernetes.io/managed-by": "gatewright"}
INDEX = "database"  # the name of a server, or of its backups


def by_parent(parent: JsonObject) -> Iterator[str]:
    """Yield the name of the server that belongs to an AppStack or an EcommercePlatform."""
    yield f"{parent['metadata']['name']}-db"


READS_CLAIMS = Reads(
    CLAIM,
    {INDEX: by_label("app")},
    ",".join(f"{key}={value}" for key, value in MYSQL_LABELS.items()),
)


def stored_template(stateful_set: JsonObject | None) -> JsonObject | None:
    """Return the claim template of an existing StatefulSet; it is immutable."""
    if stateful_set is None:
        return None
    (template,) = stateful_set["spec"]["volumeClaimTemplates"]
    about, template_spec = template["metadata"], template["spec"]
    fields = ("accessModes", "resources", "storageClassName")
    return {
        "metadata": {"name": about["name"], "labels": about.get("labels", {})},
        "spec": {key: template_spec[key] for key in fields if key in template_spec},
    }


def claims_of(observed: Observed, name: str) -> Sequence[JsonObject]:
    """Return the existing claims of a server or of its backups."""
    return [
        claim
        for claim in observed.find(CLAIM, INDEX, name)
        if "deletionTimestamp" not in claim["metadata"]
    ]


def patches(
    claims: Sequence[JsonObject], storage: str, labels: Mapping[str, str]
) -> list[ApplyFields]:
    """Return a patch of each claim that lacks labels or is smaller than requested.

    A larger claim keeps its size.
    """
    size = {"spec": sized(storage)}
    return [
        labelled(claim, labels, size if requested_storage(claim) <= amount(storage) else {})
        for claim in claims
    ]


def labelled(
    claim: JsonObject, labels: Mapping[str, str], fields: Mapping[str, JsonObject]
) -> ApplyFields:
    """Return the patch of a claim that lacks labels or other fields.

    None where it lacks nothing.
    """
    about = claim["metadata"]
    reference = Reference(CLAIM, about["name"], about["uid"], about["namespace"])
    return ApplyFields(reference, {"metadata": {"labels": dict(labels)}, **fields})


def refused(
    claims: Sequence[JsonObject], template: JsonObject | None, storage: str, class_name: str | None
) -> Problem | None:
    """Return the problem of a spec that the existing volumes cannot satisfy."""
    had = largest(claims)
    volumes = [*([template] if template else ()), *claims]
    classes = {each["spec"].get("storageClassName") for each in volumes} - {None}
    if had is not None and amount(storage) < amount(had):
        message = (
            f"spec.database.storage: {storage}; a volume of {had} cannot shrink. Set it to {had} "
            "or more"
        )
        return Problem(message, "StorageShrunk")
    if template is not None and class_name is not None and class_name not in classes:
        message = (
            f"the volume's class is {', '.join(sorted(classes)) or 'the default'} and cannot "
            "change. Set it back"
        )
        return Problem(
            f"spec.database.storageClassName: {class_name}; {message}", "StorageClassChanged"
        )
    return None


def largest(claims: Sequence[JsonObject]) -> str | None:
    """Return the size of the largest claim."""
    claim = max(claims, key=requested_storage, default=None)
    return None if claim is None else str(claim["spec"]["resources"]["requests"]["storage"])
