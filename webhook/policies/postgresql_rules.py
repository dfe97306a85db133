"""A PostgreSQL's children can be created: its name, volumes, users, databases and backups are valid.

Why: the children's names have limits of their own. Without this policy, a PostgreSQL with an invalid role or schedule
would be admitted and fail much later. An unset field has a default, or the condition Ready reports that it is missing.
A destination of backups is judged as the Backup that the controller creates for it. Always in force, as part of the
kind.

Not judged here, but by the controller against existing volumes: `storage` that shrinks or cannot grow, a later
`version`, another `storageClassName`.

Allowed: `shop-db`; `storage: 10Gi`; `users: [{name: app}]` with `databases: [{name: shop, owner: app}]`.
Denied:  a name of more than 52 characters, of 48 with users or databases, of 45 with backups, of 37 where
         they go to a store; `storage: 0Gi`; a user `replicator`, `pg_reader` or `App`; a
         database's owner that is not in `users`; `schedule: "0 25 * * *"`; a request of resources above its limit;
         an earlier `version` than that of its data in `status.version`.
Fix: choose other names; write the schedule as five fields (minute, hour, day of month, month, day of week) in UTC.
See: https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/
"""

from config.data_versions import denial
from config.roles import SUPERUSER, faults
from webhook.engine import Params, Policy, Request, Violation, Violations
from webhook.policies._field_checks import no_dns_label, of_object_name, of_resources, of_schedule, of_storage, too_long

REVISION_LIMIT = 63 - len("-0123456789")
JOB_LIMIT = 63 - len("-roles-01234567")
CRONJOB_LIMIT = 52


def validate(request: Request, params: Params) -> Violations:
    """Yield one violation for each field from which a child cannot be created."""
    users = [user.string("name") or "" for user in request.each("spec.users")]
    databases = [
        (each.string("name") or "", each.string("owner") or SUPERUSER) for each in request.each("spec.databases")
    ]
    yield from of_name(request, has_job=bool(users or databases))
    version, data = request.string("spec.version"), request.string("status.version")
    if version and data and (refused := denial("postgresql", version, data)):
        yield Violation("spec.version", version, *refused)
    yield from of_storage(request, "spec.storage")
    yield from of_storage(request, "spec.backup.storage")
    yield from of_resources(request.fields("spec"))
    yield from of_object_name(request, "spec.storageClassName")
    for fault in faults(users, databases):
        yield Violation(*fault)
    if not request.is_set("spec.backup.destination"):
        yield from of_schedule(request, "spec.backup.schedule")


def of_name(request: Request, *, has_job: bool) -> Violations:
    """Yield a violation where a child could not have its name; the lowest limit counts."""
    limit, why = REVISION_LIMIT, "its pods carry <name>-<revision> as a label, which has a limit of 63 characters"
    if has_job:
        limit, why = JOB_LIMIT, "the Job <name>-roles-<hash> has a limit of 63 characters"
    if request.boolean("spec.backup.enabled"):
        suffix = "-backup-cronjob" if request.is_set("spec.backup.destination") else "-backup"
        limit = CRONJOB_LIMIT - len(suffix)
        why = f"the CronJob <name>{suffix} has a limit of {CRONJOB_LIMIT} characters"
    yield from too_long(request, limit, f"{why}, which leaves {limit}")
    yield from no_dns_label(request, "the Service of this name must have a DNS label as its name")


POLICY = Policy("postgresql-rules", validate=validate, kinds=("PostgreSQL",), category="postgresql", always=True)
