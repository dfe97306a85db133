"""A Backup's CronJob can be created: its name, schedule and destination are valid.

Why: without this policy, an invalid schedule or bucket would be admitted, and a missed backup would
be the first symptom. An unset field is no violation: the condition Ready reports that it is
missing. Always in force, as part of the kind.

Allowed: `schedule: "0 2 * * *"`, `schedule: "@daily"`, `endpoint: https://minio.storage:9000`.
Denied:  a name of more than 44 characters; `schedule: "0 25 * * *"`, `schedule: "@every 1h"`,
         `bucket: shop/nightly`, `endpoint: minio`, `port: 70000`; a drill of
         mongodb; a request of resources above its limit.
Fix: the message names the field, its value and the fix.
See: https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/
"""

import re
from urllib.parse import urlsplit

from webhook.engine import Fields, Params, Policy, Request, Violation, Violations
from webhook.engine.violation import shown
from webhook.policies._field_checks import child_limit, judge_fields, judge_name, judge_schedule

LIMIT = child_limit("CronJob", "-cronjob", 52)
PORT = "spec.source.connection.port"
BUCKET, ENDPOINT = "spec.destination.bucket", "spec.destination.endpoint"
PORT_NUMBER = re.compile(r"[0-9]{1,5}")
BUCKETS = {
    "s3": re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]"),
    "gcs": re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]"),
    "azure": re.compile(r"(?!.{64})[a-z0-9](-?[a-z0-9]){2,62}"),
}


def validate(request: Request, params: Params) -> Violations:
    """Yield one violation for each field from which no working CronJob can be created."""
    yield from judge_name(request, LIMIT)
    yield from judge_fields(request.fields("spec"))
    yield from judge_schedule(request.fields("spec"))
    drill, source = request.fields("spec.drill"), request.string("spec.source.type")
    yield from _of_drill(drill, request.string("spec.source.connection.database"))
    if drill.value and source == "mongodb":
        rule = "drills restore PostgreSQL, MySQL and MariaDB only"
        yield request.violation("spec.drill", None, rule, "remove it", found=f"set, for {source}")
    port = request.integer_or_string(PORT)
    if port is not None and not (PORT_NUMBER.fullmatch(str(port)) and 1 <= int(port) <= 65535):
        yield request.violation(PORT, port, "not a valid port", "write a number from 1 to 65535")
    store, bucket = request.string("spec.destination.type") or "s3", request.string(BUCKET)
    if bucket and store in BUCKETS and not BUCKETS[store].fullmatch(bucket):
        rule = f"no {store} {'container' if store == 'azure' else 'bucket'} can have that name"
        yield request.violation(
            BUCKET, bucket, rule, "write only its name, in lower case; put a path into prefix"
        )
    endpoint = request.string(ENDPOINT)
    if endpoint and not _is_endpoint(endpoint):
        found = shown(re.sub(r"(?<=//).*@", "…@", endpoint))
        rule = "not the URL of a store: http or https, a host, and no login"
        fix = "write it as http://minio:9000, and the login into the Secret that secretRef names"
        yield Violation(ENDPOINT, found, rule, fix)


def _of_drill(drill: Fields, database: str | None) -> Violations:
    """Yield a violation for each field from which no working drill can be created."""
    yield from judge_fields(drill)
    yield from judge_schedule(drill)
    for query in drill.each("queries"):
        if query.is_set("query") and not (query.is_set("database") or database):
            rule = "the query needs a database, since the Backup is of all of them"
            yield query.violation("database", None, rule, "name one", found="missing")


def _is_endpoint(endpoint: str) -> bool:
    """Return whether a URL names a server, without a login, which belongs in a Secret."""
    try:
        url = urlsplit(endpoint)
        names_server = url.scheme in {"http", "https"} and url.hostname and url.port != 0
    except ValueError:  # an invalid port or address
        return False
    return bool(names_server) and url.username is None


POLICY = Policy(
    "backup-rules", validate=validate, kinds=("Backup",), category="backup", always=True
)
