"""The volumes of a PostgreSQL, and the version of the data that they have."""

from collections.abc import Iterator, Sequence

from config.api.postgresql import PostgreSQL
from config.data_versions import refusal
from controller.reconcilers import postgresql_upgrade as upgrade
from controller.reconcilers.claims import Requested, Volumes, new_template
from controller.reconcilers.claims import volumes as volumes_of
from controller.reconcilers.labels import inherited
from controller.reconcilers.postgresql_pods import COMPONENT, VERSION, labels
from controller.reconcilers.resources import CLAIM, STATEFUL_SET
from controller.runtime.plan import Observed, Problem
from kube.resource import JsonObject


def requested_volumes(database: PostgreSQL) -> Requested:
    """Return what the spec requests of the instances' volumes."""
    spec = database.spec
    return Requested(spec.storage, spec.storage_class_name, inherited(database))


def volumes(database: PostgreSQL, observed: Observed) -> Volumes:
    """Compare the spec with the existing volumes."""
    claims, wanted = claims_of(database, observed, "database"), requested_volumes(database)
    about = {**labels(database, "database"), VERSION: database.spec.version}
    # retained volumes have data of their version
    left = (claim["metadata"]["labels"].get(VERSION) for claim in claims)
    if version := next(filter(None, left), None):
        about[VERSION] = version
    stateful_set = observed.child(STATEFUL_SET, database.name)
    return volumes_of(wanted, stateful_set, new_template("data", wanted, about), claims, observed)


def claims_of(database: PostgreSQL, observed: Observed, component: str) -> list[JsonObject]:
    """Return the existing claims of the instances or of backups."""
    claims: Sequence[JsonObject] = observed.find(CLAIM, "instance", database.name)
    matching = [
        claim for claim in claims if claim["metadata"]["labels"].get(COMPONENT) == component
    ]
    return sorted(matching, key=lambda claim: str(claim["metadata"]["name"]))


def problems(database: PostgreSQL, observed: Observed, stored: Volumes) -> Iterator[Problem]:
    """Yield the problems of a spec that the existing volumes cannot satisfy."""
    version = upgrade.data_version(database, observed, stored)
    previous = upgrade.previous_version(database, observed)
    refused = refusal("postgresql", database.spec.version, version)
    if refused and not upgrade.is_allowed(database, version, previous):
        yield Problem(f"spec.version: {database.spec.version}; {refused}", "VersionChanged")
    yield from stored.problems
