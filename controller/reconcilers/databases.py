"""The database of AppStack and EcommercePlatform: a PostgreSQL object, or a MySQL server."""

import re
from collections.abc import Sequence
from fractions import Fraction
from math import ceil

from config.api.components import Database
from controller.reconcilers import mysql, mysql_backups
from controller.reconcilers.claims import amount, without_class
from controller.reconcilers.components import Component, Place, Whole, removed, without
from controller.reconcilers.images import image
from controller.reconcilers.labels import metadata_origin
from controller.reconcilers.mysql_claims import claims_of, labelled, largest, patches, refused, stored_template
from controller.reconcilers.mysql_versions import versions
from controller.reconcilers.readiness import rolled_out
from controller.reconcilers.requirements import completed
from controller.reconcilers.resources import BACKUP, CLAIM, CRON_JOB, POSTGRESQL, SERVICE, STATEFUL_SET
from controller.runtime.plan import Apply, Object, Problem
from controller.runtime.status import ready_in
from kube.resource import Resource

OWNED = (POSTGRESQL, STATEFUL_SET, CLAIM, CRON_JOB, BACKUP)
BACKUPS = (CRON_JOB, BACKUP)

PORTS = {"postgresql": 5432, "mysql": mysql.PORT}
DEFAULT_POSTGRESQL = "17"
NAME = LOGIN = "app"  # the one database that is made, and who owns it
GIBI = Fraction(2**30)
WAITING = frozenset({"Progressing", "Updating", "Degraded"})  # reasons of a child that is on its way, or was there
FIELD = re.compile(r"(^|; )(spec\.\w+)")  # where a problem says what it is about
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


def database(whole: Whole, spec: Database, *, monitored: bool | None = None) -> Component:
    """Return the database. What another type made before stays as it is: it has the data.

    `monitored` is None for a kind without monitoring.
    """
    name = whole.named("db")
    there = _type_there(whole, name)
    if there not in (None, spec.type):
        wrong = f"it is {there}, and spec.database.type: {spec.type} would leave its data behind; set it back"
        problem = Problem(f"Database deployment failed: {wrong}", "TypeChanged")
        return Component("database", ready=False, note=Problem(wrong, "TypeChanged"), problem=problem)
    return _mysql(whole, name, spec) if spec.type == "mysql" else _postgresql(whole, name, spec, monitored=monitored)


def without_database(whole: Whole) -> Component:
    """Return a database that is not wanted: what ran is removed, volumes and passwords stay."""
    name = whole.named("db")
    services = [(SERVICE, name), (SERVICE, f"{name}-headless")]
    places = [(POSTGRESQL, name), (STATEFUL_SET, name), *services, *_backup_places(name)]
    return without(whole, "database", places)


def type_of(whole: Whole, spec: Database) -> str:
    """Return which database there is: what is there counts more than what is said."""
    return _type_there(whole, whole.named("db")) or spec.type


def _type_there(whole: Whole, name: str) -> str | None:
    if whole.observed.child(POSTGRESQL, name) is not None:
        return "postgresql"
    return None if whole.observed.child(STATEFUL_SET, name) is None else "mysql"


def _postgresql(whole: Whole, name: str, spec: Database, *, monitored: bool | None) -> Component:
    child = whole.observed.child(POSTGRESQL, name)
    had = (child or {}).get("spec") or {}
    backup = spec.backup.to_api()
    if spec.backup.storage is not None:
        backup["storage"] = whole_gibi(spec.backup.storage)
    chosen = {"storageClassName": spec.storage_class_name} if spec.storage_class_name else {}
    object = {
        "apiVersion": POSTGRESQL.api_version,
        "kind": POSTGRESQL.kind,
        "metadata": {"name": name, "namespace": whole.namespace, "labels": whole.labelled("database")},
        "spec": {
            **chosen,
            "version": spec.version or had.get("version") or DEFAULT_POSTGRESQL,
            "storage": _storage(whole, spec, had.get("storage")),
            "deletionPolicy": spec.deletion_policy,
            "replicas": spec.replicas or whole.tier.replicas,
            "backup": {**backup, "enabled": backup.get("enabled", whole.tier.backup)},
            "users": [{"name": LOGIN}],
            "databases": [{"name": NAME, "owner": LOGIN}],
            "monitoring": {"enabled": bool(monitored)},
            "resources": _resources(whole, spec),
        },
    }
    ready, note = _is_ready(child)
    url = whole.url("postgresql", "db", PORTS["postgresql"])
    is_failed = not ready and ((child or {}).get("status") or {}).get("phase") == "Failed"
    asked = {} if monitored is None else {"spec.monitoring": "spec.monitoring"}
    writes = [Apply(object, POSTGRESQL_ORIGIN | asked)]
    return Component("database", writes, ready=ready, note=note, url=url, is_failed=is_failed)


