"""The database of AppStack and EcommercePlatform: a PostgreSQL object, or a MySQL server."""

import re
from collections.abc import Iterator, Sequence

from config.api.components import Database
from config.api.meta import Condition
from controller.reconcilers import mysql, mysql_backups
from controller.reconcilers.backup_runs import BACKED_UP, keep_job
from controller.reconcilers.claims import dump_patches, largest, without_class
from controller.reconcilers.component import (
    ChildKey,
    Component,
    ComponentsParent,
    delete_existing,
    without,
)
from controller.reconcilers.dumps import DumpState, state_of
from controller.reconcilers.indexes import by_label
from controller.reconcilers.labels import metadata_origin
from controller.reconcilers.requirements import complete_requirements
from controller.reconcilers.resources import (
    BACKUP,
    CLAIM,
    CRON_JOB,
    JOB,
    POSTGRESQL,
    SERVICE,
    STATEFUL_SET,
)
from controller.reconcilers.servers import (
    INDEX,
    Server,
    ServerSettings,
    claims_of,
    password,
    serve,
    storage_of,
    whole_gibi,
)
from controller.runtime.kind import Reads
from controller.runtime.plan import Apply, Problem, Write
from controller.runtime.status import of_type, ready_in
from kube.resource import JsonObject, Resource

OWNED = (POSTGRESQL, STATEFUL_SET, CLAIM, CRON_JOB, BACKUP)
BACKUPS = (CRON_JOB, BACKUP)

PORTS = {"postgresql": 5432, "mysql": mysql.PORT}
DEFAULT_POSTGRESQL = "17"
NAME = LOGIN = "app"  # the one database and its owner
# Reasons of a child that starts, changes, or was ready.
WAITING = frozenset({"Progressing", "Updating", "Degraded"})
FIELD = re.compile(r"(^|; )(spec\.\w+)")  # the field at the start of each problem's text


def _by_server(job: JsonObject) -> Iterator[str]:
    """Yield the name of the MySQL server that a Job dumps."""
    for label in by_label("app")(job):
        yield label.removesuffix("-backup")


OF_MYSQL = ",".join(f"{key}={value}" for key, value in mysql.MYSQL.labels.items())
READS_JOBS = Reads(JOB, {INDEX: _by_server}, OF_MYSQL, keep_job)  # of dumps
POSTGRESQL_ORIGIN = {
    **metadata_origin(),
    "spec.version": "spec.database.version",
    "spec.storage": "spec.database.storage",
    "spec.storageClassName": "spec.database.storageClassName",
    "spec.deletionPolicy": "spec.database.deletionPolicy",
    "spec.replicas": "spec.database.replicas",
    "spec.backup": "spec.database.backup",
    "spec.resources": "spec.database.resources",
}


def database(
    parent: ComponentsParent, spec: Database, *, monitored: bool | None = None
) -> Component:
    """Return the database.

    An existing database of another type does not change, since it has the data.

    `monitored` is None for a kind without monitoring.
    """
    name = parent.child_name("db")
    existing = _type_of_existing(parent, name)
    if existing not in (None, spec.type):
        wrong = (
            f"it is {existing}, and spec.database.type: {spec.type} would leave its data behind; "
            "set it back"
        )
        problem = Problem(f"Database deployment failed: {wrong}", "TypeChanged")
        return Component(
            "database", ready=False, note=Problem(wrong, "TypeChanged"), problem=problem
        )
    return (
        _mysql(parent, name, spec)
        if spec.type == "mysql"
        else _postgresql(parent, name, spec, monitored=monitored)
    )


def without_database(parent: ComponentsParent) -> Component:
    """Return a disabled database: its workloads are deleted, its volumes and passwords stay."""
    name = parent.child_name("db")
    services = [(SERVICE, name), (SERVICE, f"{name}-headless")]
    places = [(POSTGRESQL, name), (STATEFUL_SET, name), *services, *_backup_places(name)]
    return without(parent, "database", places)


def type_of(parent: ComponentsParent, spec: Database) -> str:
    """Return the type of the existing database, or of the spec where none exists."""
    return _type_of_existing(parent, parent.child_name("db")) or spec.type


def _type_of_existing(parent: ComponentsParent, name: str) -> str | None:
    if parent.observed.child(POSTGRESQL, name) is not None:
        return "postgresql"
    return None if parent.observed.child(STATEFUL_SET, name) is None else "mysql"


def _postgresql(
    parent: ComponentsParent, name: str, spec: Database, *, monitored: bool | None
) -> Component:
    child = parent.observed.child(POSTGRESQL, name)
    had = (child or {}).get("spec") or {}
    backup = spec.backup.to_api()
    if spec.backup.storage is not None:
        backup["storage"] = whole_gibi(spec.backup.storage)
    chosen = {"storageClassName": spec.storage_class_name} if spec.storage_class_name else {}
    object = {
        "apiVersion": POSTGRESQL.api_version,
        "kind": POSTGRESQL.kind,
        "metadata": {
            "name": name,
            "namespace": parent.namespace,
            "labels": parent.child_labels("database"),
        },
        "spec": {
            **chosen,
            "version": spec.version or had.get("version") or DEFAULT_POSTGRESQL,
            "storage": storage_of(spec.storage, parent.tier.storage, had.get("storage")),
            "deletionPolicy": spec.deletion_policy,
            "replicas": spec.replicas or parent.tier.replicas,
            "backup": {**backup, "enabled": backup.get("enabled", parent.tier.backup)},
            "users": [{"name": LOGIN}],
            "databases": [{"name": NAME, "owner": LOGIN}],
            "monitoring": {"enabled": bool(monitored)},
            "resources": complete_requirements(spec.resources, parent.tier.database),
        },
    }
    ready, note = _is_ready(child)
    url = parent.url("postgresql", "db", PORTS["postgresql"])
    is_failed = not ready and ((child or {}).get("status") or {}).get("phase") == "Failed"
    monitoring = {} if monitored is None else {"spec.monitoring": "spec.monitoring"}
    writes = [Apply(object, POSTGRESQL_ORIGIN | monitoring)]
    component = Component("database", writes, ready=ready, note=note, url=url, is_failed=is_failed)
    backed_up = of_type(BACKED_UP, (child or {}).get("status", {}).get("conditions") or ())
    if backed_up is None:
        return component
    return component._replace(dumps=DumpState([Condition.model_validate(backed_up)]))


