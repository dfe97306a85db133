"""Deletion of a PostgreSQL with the policy Delete: its instances stop, then its claims are deleted.

The StatefulSet's controller creates claims, and can do so after the StatefulSet is gone; one that
has seen that no instance is wanted creates none any more.
"""

from config.api.postgresql import PostgreSQL
from controller.reconcilers.postgresql_claims import claims_of
from controller.reconcilers.resources import CLAIM, STATEFUL_SET
from controller.runtime.plan import ApplyFields, Delete, Observed, Reference, Step, Write
from kube.resource import JsonObject, Resource

COMPONENTS = ("database", "backup")


def removal(database: PostgreSQL, observed: Observed) -> Step:
    """Return the step that stops the instances and then deletes all claims."""
    return Step(
        "removal of volumes",
        _writes(database, observed) if _is_asked(database) else (),
        doing="failed to remove volumes",
    )


def is_finalized(database: PostgreSQL, observed: Observed) -> bool:
    """Return whether nothing is left that the deletion of the object promises to delete."""
    if database.spec.deletion_policy == "Retain":
        return True
    return (
        _is_asked(database) and _is_stopped(database, observed) and not _claims(database, observed)
    )


def _is_asked(database: PostgreSQL) -> bool:
    is_deleted = database.metadata.deletion_timestamp is not None
    return is_deleted and database.spec.deletion_policy == "Delete"


def _writes(database: PostgreSQL, observed: Observed) -> list[Write]:
    stateful_set = observed.child(STATEFUL_SET, database.name)
    stop = (
        [ApplyFields(_reference(STATEFUL_SET, stateful_set), {"spec": {"replicas": 0}})]
        if stateful_set
        else []
    )
    claims = _claims(database, observed) if _is_stopped(database, observed) else []
    return [*stop, *(Delete(_reference(CLAIM, each)) for each in claims)]


def _is_stopped(database: PostgreSQL, observed: Observed) -> bool:
    """Return whether no instance is left, and the StatefulSet's controller will make none."""
    stateful_set = observed.child(STATEFUL_SET, database.name)
    if stateful_set is None:
        return True
    status = stateful_set.get("status", {})
    is_seen = status.get("observedGeneration") == stateful_set["metadata"].get("generation")
    is_empty = stateful_set["spec"].get("replicas") == status.get("replicas", 0) == 0
    return bool(is_seen and is_empty)


def _claims(database: PostgreSQL, observed: Observed) -> list[JsonObject]:
    """Return the claims that are not deleted yet."""
    return [
        claim
        for component in COMPONENTS
        for claim in claims_of(database, observed, component)
        if "deletionTimestamp" not in claim["metadata"]
    ]


def _reference(resource: Resource, object: JsonObject) -> Reference:
    metadata = object["metadata"]
    return Reference(resource, metadata["name"], metadata["uid"], metadata.get("namespace"))