def _resources(whole: Whole, spec: Database) -> Object:
    return completed(spec.resources, whole.tier.database)


def _is_ready(child: Object | None) -> tuple[bool, str | Problem]:
    """Tell whether a PostgreSQL object is ready as it is now, and what a condition is to say of that."""
    status = (child or {}).get("status") or {}
    ready = ready_in(status)
    if child is None or ready is None or status.get("observedGeneration") != child["metadata"].get("generation"):
        return False, ""
    if ready["status"] == "True":
        return True, ""
    told = FIELD.sub(_our_field, ready["message"])
    if told == ready["message"]:
        told = f"{child['kind']} {child['metadata']['name']}: {told}"
    return False, told if ready["reason"] in WAITING else Problem(told, ready["reason"])


def _our_field(found: re.Match[str]) -> str:
    """Return where the parent has the field that a PostgreSQL's problem begins with: that is the one to correct."""
    return found[1] + POSTGRESQL_ORIGIN.get(found[2], found[2])


def _mysql(whole: Whole, name: str, spec: Database) -> Component:
    stored, claims = whole.observed.child(STATEFUL_SET, name), claims_of(whole.observed, name)
    ready, note = rolled_out(stored, 1)
    version = versions(spec.version, stored, claims, is_ready=ready)
    server = mysql.Server(
        name=name,
        namespace=whole.namespace,
        labels=whole.labelled("database"),
        version=version.server,
        image=image(whole.observed.settings, "mysql", version.server),
        storage=_storage(whole, spec, largest(claims)),
        storage_class_name=spec.storage_class_name,
        deletion_policy=spec.deletion_policy,
        resources=_resources(whole, spec),
    )
    backup = CRON_JOB if spec.backup.destination is None else BACKUP
    dumps = claims_of(whole.observed, mysql_backups.name_of(name))
    is_backed_up = whole.tier.backup if spec.backup.enabled is None else spec.backup.enabled
    writes = [
        *mysql.writes(server, stored_template(stored)),
        *patches(claims, server.storage, {**whole.labels, **version.labels}),
        *(labelled(each, whole.labels, {}) for each in dumps),
        *(mysql_backups.writes(server, spec.backup) if is_backed_up else ()),
        *removed(whole, _backup_places(name, but=(backup,) if is_backed_up else ())),
    ]
    url = whole.url("mysql", "db", PORTS["mysql"])
    if wrong := version.wrong or refused(claims, stored_template(stored), server.storage, spec.storage_class_name):
        problem = Problem(f"Database deployment failed: {wrong.message}", wrong.reason)
        return Component("database", writes, ready=False, note=wrong, url=url, problem=problem)
    needed = [*claims, *(dumps if is_backed_up and backup == CRON_JOB else ())]
    lacking = without_class(needed, whole.observed)
    return Component("database", writes, ready=ready and not lacking, note=lacking or note, url=url)


def _backup_places(name: str, but: Sequence[Resource] = ()) -> list[Place]:
    resources = (each for each in (CRON_JOB, BACKUP) if each not in but)
    return [(each, mysql_backups.name_of(name)) for each in resources]


def variables(whole: Whole, spec: Database) -> Sequence[Object]:
    """Return the environment variables that tell a backend where its database is and how to log in."""
    name, type = whole.named("db"), type_of(whole, spec)
    if type == "mysql":
        password = mysql.password(name, "password")
    else:
        password = {"secretKeyRef": {"name": f"{name}-user-{LOGIN}", "key": "password"}}
    login = "$(DATABASE_USER):$(DATABASE_PASSWORD)@$(DATABASE_HOST):$(DATABASE_PORT)/$(DATABASE_NAME)"
    return [
        {"name": "DATABASE_HOST", "value": name},
        {"name": "DATABASE_PORT", "value": str(PORTS[type])},
        {"name": "DATABASE_NAME", "value": NAME},
        {"name": "DATABASE_USER", "value": LOGIN},
        {"name": "DATABASE_PASSWORD", "valueFrom": password},
        {"name": "DATABASE_URL", "value": f"{type}://{login}"},
    ]


def _storage(whole: Whole, spec: Database, had: str | None) -> str:
    """Return the size in whole Gi; where none is said, that of the environment, unless there is a larger volume."""
    if spec.storage is not None:
        return whole_gibi(spec.storage)
    default = whole.tier.storage
    return whole_gibi(default if had is None or amount(had) <= amount(default) else had)


def whole_gibi(storage: int | str) -> str:
    """Return a size in whole Gi, rounded up: 1Ti is 1024Gi."""
    return f"{ceil(amount(storage) / GIBI)}Gi"
