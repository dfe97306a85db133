"""Checks of the components of an AppStack or an EcommercePlatform: the names of their children, and their database."""

from config.data_versions import MYSQL, denial
from webhook.engine import Fields, Request, Violation, Violations
from webhook.policies import _field_checks as checks

CHILDREN = {  # by component: the child whose name has the lowest limit
    "database": ("CronJob", "-db-backup", 52),
    "frontend": ("Service", "-frontend", 63),
    "backend": ("Service", "-backend", 63),
    "cache": ("Service", "-cache", 63),
}
STORED = ("CronJob", "-db-backup-cronjob", 52)  # the child of a database whose backups go to a store
DEFAULT_TYPE = "postgresql"


def judge_components(request: Request) -> Violations:
    """Yield a violation for each field from which a component cannot be created."""
    components, before = _components(request), request.before()
    yield from checks.no_dns_label(request, "the names of its Services must be DNS labels")
    backup = request.fields("spec.database.backup")
    is_stored = backup.is_set("destination") and backup.boolean("enabled") is not False
    children = CHILDREN | ({"database": STORED} if is_stored else {})
    if components:
        kind, suffix, limit = min((children[each] for each in components), key=lambda child: child[2] - len(child[1]))
        room = limit - len(suffix)
        rule = f"the {kind} <name>{suffix} has a limit of {limit} characters, which leaves {room}"
        yield from checks.too_long(request, room, rule)
    if "database" in components:
        had = before is not None and "database" in _components(before)
        yield from _of_database(request.fields("spec.database"), before if had else None)
    yield from checks.of_resources(request.fields("spec.cache"))
    for component in ("backend", "frontend"):
        workload = request.fields(f"spec.{component}")
        yield from checks.of_image(workload)
        yield from checks.of_resources(workload)
        yield from checks.of_security_context(workload, may_escalate=False)
        yield from checks.of_variables(workload)


def _components(request: Request) -> list[str]:
    """Return the components of an object: an AppStack has those that are set, a platform has all."""
    return [each for each in CHILDREN if request.kind != "AppStack" or request.is_set(f"spec.{each}")]


def _of_database(database: Fields, before: Request | None) -> Violations:
    """Yield a violation for each field from which the database cannot be created or updated.

    A postgresql is judged as the PostgreSQL object that the controller creates, by that kind's own rules.
    """
    type = database.string("type") or DEFAULT_TYPE
    if before is not None:
        yield from _of_data(database, type, before)
    if type != "mysql":
        return
    version = database.integer_or_string("version")
    if version is not None and not MYSQL.fullmatch(str(version)):
        quoted = isinstance(version, str)
        fix = "choose one of them" if quoted else "choose one of them, in quotes: YAML takes 8.0 for the number 8"
        yield database.violation("version", version, "mysql comes in 5.7, 8.0, 8.4 and 9.x", fix)
    yield from checks.of_storage(database, "storage")
    yield from checks.of_storage(database, "backup.storage")
    replicas = database.integer("replicas")
    if replicas is not None and replicas > 1:
        yield database.violation("replicas", replicas, "mysql has one server", "set it to 1, or use postgresql")
    if not database.is_set("backup.destination"):  # else a Backup object is created, and judged
        yield from checks.of_schedule(database, "backup.schedule")
    yield from checks.of_resources(database)
    yield from checks.of_object_name(database, "storageClassName")


def _of_data(database: Fields, type: str, before: Request) -> Violations:
    """Yield a violation where an update would lose the data, or the requested version cannot open it.

    While the database is not ready, its previous version may never have opened the data: the controller decides.
    """
    had = before.fields("spec.database")
    was = had.string("type") or DEFAULT_TYPE
    version, data = database.integer_or_string("version"), had.integer_or_string("version")
    conditions = {each.string("type"): each.string("status") for each in before.each("status.conditions")}
    if type != was:
        found, fix = f"changes from {was} to {type}", "set it back, and move the data to another database"
        yield Violation(database.path("type"), found, "the data would be left behind", fix)
        return
    is_known = version is not None and data is not None and conditions.get("DatabaseReady") != "False"
    if is_known and (refused := denial(type, str(version), str(data))):
        yield Violation(database.path("version"), str(version), *refused)
