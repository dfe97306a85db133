"""The restore of a Backup into a new PostgreSQL: one Job, before users and databases are created.

The Job refuses a server that has data; once it has succeeded, the status says so, and there is no
other.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC
from typing import NamedTuple

from pydantic import ValidationError

from config.api.backup import DEFAULT_RESOURCES, Backup
from config.api.postgresql import PostgreSQL
from controller.reconcilers import backup_env
from controller.reconcilers.backup_cronjob import TAG, pod_spec
from controller.reconcilers.backup_runs import parse_restore, run
from controller.reconcilers.images import image
from controller.reconcilers.postgresql_pods import PORT, credentials, metadata, origin, secret_value
from controller.reconcilers.requirements import complete_requirements
from controller.reconcilers.resources import BACKUP, JOB, POD
from controller.runtime.plan import CreateOnly, Observed, Problem, Write
from kube.resource import JsonObject

INDEX = "restore"  # the name of the Backup to restore
WAITING = "waiting for the Job that restores the backup"
TIME = "%Y%m%dT%H%M%SZ"  # in the names of backups

CONTAINER = "spec.template.spec.containers[name=backup]"
ORIGIN = {
    **origin("spec.template"),
    f"{CONTAINER}.command": "spec.restoreFrom.at",
    f"{CONTAINER}.env": "spec.restoreFrom.backup",
    f"{CONTAINER}.resources": "spec.restoreFrom.backup",
    "spec.template.spec.serviceAccountName": "spec.restoreFrom.backup",
}


class Restore(NamedTuple):
    """The restore of a database: what to write, whether it is done, and why it is not."""

    writes: Sequence[Write] = ()
    done: str | None = None
    """Name of the restored backup."""
    note: str | Problem = ""

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to restore."""
        return not self.writes and not self.note


def by_restored(database: JsonObject) -> Iterator[str]:
    """Yield the name of the Backup that a stored PostgreSQL restores."""
    name = ((database.get("spec") or {}).get("restoreFrom") or {}).get("backup")
    if isinstance(name, str):
        yield name


def problem(database: PostgreSQL, observed: Observed) -> Problem | None:
    """Return why the backup cannot be restored into this database."""
    given = database.spec.restore_from
    if given is None or database.status.restored_from:
        return None
    if not given.backup:
        return Problem("spec.restoreFrom.backup: must be set")
    backup = _backup(observed, given.backup)
    if backup is None:
        return None  # it is waited for
    if isinstance(backup, str):
        return Problem(f'spec.restoreFrom.backup: "{given.backup}": {backup}', "Invalid")
    server = (backup.status.server or "").removeprefix("postgres:")
    if server.isdigit() and int(server) > int(database.spec.version):
        return Problem(
            f"spec.version: {database.spec.version}; Backup {backup.name} is of PostgreSQL "
            f"{server}; write {server} or later",
            "Invalid",
        )
    return None


def _backup(observed: Observed, name: str) -> Backup | str | None:
    """Return the Backup, or why it cannot be restored; None if there is none."""
    stored = next(iter(observed.find(BACKUP, INDEX, name)), None)
    if stored is None:
        return None
    try:
        backup = Backup.model_validate(stored)
    except ValidationError:
        return "its spec is invalid"
    if backup.spec.source.type != "postgresql":
        return f"it is of {backup.spec.source.type}, not of postgresql"
    if fields := list(backup_env.missing(backup)):
        return f"its {', '.join(fields)} must be set"
    return backup


def restore_of(database: PostgreSQL, observed: Observed) -> Restore:
    """Return the restore of a database without a problem (see `problem`)."""
    given = database.spec.restore_from
    if given is None:
        return Restore()
    if database.status.restored_from:
        return Restore(done=database.status.restored_from)
    backup = _backup(observed, given.backup)
    if not isinstance(backup, Backup):
        return Restore(
            note=Problem(
                f'spec.restoreFrom.backup: "{given.backup}": there is no Backup of that name in '
                f"namespace {database.namespace}; apply one with the destination of the backup, "
                "and with suspend: true if it is to make none",
                "BackupNotFound",
            )
        )
    name = f"{database.name}-restore"
    stored = observed.child(JOB, name)
    create = CreateOnly(_job(database, backup, observed, name), origin=ORIGIN)
    if stored is None:
        return Restore([create], note=WAITING)
    pods = observed.find(POD, "instance", database.name)
    own = [pod for pod in pods if pod["metadata"].get("labels", {}).get("job-name") == name]
    attempt = run(stored, own, observed.obstacles.get(stored["metadata"]["uid"]), parse_restore)
    if attempt.state == "Succeeded":
        return Restore(done=attempt.report.backup if attempt.report else backup.name)
    if attempt.state == "Failed":
        message = attempt.message or attempt.otherwise
        again = f"{message}: see the log of job/{name}, and delete it to try again"
        return Restore([create], note=Problem(again, "JobFailed"))
    return Restore([create], note=f"{WAITING}: {attempt.message}" if attempt.message else WAITING)


def _job(database: PostgreSQL, backup: Backup, observed: Observed, name: str) -> JsonObject:
    given = database.spec.restore_from
    which = given.at.astimezone(UTC).strftime(TIME) if given and given.at else "latest"
    about = metadata(database, name, "restore")
    environment = [
        *backup_env.store(backup),
        backup_env.value("SOURCE_HOST", database.name),
        backup_env.value("SOURCE_PORT", str(PORT)),
        backup_env.value("SOURCE_USERNAME", "postgres"),
        secret_value("SOURCE_PASSWORD", credentials(database), "password"),
        backup_env.value("RESTORE_INTO", "empty"),
    ]
    pod = pod_spec(
        image(observed.settings, "gatewright-backup-postgresql", TAG),
        environment,
        complete_requirements(backup.spec.resources, DEFAULT_RESOURCES.to_api()),
    )
    (container,) = pod["containers"]
    return {
        "apiVersion": JOB.api_version,
        "kind": JOB.kind,
        "metadata": about,
        "spec": {
            "backoffLimit": 3,
            "template": {
                "metadata": {"labels": about["labels"]},
                "spec": {
                    **pod,
                    "restartPolicy": "Never",
                    "serviceAccountName": backup.spec.service_account_name or "default",
                    "containers": [{**container, "command": ["/restore.sh", which]}],
                },
            },
        },
    }
