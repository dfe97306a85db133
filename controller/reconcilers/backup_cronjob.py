"""The CronJob that makes backups with the images of images/backup.

It needs no rights in the cluster.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from config.api.backup import DEFAULT_RESOURCES, Backup
from config.api.meta import CustomResource
from controller.reconcilers import restricted
from controller.reconcilers.backup_env import CONNECTION_ORIGIN, STORE_ORIGIN, environment
from controller.reconcilers.images import image
from controller.reconcilers.labels import inherited, metadata_origin
from controller.reconcilers.requirements import complete_requirements
from kube.resource import JsonObject

LABEL = "gatewright.io/backup"  # on Jobs and pods: the name of their Backup
CONTAINER = "backup"
COMMAND = ["/backup.sh"]
TAG = "1.1.0"  # of images/backup: changes with its scripts
USER = 1000  # the image's user
SCRATCH = "64Mi"  # dumps are streamed: only lists, checksums and messages are stored here

POD = "spec.jobTemplate.spec.template.spec"
ORIGIN = {
    **metadata_origin("spec.jobTemplate", "spec.jobTemplate.spec.template"),
    "spec.schedule": "spec.schedule",
    "spec.suspend": "spec.suspend",
    "spec.jobTemplate.spec.activeDeadlineSeconds": "spec.activeDeadlineSeconds",
    f"{POD}.serviceAccountName": "spec.serviceAccountName",
    f"{POD}.containers[name={CONTAINER}].image": "spec.source.type",
    f"{POD}.containers[name={CONTAINER}].resources": "spec.resources",
    **{
        f"{POD}.containers[name={CONTAINER}].env[name={name}]": field
        for name, field in (CONNECTION_ORIGIN | STORE_ORIGIN).items()
    },
}


def name_of(backup: CustomResource) -> str:
    """Return the CronJob's name."""
    return f"{backup.name}-cronjob"


def plan_cronjob(backup: Backup, settings: Mapping[str, Any]) -> JsonObject:
    """Return the CronJob of a complete Backup (`missing` yields nothing)."""
    labels = {**inherited(backup), LABEL: backup.name}
    pod: JsonObject = pod_spec(
        image(settings, f"gatewright-backup-{backup.spec.source.type}", TAG),
        environment(backup),
        complete_requirements(backup.spec.resources, DEFAULT_RESOURCES.to_api()),
    )
    # Always a value: without one, the earlier value would come back from its deprecated mirror,
    # serviceAccount.
    pod["serviceAccountName"] = backup.spec.service_account_name or "default"
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name_of(backup), "namespace": backup.namespace, "labels": labels},
        "spec": {
            "schedule": backup.spec.schedule,
            "timeZone": "Etc/UTC",
            "suspend": backup.spec.suspend,
            "concurrencyPolicy": "Forbid",
            "startingDeadlineSeconds": 3600,
            "successfulJobsHistoryLimit": 3,
            "failedJobsHistoryLimit": 3,
            "jobTemplate": {
                "metadata": {"labels": labels},
                "spec": {
                    "backoffLimit": 2,
                    "activeDeadlineSeconds": backup.spec.active_deadline_seconds,
                    "template": {"metadata": {"labels": labels}, "spec": pod},
                },
            },
        },
    }


def pod_spec(image: str, environment: Sequence[JsonObject], resources: JsonObject) -> JsonObject:
    """Return the pod spec of one backup run."""
    container = {
        "name": CONTAINER,
        "image": image,
        "command": COMMAND,
        "env": list(environment),
        "resources": resources,
        "securityContext": restricted.container(),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [{"name": "scratch", "mountPath": "/tmp"}],  # noqa: S108
    }
    return {
        "restartPolicy": "OnFailure",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": restricted.pod(USER),
        "containers": [container],
        "volumes": [{"name": "scratch", "emptyDir": {"sizeLimit": SCRATCH}}],
    }
