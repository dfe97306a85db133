"""The CronJob that restores the newest backup into a server which only its pod has.

The server's own image runs /drill.sh; an init container copies it from the image of the backups.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from config.api.backup import DRILL_RESOURCES, Backup, BackupDrill
from config.api.meta import CustomResource
from controller.reconcilers import restricted
from controller.reconcilers.backup_cronjob import LABEL, SCRATCH, TAG
from controller.reconcilers.backup_env import STORE_ORIGIN, store, value
from controller.reconcilers.images import image
from controller.reconcilers.labels import inherited, metadata_origin
from controller.reconcilers.requirements import complete_requirements
from kube.resource import JsonObject

CONTAINER, TOOLS = "drill", "tools"
DIRECTORY, DATA = "/tools", "/data"
# What the server's image lacks; drill.sh finds it beside itself.
COPIED = (
    "/drill.sh",
    "/restore.sh",
    "/store.sh",
    "/sources",
    "/servers",
    "/usr/local/bin/rclone",
    "/etc/ssl/certs/ca-certificates.crt",
)
USER = 999  # that of the official images of PostgreSQL, MySQL and MariaDB
KEPT = 3600  # seconds that a finished Job stays, and its pod's volume with it

POD = "spec.jobTemplate.spec.template.spec"
CLAIM = f"{POD}.volumes[name=data].ephemeral.volumeClaimTemplate.spec"
ORIGIN = {
    **metadata_origin("spec.jobTemplate", "spec.jobTemplate.spec.template"),
    "spec.schedule": "spec.drill.schedule",
    "spec.suspend": "spec.suspend",
    "spec.jobTemplate.spec.activeDeadlineSeconds": "spec.activeDeadlineSeconds",
    f"{POD}.serviceAccountName": "spec.serviceAccountName",
    f"{POD}.initContainers[name={TOOLS}].image": "spec.source.type",
    f"{POD}.containers[name={CONTAINER}].image": "spec.drill.image",
    f"{POD}.containers[name={CONTAINER}].resources": "spec.drill.resources",
    f"{POD}.initContainers[name={TOOLS}].resources": "spec.drill.resources",
    f"{POD}.containers[name={CONTAINER}].env": "spec.drill.queries",
    **{
        f"{POD}.containers[name={CONTAINER}].env[name={name}]": field
        for name, field in STORE_ORIGIN.items()
    },
    f"{CLAIM}.resources.requests.storage": "spec.drill.storage",
    f"{CLAIM}.storageClassName": "spec.drill.storageClassName",
}


def name_of(backup: CustomResource) -> str:
    """Return the CronJob's name."""
    return f"{backup.name}-drill"


def missing(backup: Backup, drill: BackupDrill) -> Iterator[str]:
    """Yield the fields that are required and unset."""
    for at, query in enumerate(drill.queries):
        if not (query.database or backup.spec.source.connection.database):
            yield f"spec.drill.queries[{at}].database"
        if not query.query:
            yield f"spec.drill.queries[{at}].query"


def plan_drill(
    backup: Backup, drill: BackupDrill, server: str, settings: Mapping[str, Any]
) -> JsonObject:
    """Return the CronJob of a complete Backup; `server` is an image, or `postgres:16`."""
    labels = {**inherited(backup), LABEL: backup.name}
    pod = _pod(backup, drill, server, settings)
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name_of(backup), "namespace": backup.namespace, "labels": labels},
        "spec": {
            "schedule": drill.schedule,
            "timeZone": "Etc/UTC",
            "suspend": backup.spec.suspend,
            "concurrencyPolicy": "Forbid",
            "startingDeadlineSeconds": 3600,
            "successfulJobsHistoryLimit": 1,
            "failedJobsHistoryLimit": 1,
            "jobTemplate": {
                "metadata": {"labels": labels},
                "spec": {
                    "backoffLimit": 1,
                    "activeDeadlineSeconds": backup.spec.active_deadline_seconds,
                    "ttlSecondsAfterFinished": KEPT,
                    "template": {"metadata": {"labels": labels}, "spec": pod},
                },
            },
        },
    }


def _pod(
    backup: Backup, drill: BackupDrill, server: str, settings: Mapping[str, Any]
) -> JsonObject:
    if server != drill.image:
        server = image(settings, *server.split(":"))
    resources = complete_requirements(drill.resources, DRILL_RESOURCES.to_api())
    tools = {"name": TOOLS, "mountPath": DIRECTORY}
    copying = {
        "name": TOOLS,
        "image": image(settings, f"gatewright-backup-{backup.spec.source.type}", TAG),
        "command": ["cp", "--recursive", *COPIED, DIRECTORY],
        "resources": resources,
        "securityContext": restricted.container(),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [tools],
    }
    restoring = {
        "name": CONTAINER,
        "image": server,
        "command": [f"{DIRECTORY}/drill.sh"],
        "env": [*store(backup), value("DRILL_DATA", DATA), *_queries(backup, drill)],
        "resources": resources,
        "securityContext": restricted.container(),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            tools,
            {"name": "data", "mountPath": DATA},
            {"name": "scratch", "mountPath": "/tmp"},  # noqa: S108
        ],
    }
    claim: JsonObject = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": drill.storage}},
    }
    if drill.storage_class_name:
        claim["storageClassName"] = drill.storage_class_name
    return {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "serviceAccountName": backup.spec.service_account_name or "default",
        "securityContext": restricted.pod(USER),
        "initContainers": [copying],
        "containers": [restoring],
        "volumes": [
            {"name": TOOLS, "emptyDir": {"sizeLimit": "256Mi"}},
            {"name": "data", "ephemeral": {"volumeClaimTemplate": {"spec": claim}}},
            {"name": "scratch", "emptyDir": {"sizeLimit": SCRATCH}},
        ],
    }


def _queries(backup: Backup, drill: BackupDrill) -> Iterator[JsonObject]:
    """Yield the variables of the queries; Kubernetes would replace $(…) in them."""
    for at, query in enumerate(drill.queries):
        database = query.database or backup.spec.source.connection.database or ""
        yield value(f"DRILL_DATABASE_{at}", database.replace("$(", "$$("))
        yield value(f"DRILL_QUERY_{at}", query.query.replace("$(", "$$("))
