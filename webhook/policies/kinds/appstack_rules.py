"""An AppStack's children can be created: its name, database, queue and containers are valid.

Why: without this policy, an AppStack with invalid children would be admitted, and a component would
never start. An unset field is no violation: it has a default, or the condition Ready reports that
it is missing. A database of type postgresql is judged as the PostgreSQL object that the controller
creates. Always in force, as part of the kind.

Allowed: `database: {type: mysql, version: "8.4", storage: 20Gi}`; a name of 54 characters where
there is no database.
Denied:  a name with a dot, or of more than 42 characters where there is a database, of 34 where its
         backups go to a store, of 46 where there is a queue; `version: "14"` or `replicas: 3` of a
         mysql; an update to another `database.type` or `queue.type`, to an earlier `version` of a
         postgresql or a queue, or to a `version` of a mysql that cannot open its data, such as
         `"8.0"` after `"9.0"`; in backend, frontend and services a
         request above its limit, `securityContext: {privileged: true}` alone, or a variable with
         both `value` and `valueFrom`; `autoscaling` beside `replicas`, or with a `min` above its
         `max`; a service with the name of a component, or whose `dependsOn` names what does not
         exist or leads back to itself.
Fix: the message names the field, its value and the allowed values.
"""

from collections.abc import Collection, Sequence

from config.data_versions import MYSQL, QUEUES, denial
from config.service_order import faults_of
from webhook.engine import Fields, Params, Policy, Request, Violation, Violations
from webhook.policies._field_checks import (
    child_limit,
    judge_autoscaling,
    judge_dumps,
    judge_fields,
    judge_name,
)

LIMITS = {  # by component: the lowest limit of a child's name
    "database": child_limit("CronJob", "-db-backup", 52),
    "frontend": child_limit("Service", "-frontend", 63),
    "backend": child_limit("Service", "-backend", 63),
    "cache": child_limit("Service", "-cache", 63),
    "queue": child_limit("StatefulSet", "-queue", 52),
}
# Limit for a database whose backups go to a bucket.
STORED = child_limit("CronJob", "-db-backup-cronjob", 52)
DEFAULT_TYPES = {"database": "postgresql", "queue": "rabbitmq"}
LEFT = {  # what another type would leave behind, and the fix
    "database": ("the data", "set it back, and move the data to another database"),
    "queue": ("the messages", "set it back; to change it, remove the queue and then add the other"),
}


def validate(request: Request, params: Params) -> Violations:
    """Yield one violation for each fault of a component of an AppStack or a platform."""
    components, database = _components(request), request.fields("spec.database")
    backup, before = database.fields("backup"), request.before()
    is_stored = backup.is_set("destination") and backup.boolean("enabled") is not False
    services = [*request.each("spec.services")]
    limits = [STORED if each == "database" and is_stored else LIMITS[each] for each in components]
    limits += [child_limit("Service", f"-{each.string('name')}", 63) for each in services]
    yield from judge_name(request, *limits, label="the names of its Services must be DNS labels")
    for stored in LEFT:
        if before is not None and stored in components and stored in _components(before):
            yield from _of_data(request.fields(f"spec.{stored}"), stored, before)
    if database.string("type") == "mysql":  # a PostgreSQL is a child, and judged by its own rules
        yield from _of_mysql(database)
    yield from judge_fields(request.fields("spec.cache"))
    yield from _of_queue(request.fields("spec.queue"))
    workloads = (request.fields(f"spec.{component}") for component in ("backend", "frontend"))
    for workload in (*workloads, *services):
        yield from judge_fields(workload, may_escalate=False)
        yield from judge_autoscaling(workload, excludes_replicas=True)
    yield from _of_services(services, components)


def _of_services(services: Sequence[Fields], components: Collection[str]) -> Violations:
    """Yield a violation for each name or dependency of a service that cannot be."""
    named = [(each.string("name") or "", each.strings("dependsOn")) for each in services]
    for place, fault in sorted(faults_of(named, components).items()):
        yield services[place].violation(fault.field, fault.found, fault.rule, fault.fix)


def _components(request: Request) -> list[str]:
    """Return the components of an object: those it sets; of a platform all, but for the queue."""
    optional = LIMITS if request.kind == "AppStack" else ("queue",)
    return [
        name
        for name in LIMITS
        if (name not in optional or request.is_set(f"spec.{name}"))
        and request.boolean(f"spec.{name}.enabled") is not False
    ]


def _of_mysql(database: Fields) -> Violations:
    """Yield a violation for each field from which no MySQL server can be created."""
    version, replicas = database.integer_or_string("version"), database.integer("replicas")
    if version is not None and not MYSQL.fullmatch(str(version)):
        hint = "" if isinstance(version, str) else ", in quotes: YAML takes 8.0 for the number 8"
        fix = f"choose one of them{hint}"
        yield database.violation("version", version, "mysql comes in 5.7, 8.0, 8.4 and 9.x", fix)
    if replicas is not None and replicas > 1:
        fix = "set it to 1, or use postgresql"
        yield database.violation("replicas", replicas, "mysql has one server", fix)
    yield from judge_fields(database)
    yield from judge_dumps(database.fields("backup"))


def _of_queue(queue: Fields) -> Violations:
    """Yield a violation for each field from which no queue can be created."""
    type, version = (
        queue.string("type") or DEFAULT_TYPES["queue"],
        queue.integer_or_string("version"),
    )
    pattern = QUEUES.get(type)
    if version is not None and pattern is not None and not pattern.fullmatch(str(version)):
        series = "4.x" if type == "rabbitmq" else "2.x"
        rule, fix = f"{type} comes in {series}", "choose one of them, in quotes"
        yield queue.violation("version", version, rule, fix)
    yield from judge_fields(queue)


def _of_data(server: Fields, component: str, before: Request) -> Violations:
    """Yield a violation if an update would abandon the data, or set a version that cannot open it.

    While the server is not ready, its previous version may never have opened the data: the
    controller decides.
    """
    had, default = before.fields(f"spec.{component}"), DEFAULT_TYPES[component]
    type, was = server.string("type") or default, had.string("type") or default
    version, data = server.integer_or_string("version"), had.integer_or_string("version")
    if type != was:
        left, fix = LEFT[component]
        rule = f"{left} would be left behind"
        yield Violation(server.path("type"), f"changes from {was} to {type}", rule, fix)
        return
    conditions = before.each("status.conditions")
    status = {each.string("type"): each.string("status") for each in conditions}
    if version is None or data is None or status.get(f"{component.title()}Ready") == "False":
        return
    if refused := denial(type, str(version), str(data)):
        yield Violation(server.path("version"), str(version), *refused)


POLICY = Policy(
    "appstack-rules", validate=validate, kinds=("AppStack",), category="appstack", always=True
)
