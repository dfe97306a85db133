"""Backups of a PostgreSQL: a Backup object if it has a destination, else a CronJob and a claim."""

from collections.abc import Iterator
from datetime import datetime

from config.api.backup import Backup
from config.api.postgresql import PostgreSQL
from controller.reconcilers import backup_env, dumps
from controller.reconcilers.claims import dump_claim, dump_patches, without_class
from controller.reconcilers.claims import origin as claim_origin
from controller.reconcilers.postgresql_pods import (
    PORT,
    client,
    credentials,
    image_source,
    metadata,
    mount,
    origin,
    pod,
    selector,
    volumes,
)
from controller.reconcilers.postgresql_volumes import claims_of, requested_volumes
from controller.reconcilers.resources import BACKUP, CRON_JOB, JOB
from controller.runtime.plan import (
    Apply,
    Delete,
    Observed,
    Problem,
    Reference,
    Write,
)
from controller.runtime.status import ready_in
from kube.resource import JsonObject, Resource

DIRECTORY = "/backup"
CONTAINER = "spec.jobTemplate.spec.template.spec.containers[name=backup]"
CRON_JOB_ORIGIN = {
    **origin("spec.jobTemplate", "spec.jobTemplate.spec.template"),
    "spec.schedule": "spec.backup.schedule",
    f"{CONTAINER}.env[name=RETENTION]": "spec.backup.retention",
}
BACKUP_ORIGIN = {
    **origin(),
    "spec.schedule": "spec.backup.schedule",
    "spec.retention": "spec.backup.retention",
    "spec.destination": "spec.backup.destination",
}


def name_of(database: PostgreSQL) -> str:
    """Return the name of all objects that make backups."""
    return f"{database.name}-backup"


def writes(database: PostgreSQL, observed: Observed, version: str) -> list[Write]:
    """Return the writes for the requested backups, and the deletions of obsolete objects."""
    spec = database.spec.backup
    if not spec.enabled:
        return [
            *_delete_unplanned(database, observed, CRON_JOB),
            *_delete_unplanned(database, observed, BACKUP),
        ]
    if spec.destination is not None:
        return [
            Apply(_backup(database), BACKUP_ORIGIN),
            *_delete_unplanned(database, observed, CRON_JOB),
        ]
    volume, field = requested_volumes(database), "spec.storage"
    if spec.storage:
        volume, field = volume._replace(storage=spec.storage), "spec.backup.storage"
    return [
        dump_claim(
            metadata(database, name_of(database), "backup"),
            volume,
            adopt_labels=selector(database, "backup"),
            origin=origin() | claim_origin(field, "spec.storageClassName"),
        ),
        *dump_patches(volume, claims_of(database, observed, "backup"), observed),
        Apply(
            _cron_job(database, observed, version),
            CRON_JOB_ORIGIN | {f"{CONTAINER}.image": image_source(database)},
        ),
        *_delete_unplanned(database, observed, BACKUP),
    ]


def _delete_unplanned(database: PostgreSQL, observed: Observed, resource: Resource) -> list[Delete]:
    child = observed.child(resource, name_of(database))
    if child is None:
        return []
    return [
        Delete(Reference(resource, name_of(database), child["metadata"]["uid"], database.namespace))
    ]


def _backup(database: PostgreSQL) -> JsonObject:
    connection = {"host": database.name, "port": PORT, "secretRef": {"name": credentials(database)}}
    about = metadata(database, name_of(database), "backup")
    return dumps.backup(about, "postgresql", connection, database.spec.backup)


def _cron_job(database: PostgreSQL, observed: Observed, version: str) -> JsonObject:
    about = metadata(database, name_of(database), "backup")
    runs = client(database, observed, version, "backup")
    container = {
        **runs,
        "env": [*runs["env"], {"name": "RETENTION", "value": database.spec.backup.retention}],
        "volumeMounts": [*runs["volumeMounts"], mount("backup", DIRECTORY)],
    }
    claim = {"name": "backup", "persistentVolumeClaim": {"claimName": name_of(database)}}
    template = {**pod([container], [*volumes(database), claim]), "restartPolicy": "OnFailure"}
    return dumps.cron_job(about, database.spec.backup.schedule, template)


def missing(database: PostgreSQL) -> Iterator[str]:
    """Yield the required fields of the destination that are unset."""
    if database.spec.backup.enabled and database.spec.backup.destination is not None:
        for field in backup_env.missing(Backup.model_validate(_backup(database))):
            yield field.replace("spec.", "spec.backup.", 1)


def are_complete(database: PostgreSQL, observed: Observed) -> bool:
    """Return whether the objects that make the requested backups exist and are ready."""
    spec = database.spec.backup
    if not spec.enabled:
        return True
    if spec.destination is None:
        return observed.child(CRON_JOB, name_of(database)) is not None and not note(
            database, observed
        )
    ready = _ready(database, observed)
    return ready is not None and ready["status"] == "True"


def note(database: PostgreSQL, observed: Observed) -> str | Problem:
    """Return why the claim gets no volume, or why the Backup object waits or fails."""
    spec = database.spec.backup
    if not spec.enabled:
        return ""
    if spec.destination is None:
        return without_class(claims_of(database, observed, "backup"), observed) or ""
    ready = _ready(database, observed)
    if ready is None or ready["status"] == "True":
        return ""
    message = f"Backup {name_of(database)}: {ready['message']}"
    is_waiting = ready["reason"] in ("Progressing", "Updating", "Degraded")
    return message if is_waiting else Problem(message, ready["reason"])


def _ready(database: PostgreSQL, observed: Observed) -> JsonObject | None:
    child = observed.child(BACKUP, name_of(database)) or {}
    return ready_in(child.get("status", {}))


def state(database: PostgreSQL, observed: Observed, now: datetime) -> dumps.DumpState:
    """Return the condition BackedUp, where backups are requested."""
    if not database.spec.backup.enabled:
        return dumps.DumpState()
    jobs = observed.find(JOB, "instance", database.name)
    return dumps.state_of(name_of(database), observed, jobs, database.status.conditions, now)


def last_time(database: PostgreSQL, observed: Observed) -> datetime | None:
    """Return the time of the last successful backup."""
    children = (observed.child(resource, name_of(database)) for resource in (CRON_JOB, BACKUP))
    times = [child.get("status", {}).get("lastSuccessfulTime") for child in children if child]
    return max((datetime.fromisoformat(time) for time in times if time), default=None)
