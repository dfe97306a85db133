"""Checks of the components of an AppStack or an EcommercePlatform: the names of their children, and their database."""

import re
from collections.abc import Mapping

from config.data_versions import MYSQL, denial
from webhook.engine import Fields, Request, Violation, Violations
from webhook.engine.violation import shown
from webhook.policies._container_checks import of_image, of_resources, of_security_context, of_variables
from webhook.policies._names import no_dns_label, of_object_name, too_long
from webhook.policies._schedules import of_schedule

DNS_NAME = re.compile(r"(?!.{254})([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*")
MAKES: Mapping[str, tuple[str, str, int]] = {  # what each component makes whose name has the lowest limit
    "database": ("CronJob", "-db-backup", 52),
    "frontend": ("Service", "-frontend", 63),
    "backend": ("Service", "-backend", 63),
    "cache": ("Service", "-cache", 63),
}
STORED = ("CronJob", "-db-backup-cronjob", 52)  # what a database makes whose backups go to a store
DEFAULT_TYPE = "postgresql"


def of_name(request: Request, components: list[str]) -> Violations:
    """Yield a violation where a child of one of the components would have an invalid name."""
    yield from no_dns_label(request, "the Services that are made must have a DNS label as their name")
    backup = request.fields("spec.database.backup")
    is_stored = backup.is_set("destination") and backup.boolean("enabled") is not False
    made = {**MAKES, "database": STORED} if is_stored else MAKES
    limits = [(limit - len(suffix), kind, suffix, limit) for kind, suffix, limit in map(made.__getitem__, components)]
    if limits:
        room, kind, suffix, limit = min(limits)
        rule = f"the {kind} <name>{suffix} has a limit of {limit} characters, which leaves {room}"
        yield from too_long(request, room, rule)


def of_database(database: Fields, before: Fields | None) -> Violations:
    """Yield a violation for each thing that the database could not be, or could not become.

    Of postgresql a PostgreSQL object is made, whose own rules say what that could not be.
    """
    type = database.string("type") or DEFAULT_TYPE
    was = type if before is None else before.string("type") or DEFAULT_TYPE
    if type != was:
        yield Violation(
            database.path("type"),
            found=f"{was} is to become {type}",
            rule="the data would be left behind",
            fix="set it back, and move the data to another database",
        )
    if type == "mysql":
        yield from _of_mysql(database)
        yield from of_resources(database)
        yield from of_object_name(database.path("storageClassName"), database.string("storageClassName"))


def of_database_version(request: Request) -> Violations:
    """Yield a violation where the database that there is could not be opened by the version that is asked for now.

    Where it is not ready, the version asked for last may never have opened it: the controller knows by its volumes.
    """
    before = request.before()
    if before is None or any(_is_unready(each) for each in before.each("status.conditions")):
        return
    database, had = request.fields("spec.database"), before.fields("spec.database")
    type, was = (each.string("type") or DEFAULT_TYPE for each in (database, had))
    version, data = (each.integer_or_string("version") for each in (database, had))
    if type != was or version is None or data is None:
        return
    if refused := denial(type, str(version), str(data)):
        yield Violation(database.path("version"), str(version), *refused)


def _is_unready(condition: Fields) -> bool:
    return condition.string("type") == "DatabaseReady" and condition.string("status") == "False"


def of_containers(request: Request) -> Violations:
    """Yield a violation for each thing that the pods of cache, backend or frontend could not have."""
    yield from of_resources(request.fields("spec.cache"))
    for component in ("backend", "frontend"):
        workload = request.fields(f"spec.{component}")
        yield from of_image(workload)
        yield from of_resources(workload)
        yield from of_security_context(workload, may_escalate=False)
        yield from of_variables(workload)


def _of_mysql(database: Fields) -> Violations:
    version = database.integer_or_string("version")
    if version is not None and not MYSQL.fullmatch(str(version)):
        rule = "mysql comes in 5.7, 8.0, 8.4 and 9.x"
        quoted = isinstance(version, str)
        fix = "choose one of them" if quoted else "choose one of them, in quotes: YAML takes 8.0 for the number 8"
        yield database.violation("version", version, rule=rule, fix=fix)
    for path in ("storage", "backup.storage"):
        storage = database.quantity(path)
        if storage is not None and storage.value <= 0:
            found = shown(str(storage))
            yield Violation(database.path(path), found=found, rule="a volume has a size", fix="write 1Gi or more")
    replicas = database.integer("replicas")
    if replicas is not None and replicas > 1:
        fix = "set it to 1, or use postgresql"
        yield Violation(database.path("replicas"), found=replicas, rule="mysql has one server", fix=fix)
    if not database.is_set("backup.destination"):  # else a Backup object is made, and judged
        yield from of_schedule(database.path("backup.schedule"), database.string("backup.schedule"))
