"""The volumes of a PostgreSQL: size, data version, expansion, and rejected changes.

The StatefulSet's claim template is immutable, so claims are resized one by one.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from config.api.postgresql import PostgreSQL
from config.data_versions import refusal
from controller.reconcilers.claims import amount, claim_spec, requested_storage, sized
from controller.reconcilers.labels import inherited
from controller.reconcilers.postgresql_pods import COMPONENT, VERSION, labels
from controller.reconcilers.resources import CLAIM, STATEFUL_SET, STORAGE_CLASS
from controller.runtime.plan import ApplyFields, Observed, Reference
from kube.resource import JsonObject

KIND = {"apiVersion": CLAIM.api_version, "kind": CLAIM.kind}


class Volumes(NamedTuple):
    """The existing volumes, and what of the spec they allow."""

    version: str
    template: JsonObject
    claims: Sequence[JsonObject]
    patches: Sequence[ApplyFields]
    refused: Sequence[str]

    @property
    def smallest(self) -> str | None:
        """The smallest size of the existing volumes; Return None if there are none."""
        capacities = [capacity for claim in self.claims if (capacity := _capacity(claim))]
        return min(capacities, key=amount, default=None)

    @property
    def are_grown(self) -> bool:
        """Whether no claim still has to be expanded."""
        return all(
            not grows(claim, write.fields)
            for claim, write in zip(self.claims, self.patches, strict=True)
        )


def volumes(database: PostgreSQL, observed: Observed) -> Volumes:
    """Compare the spec with the existing volumes."""
    stateful_set = observed.child(STATEFUL_SET, database.name)
    claims = claims_of(database, observed, "database")
    template = (
        _template(database, claims) if stateful_set is None else _stored_template(stateful_set)
    )
    version = template["metadata"]["labels"].get(VERSION, database.spec.version)
    return Volumes(
        version=version,
        template=template,
        claims=claims,
        patches=[patch(claim, database, database.spec.storage, observed) for claim in claims],
        refused=[
            *_refused(database, version, [*claims, template][0]),
            *_refused_sizes(database, template, claims, observed),
        ],
    )


def claims_of(database: PostgreSQL, observed: Observed, component: str) -> list[JsonObject]:
    """Return the existing claims of the instances or of backups."""
    found = observed.find(CLAIM, "instance", database.name)
    matching = [claim for claim in found if claim["metadata"]["labels"].get(COMPONENT) == component]
    return sorted(matching, key=lambda claim: str(claim["metadata"]["name"]))


def patch(claim: JsonObject, database: PostgreSQL, storage: str, observed: Observed) -> ApplyFields:
    """Return the patch of a claim: its labels, and its new size if it can be expanded now."""
    about = claim["metadata"]
    fields: JsonObject = {"metadata": {"labels": inherited(database)}}
    bound = claim.get("status", {}).get("phase") == "Bound"
    if bound and amount(storage) >= requested_storage(claim) and _expands(claim, observed):
        fields["spec"] = sized(storage)
    return ApplyFields(
        Reference(CLAIM, about["name"], about["uid"], about.get("namespace")), fields
    )


def grows(claim: JsonObject, fields: JsonObject) -> bool:
    """Return whether a patch expands a claim."""
    return "spec" in fields and amount(
        fields["spec"]["resources"]["requests"]["storage"]
    ) > requested_storage(claim)


def _template(database: PostgreSQL, claims: Sequence[JsonObject]) -> JsonObject:
    """Return the claim template of a new StatefulSet.

    Retained volumes have data of their version.
    """
    about = {**labels(database, "database"), VERSION: database.spec.version}
    left = (claim["metadata"]["labels"].get(VERSION) for claim in claims)
    if version := next(filter(None, left), None):
        about[VERSION] = version
    spec = claim_spec(database.spec.storage, database.spec.storage_class_name)
    return {**KIND, "metadata": {"name": "data", "labels": about}, "spec": spec}


def _stored_template(stateful_set: JsonObject) -> JsonObject:
    (template,) = stateful_set["spec"]["volumeClaimTemplates"]
    about, template_spec = template["metadata"], template["spec"]
    spec = claim_spec(
        template_spec["resources"]["requests"]["storage"], template_spec.get("storageClassName")
    )
    return {
        **KIND,
        "metadata": {"name": about["name"], "labels": about.get("labels", {})},
        "spec": spec,
    }


def _refused(database: PostgreSQL, version: str, volume: JsonObject) -> Iterator[str]:
    """Yield the problems of a spec that the existing volumes cannot satisfy."""
    spec, class_name = database.spec, _class_of(volume)
    if refused := refusal("postgresql", spec.version, version):
        yield f"spec.version: {spec.version}; {refused}"
    if spec.storage_class_name not in (None, class_name):
        yield (
            f"spec.storageClassName: {spec.storage_class_name}; the volumes' class is "
            f"{class_name or 'the default'} "
            "and cannot change. Set it back"
        )


def _refused_sizes(
    database: PostgreSQL, template: JsonObject, claims: Sequence[JsonObject], observed: Observed
) -> Iterator[str]:
    desired = database.spec.storage
    largest = max([template, *claims], key=requested_storage)
    if amount(desired) < requested_storage(largest):
        had = largest["spec"]["resources"]["requests"]["storage"]
        yield f"spec.storage: {desired}; volumes of {had} cannot shrink. Set it to {had} or more"
        return
    fixed = [
        claim
        for claim in claims
        if requested_storage(claim) < amount(desired) and not _expands(claim, observed)
    ]
    for class_name in sorted({_class_of(claim) for claim in fixed}):
        named = f"storage class {class_name}" if class_name else "no storage class"
        had = _had(fixed)
        yield f"spec.storage: {desired}; volumes of {named} do not grow. Set it back to {had}"


def _had(claims: Sequence[JsonObject]) -> str:
    return str(max(claims, key=requested_storage)["spec"]["resources"]["requests"]["storage"])


def _class_of(claim: JsonObject) -> str:
    return str(claim["spec"].get("storageClassName") or "")


def _expands(claim: JsonObject, observed: Observed) -> bool:
    return any(
        each.get("allowVolumeExpansion")
        for each in observed.find(STORAGE_CLASS, "name", _class_of(claim))
    )


def _capacity(claim: JsonObject) -> str | None:
    capacity = claim.get("status", {}).get("capacity", {}).get("storage")
    return None if capacity is None else str(capacity)