def _is_ready(child: JsonObject | None) -> tuple[bool, str | Problem]:
    """Return whether a PostgreSQL is ready in its current generation, and the condition's text."""
    status = (child or {}).get("status") or {}
    ready = ready_in(status)
    if (
        child is None
        or ready is None
        or status.get("observedGeneration") != child["metadata"].get("generation")
    ):
        return False, ""
    if ready["status"] == "True":
        return True, ""
    message = FIELD.sub(_parent_field, ready["message"])
    if message == ready["message"]:
        message = f"{child['kind']} {child['metadata']['name']}: {message}"
    return False, message if ready["reason"] in WAITING else Problem(message, ready["reason"])


def _parent_field(match: re.Match[str]) -> str:
    """Return the parent's field for the PostgreSQL's field at the start of a problem."""
    return match[1] + POSTGRESQL_ORIGIN.get(match[2], match[2])


def _mysql(parent: ComponentsParent, name: str, spec: Database) -> Component:
    settings = ServerSettings(
        spec.version,
        spec.storage,
        parent.tier.storage,
        spec.storage_class_name,
        spec.resources,
        parent.tier.database,
        spec.deletion_policy,
    )
    server, component = serve(parent, mysql.MYSQL, name, settings, mysql.pod)
    dumps = claims_of(parent.observed, mysql_backups.name_of(name))
    component = component._replace(
        url=parent.url("mysql", "db", PORTS["mysql"]),
        writes=[*component.writes, *_mysql_backups(parent, server, spec, dumps)],
    )
    if _is_backed_up(parent, spec):
        jobs = parent.observed.find(JOB, INDEX, name)
        backups = mysql_backups.name_of(name)
        dumps_now = state_of(backups, parent.observed, jobs, parent.conditions, parent.now)
        component = component._replace(dumps=dumps_now)
    needed = dumps if _dumps_to_a_claim(parent, spec) else ()
    without_volume = without_class(needed, parent.observed)
    if component.problem is None and without_volume:
        return component._replace(ready=False, note=without_volume)
    return component


def _mysql_backups(
    parent: ComponentsParent, server: Server, spec: Database, claims: Sequence[JsonObject]
) -> list[Write]:
    """Return the writes for the requested backups, and the deletions of obsolete objects."""
    volume = server.volume._replace(labels=parent.labels)
    if spec.backup.storage is not None:
        volume = volume._replace(storage=str(spec.backup.storage))
    if not _dumps_to_a_claim(parent, spec):
        volume = volume._replace(storage=largest(claims) or volume.storage)  # it keeps its size
    is_backed_up = _is_backed_up(parent, spec)
    backup = CRON_JOB if spec.backup.destination is None else BACKUP
    return [
        *(mysql_backups.writes(server, spec.backup, volume) if is_backed_up else ()),
        *dump_patches(volume, claims, parent.observed),
        *delete_existing(
            parent, _backup_places(server.name, but=(backup,) if is_backed_up else ())
        ),
    ]


def _is_backed_up(parent: ComponentsParent, spec: Database) -> bool:
    return parent.tier.backup if spec.backup.enabled is None else spec.backup.enabled


def _dumps_to_a_claim(parent: ComponentsParent, spec: Database) -> bool:
    return _is_backed_up(parent, spec) and spec.backup.destination is None


def _backup_places(name: str, but: Sequence[Resource] = ()) -> list[ChildKey]:
    resources = (each for each in (CRON_JOB, BACKUP) if each not in but)
    return [(each, mysql_backups.name_of(name)) for each in resources]


def variables(parent: ComponentsParent, spec: Database) -> Sequence[JsonObject]:
    """Return a backend's environment: endpoint and credentials of its database."""
    name, type = parent.child_name("db"), type_of(parent, spec)
    if type == "mysql":
        login_password = password(name, mysql.MYSQL, "password")
    else:
        login_password = {"secretKeyRef": {"name": f"{name}-user-{LOGIN}", "key": "password"}}
    login = (
        "$(DATABASE_USER):$(DATABASE_PASSWORD)@$(DATABASE_HOST):$(DATABASE_PORT)/$(DATABASE_NAME)"
    )
    return [
        {"name": "DATABASE_HOST", "value": name},
        {"name": "DATABASE_PORT", "value": str(PORTS[type])},
        {"name": "DATABASE_NAME", "value": NAME},
        {"name": "DATABASE_USER", "value": LOGIN},
        {"name": "DATABASE_PASSWORD", "valueFrom": login_password},
        {"name": "DATABASE_URL", "value": f"{type}://{login}"},
    ]
