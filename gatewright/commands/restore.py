"""`gatewright restore`: restore a backup into the database that it is of, by a Job."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime

import click

from config.api.appstack import AppStack
from config.api.ecommerceplatform import EcommercePlatform
from config.settings import Settings
from controller.reconcilers.mysql import MYSQL
from controller.reconcilers.mysql_backups import RESTORE, name_of
from controller.reconcilers.resources import BACKUP, CRON_JOB, JOB, POD, POSTGRESQL
from controller.reconcilers.software import SOFTWARE_LABEL
from gatewright.console.options import CLUSTER, Namespace, settings_options
from kube.client import Client
from kube.credentials import load
from kube.errors import NotFound
from kube.resource import JsonObject, Resource

STACKS = (AppStack.definition.resource, EcommercePlatform.definition.resource)
LOOK_AGAIN = 1.0  # seconds between two looks at the Job
TO_A_CLAIM = "--database needs a Backup: dumps in a claim are restored as a whole"


@click.command
@settings_options(*CLUSTER)
@click.option("-n", "--namespace", type=Namespace(), help="namespace of NAME [the kubeconfig's]")
@click.option("--backup", metavar="BACKUP", help="name of the backup to restore [the newest]")
@click.option(
    "--at",
    type=click.DateTime(["%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d"]),
    help="restore the newest backup begun by then, in UTC",
)
@click.option("--database", help="restore only this database")
@click.option("--as", "copy", metavar="DATABASE", help="restore it under this name, beside it")
@click.option("--yes", is_flag=True, help="do not ask")
@click.argument("name")
def command(
    settings: Settings,
    namespace: str | None,
    backup: str | None,
    at: datetime | None,
    database: str | None,
    copy: str | None,
    name: str,
    *,
    yes: bool,
) -> int:
    """Restore a backup into the database that it is of.

    NAME is a Backup, or a PostgreSQL, an AppStack or an EcommercePlatform with backups. Prints what
    will be replaced, asks, creates a Job with the credentials of the backups, and waits for its
    end. The Job of a Backup reads and verifies all that it restores before it writes. The exit code
    is 1 if the restore failed.
    """
    if backup and at:
        raise click.UsageError("--backup and --at exclude each other")
    if copy and not database:
        raise click.UsageError("--as needs --database")
    which = backup or (f"{at:%Y%m%dT%H%M%SZ}" if at else "latest")
    arguments = [which, *filter(None, (database, copy))]
    return 0 if asyncio.run(_restore(settings, namespace, name, arguments, yes=yes)) else 1


async def _restore(
    settings: Settings, namespace: str | None, name: str, arguments: Sequence[str], *, yes: bool
) -> bool:
    endpoint = await load(settings.kubeconfig, settings.context)
    where = namespace or endpoint.namespace
    async with Client(endpoint) as client:
        cronjob, text = await find_backups(client, name, where)
        job = restore_job(cronjob, arguments, datetime.now(UTC))
        click.echo(f"{text}\nBackup: {_describe(arguments)}")
        if not yes:
            click.confirm("Restore?", abort=True)
        await client.create(JOB, job, field_manager="gatewright-restore")
        created = job["metadata"]["name"]
        click.echo(f"job/{created} in namespace {where} is running; its end is awaited")
        return await _await_end(client, created, where)


async def find_backups(client: Client, name: str, namespace: str) -> tuple[JsonObject, str]:
    """Return the CronJob that makes the backups, and a text about what a restore replaces.

    Raises ClickException if there is neither a Backup nor a database with backups of that name.
    """
    if (backup := await _get(client, BACKUP, name, namespace)) is not None:
        return await client.get(CRON_JOB, f"{name}-cronjob", namespace), describe_replaced(backup)
    database = ""
    if await _get(client, POSTGRESQL, name, namespace) is not None:
        database = name
    for stack in STACKS:
        if not database and await _get(client, stack, name, namespace) is not None:
            database = f"{name}-db"
    backups = await _backups_of(client, database, namespace) if database else None
    if backups is None:
        raise click.ClickException(
            f"there is no Backup {name}, and no PostgreSQL, AppStack or EcommercePlatform {name} "
            f"with backups, in namespace {namespace}; kubectl get "
            "backups,postgresqls,appstacks,ecommerceplatforms -A lists them"
        )
    return backups


async def _backups_of(
    client: Client, database: str, namespace: str
) -> tuple[JsonObject, str] | None:
    """Return what `find_backups` does for a database with this name; None if it has no backups."""
    own = name_of(database)
    if (backup := await _get(client, BACKUP, own, namespace)) is not None:
        return await client.get(CRON_JOB, f"{own}-cronjob", namespace), describe_replaced(backup)
    if (cronjob := await _get(client, CRON_JOB, own, namespace)) is None:
        return None
    text = f"Replaces: databases of {{}} {database}\nLater writes to them are lost."
    if not is_of_mysql(cronjob):
        return cronjob, text.format("PostgreSQL")
    restart = f"kubectl rollout restart statefulset/{database} -n {namespace}"
    after = f"Afterwards, restart it for the passwords of its Secret: {restart}"
    return cronjob, f"{text.format('the MySQL server')}\n{after}"


def is_of_mysql(cronjob: JsonObject) -> bool:
    """Whether a CronJob dumps a MySQL server of a stack to a claim."""
    labels = cronjob["metadata"].get("labels") or {}
    return bool(labels.get(SOFTWARE_LABEL) == MYSQL.name)


async def _get(client: Client, resource: Resource, name: str, namespace: str) -> JsonObject | None:
    try:
        return await client.get(resource, name, namespace)
    except NotFound:
        return None


def describe_replaced(backup: JsonObject) -> str:
    """Return what a restore of a stored Backup replaces."""
    source, status = backup["spec"]["source"], backup.get("status", {})
    connection = source["connection"]
    databases = connection.get("database") or "all databases of the backup"
    newest = status.get("lastBackup") or "unknown"
    return (
        f"Replaces: tables of {databases} in the {source['type']} server {connection['host']}; "
        "tables that are not in the backup stay\n"
        "Later writes to them are lost.\n"
        f"Newest good backup: {newest}, verified by a drill: "
        f"{status.get('lastVerifiedTime') or 'never'}"
    )


def _describe(arguments: Sequence[str]) -> str:
    which, *rest = arguments
    named = "the newest" if which == "latest" else which
    only = f", only database {rest[0]}" if rest else ""
    return f"{named}{only}{f', as {rest[1]}' if rest[1:] else ''}"


def restore_job(cronjob: JsonObject, arguments: Sequence[str], now: datetime) -> JsonObject:
    """Return the Job that restores, with the pod of a CronJob for backups.

    Raises UsageError for arguments that a CronJob for dumps in a claim does not have.
    """
    about, template = cronjob["metadata"], cronjob["spec"]["jobTemplate"]
    pod = template["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    if container["command"][-1] == "/backup.sh":
        changed = {**container, "command": ["/restore.sh", *arguments]}
    else:
        which, *rest = arguments
        if rest:
            raise click.UsageError(TO_A_CLAIM)
        script = container["command"][-1].replace("backup.sh", "restore.sh")
        chosen = [] if which == "latest" else [{"name": "BACKUP", "value": which}]
        command = ["bash", "-c", RESTORE] if is_of_mysql(cronjob) else ["bash", script]
        changed = {**container, "command": command}
        changed["env"] = [*container.get("env", ()), *chosen]
    spec = {
        **template["spec"],
        "backoffLimit": 0,
        "template": {
            **template["spec"]["template"],
            "spec": {**pod, "restartPolicy": "Never", "containers": [changed]},
        },
    }
    return {
        "apiVersion": JOB.api_version,
        "kind": JOB.kind,
        "metadata": {
            "name": f"{about['name'][:40]}-restore-{now:%m%d%H%M%S}",
            "namespace": about["namespace"],
            "labels": template.get("metadata", {}).get("labels") or {},
        },
        "spec": spec,
    }


async def _await_end(client: Client, name: str, namespace: str) -> bool:
    """Print how the Job ended; return whether it succeeded."""
    while True:
        job = await client.get(JOB, name, namespace)
        ends = {
            condition["type"]: condition
            for condition in job.get("status", {}).get("conditions") or ()
            if condition["status"] == "True" and condition["type"] in ("Complete", "Failed")
        }
        if ends:
            break
        await asyncio.sleep(LOOK_AGAIN)
    messages = [message async for message in _messages(client, name, namespace)]
    if "Complete" in ends:
        click.echo("restored")
        return True
    why = messages[-1] if messages else ends["Failed"].get("message", "")
    click.echo(f"failed: {why}\nkubectl logs -n {namespace} job/{name}", err=True)
    return False


async def _messages(client: Client, name: str, namespace: str) -> AsyncIterator[str]:
    async for pod in client.list(POD, namespace, labels=f"job-name={name}"):
        for status in pod.get("status", {}).get("containerStatuses") or ():
            if message := status.get("state", {}).get("terminated", {}).get("message"):
                yield str(message).strip().splitlines()[-1]
