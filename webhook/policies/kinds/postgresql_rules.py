"""A PostgreSQL's children can be created: name, volumes, users, databases, backups are valid.

Why: the children's names have limits of their own. Without this policy, a PostgreSQL with an
invalid role or schedule would be admitted and fail much later. An unset field has a default, or the
condition Ready reports that it is missing. A destination of backups is judged as the Backup that
the controller creates for it. Always in force, as part of the kind.

Not judged here, but by the controller against existing volumes: `storage` that shrinks or cannot
grow, a later `version`, another `storageClassName`; `kubectl scale` to fewer than three instances
with `synchronous: Required`.

Allowed: `shop-db`; `storage: 10Gi`; `users: [{name: app}]` with `databases: [{name: shop, owner:
app}]`.
Denied:  a name of more than 52 characters, of 48 with users or databases, of 45 with backups, of 37
         where they go to a store; `storage: 0Gi`; a user `replicator`, `pg_reader` or `App`; a
         database's owner that is not in `users`; `schedule: "0 25 * * *"`; a request of resources
         above its limit; an earlier `version` than that of its data in `status.version`, except
         `status.previousVersion` after an upgrade; a `restoreFrom` that is added later, or changed
         once it is restored; `parameters: {work_memory: 16MB}`, which PostgreSQL does not have;
         `synchronous: Required` with two instances.
Fix: choose other names; write the schedule as five fields (minute, hour, day of month, month, day
of week) in UTC.
See: https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/
"""

from config.data_versions import denial
from config.postgresql_names import SUPERUSER, faults
from config.postgresql_parameters import DEFAULT_VERSION, parameter_faults, synchronous_faults
from webhook.engine import Fields, Params, Policy, Request, Violation, Violations
from webhook.policies._field_checks import child_limit, judge_dumps, judge_fields, judge_name

LABEL = "the Service of this name must have a DNS label as its name"
IN_LABEL = "its pods carry <name>-<revision> as a label"
PODS = (52, f"{IN_LABEL}, which has a limit of 63 characters, which leaves 52")
ROLES = (48, "the Job <name>-roles-<hash> has a limit of 63 characters, which leaves 48")
DUMPS, STORED = child_limit("CronJob", "-backup", 52), child_limit("CronJob", "-backup-cronjob", 52)


def validate(request: Request, params: Params) -> Violations:
    """Yield one violation for each field from which a child cannot be created."""
    spec, backup = request.fields("spec"), request.fields("spec.backup")
    users = [user.string("name") or "" for user in spec.each("users")]
    databases = [
        (database.string("name") or "", database.string("owner") or SUPERUSER)
        for database in spec.each("databases")
    ]
    limits = [PODS, ROLES] if users or databases else [PODS]
    if backup.boolean("enabled"):
        limits.append(STORED if backup.is_set("destination") else DUMPS)
    yield from judge_name(request, *limits, label=LABEL)
    version, data = spec.string("version"), request.string("status.version")
    is_return = version == request.string("status.previousVersion")
    if version and data and not is_return and (refused := denial("postgresql", version, data)):
        yield Violation("spec.version", version, *refused)
    yield from judge_fields(spec)
    yield from judge_dumps(backup)
    yield from _of_restore(request)
    parameters = {
        name: value
        for name, value in spec.mapping("parameters").items()
        if isinstance(value, int | str)
    }
    for fault in (
        *faults(users, databases),
        *parameter_faults(parameters, version or DEFAULT_VERSION),
        *synchronous_faults(spec.string("synchronous") or "", spec.integer("replicas") or 1),
    ):
        yield Violation(*fault)


def _of_restore(request: Request) -> Violations:
    """Yield a violation if an existing database would be restored: only a new one is.

    Until it is, the backup may be corrected.
    """
    restore, old = request.fields("spec.restoreFrom"), Fields(request.old_object or {})
    if not restore.value or request.attributes.operation != "UPDATE":
        return
    if old.is_set("spec.restoreFrom") and not old.is_set("status.restoredFrom"):
        return
    before = old.fields("spec.restoreFrom")
    if (restore.string("backup"), restore.string("at")) != (
        before.string("backup"),
        before.string("at"),
    ):
        rule = "only a new database is restored from a backup"
        fix = "create another PostgreSQL, or restore into this one: gatewright restore"
        yield request.violation("spec.restoreFrom", None, rule, fix, found="added or changed")


POLICY = Policy(
    "postgresql-rules", validate=validate, kinds=("PostgreSQL",), category="postgresql", always=True
)
