"""Backups of MySQL: a Backup object if it has a destination, else a CronJob and a claim."""

from config.api.components import DatabaseBackup
from controller.reconcilers import dumps, restricted
from controller.reconcilers.claims import Requested, dump_claim, origin
from controller.reconcilers.labels import metadata_origin
from controller.reconcilers.mysql import MYSQL, PORT, USER
from controller.reconcilers.servers import Server
from controller.reconcilers.tiers import resources
from controller.runtime.plan import Apply, Write
from kube.resource import JsonObject

RESOURCES = resources("100m", "128Mi", "1", "512Mi")
DUMP = """\
set -euo pipefail
umask 077
export LC_ALL=C TZ=UTC
format=%Y%m%dT%H%M%SZ name=$(date "+$format") partial=/backup/.partial-$name
trap 'rm -f "$partial"' EXIT
rm -f /backup/.partial-*
mysqldump --host="$SERVER" --user=root --all-databases --single-transaction \
--routines --events --hex-blob |
  gzip >"$partial"
zcat "$partial" | tail -n 1 | grep --quiet "^-- Dump completed"
sync "$partial"
mv "$partial" "/backup/$name.sql.gz"
echo "backup $name is complete"
case "$RETENTION" in *h) unit=hours ;; *d) unit=days ;; *w) unit=weeks ;; esac
oldest=$(date --date="-${RETENTION%?} $unit" "+$format")
for old in /backup/[0-9]*T[0-9]*Z.sql.gz; do
  if [[ ${old##*/} < $oldest ]]; then rm "$old" \
&& echo "removed ${old##*/}, older than $RETENTION"; fi
done
"""
# Restores the dump $BACKUP, or else the newest, into the server. A damaged one changes nothing.
RESTORE = """\
set -euo pipefail
cd /backup/
# the newest one, or the newest that had begun by the time $BACKUP
dump=
for name in [0-9]*T[0-9]*Z.sql.gz; do
  if [[ -e $name && ! ${name%.sql.gz} > ${BACKUP:-9} ]]; then dump=$name; fi
done
if [ -z "$dump" ]; then
  echo "there is no backup${BACKUP:+ that had begun by $BACKUP}" >&2
  exit 1
fi
gzip --test "$dump"
zcat "$dump" | mysql --host="$SERVER" --user=root
echo "restored $dump"
"""
CONTAINER = "spec.jobTemplate.spec.template.spec.containers[name=backup]"
SCHEDULE = {"spec.schedule": "spec.database.backup.schedule"}
CRON_JOB_ORIGIN = SCHEDULE | {
    **metadata_origin("spec.jobTemplate", "spec.jobTemplate.spec.template", own=MYSQL.labels),
    f"{CONTAINER}.image": "spec.database.version",
    f"{CONTAINER}.env[name=RETENTION]": "spec.database.backup.retention",
}
BACKUP_ORIGIN = SCHEDULE | {
    **MYSQL.metadata_origin,
    "spec.retention": "spec.database.backup.retention",
    "spec.destination": "spec.database.backup.destination",
}


def name_of(server: str) -> str:
    """Return the name of the objects that make a server's backups."""
    return f"{server}-backup"


def writes(server: Server, spec: DatabaseBackup, volume: Requested) -> list[Write]:
    """Return the writes for a server's backups; `volume` is that of a claim for dumps.

    The server's Services do not select the backup pods.
    """
    own = {"app": name_of(server.name), "app.kubernetes.io/component": "backup"}
    metadata = server.metadata("backup", **own)
    if spec.destination is None:
        kept = server.metadata("mysql-backup", **own)
        field = "spec.database.backup.storage" if spec.storage else "spec.database.storage"
        come_from = MYSQL.metadata_origin | origin(field, "spec.database.storageClassName")
        return [
            dump_claim(kept, volume, adopt_labels={**MYSQL.labels, **own}, origin=come_from),
            Apply(_cron_job(server, metadata, spec, claim=kept["name"]), CRON_JOB_ORIGIN),
        ]
    reference = server.password("root-password")["secretKeyRef"]
    login = {
        "username": "root",
        "secretRef": {"name": reference["name"], "passwordKey": reference["key"]},
    }
    connection = {"host": server.name, "port": PORT, **login}
    return [Apply(dumps.backup(metadata, "mysql", connection, spec), BACKUP_ORIGIN)]


def _cron_job(
    server: Server, metadata: JsonObject, spec: DatabaseBackup, *, claim: str
) -> JsonObject:
    container = {
        "name": "backup",
        "image": server.image,
        "command": ["bash", "-c", DUMP],
        "env": [
            {"name": "SERVER", "value": server.name},
            {"name": "RETENTION", "value": spec.retention},
            {"name": "MYSQL_PWD", "valueFrom": server.password("root-password")},
        ],
        "resources": RESOURCES,
        "securityContext": restricted.container(),
        "volumeMounts": [
            {"name": "backup", "mountPath": "/backup"},
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108
        ],
    }
    pod = {
        "automountServiceAccountToken": False,
        "restartPolicy": "OnFailure",
        "securityContext": restricted.pod(USER),
        "containers": [container],
        "volumes": [
            {"name": "backup", "persistentVolumeClaim": {"claimName": claim}},
            {"name": "tmp", "emptyDir": {}},
        ],
    }
    return dumps.cron_job(metadata, spec.schedule, pod)
