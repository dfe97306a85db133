"""The two Jobs of an upgrade of a PostgreSQL: one tries it, the other makes the later data."""

from collections.abc import Sequence

from config.api.postgresql import DEFAULT_RESOURCES, PostgreSQL
from controller.reconcilers.backup_runs import Run, run
from controller.reconcilers.postgresql_pods import (
    COMPONENT,
    client,
    image_source,
    metadata,
    mount,
    origin,
    pod,
    volumes,
)
from controller.reconcilers.requirements import complete_requirements
from controller.reconcilers.resources import JOB, POD
from controller.runtime.plan import Delete, Observed, Reference, Write
from kube.resource import JsonObject

DATA = "/var/lib/postgresql/data"
CONTAINER = "spec.template.spec.containers[name=upgrade]"
ORIGIN = {
    **origin("spec.template"),
    "metadata.name": "spec.version",
    f"{CONTAINER}.resources": "spec.resources",
}
# The script exits with 1 for what another attempt would find, too.
GIVES_UP = {
    "rules": [
        {
            "action": "FailJob",
            "onExitCodes": {"containerName": "upgrade", "operator": "In", "values": [1]},
        }
    ]
}
NODE = "kubernetes.io/hostname"
POD_NAME = "statefulset.kubernetes.io/pod-name"


def job(database: PostgreSQL, observed: Observed, data: str, action: str) -> JsonObject:
    """Return the Job that tries the upgrade (`check`) or does it (`upgrade`)."""
    version, first = database.spec.version, f"{database.name}-0"
    about = metadata(database, f"{database.name}-{action}-{version}", "upgrade")
    runs = client(database, observed, version, "upgrade")
    values = {"FROM": data, "TO": version, "PGDATA": f"{DATA}/pgdata"}
    container = {
        **runs,
        "command": [*runs["command"], action],
        "env": [*runs["env"], *({"name": name, "value": values[name]} for name in values)],
        "resources": complete_requirements(database.spec.resources, DEFAULT_RESOURCES.to_api()),
        "volumeMounts": [*runs["volumeMounts"], mount("data", DATA), mount("work", "/work")],
    }
    own = [
        {"name": "data", "persistentVolumeClaim": {"claimName": f"data-{first}"}},
        {"name": "work", "emptyDir": {"sizeLimit": "1Gi"}},
    ]
    beside = {"topologyKey": NODE, "labelSelector": {"matchLabels": {POD_NAME: first}}}
    # A volume that is in use can only be mounted on the same node.
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [beside]}}
    spec: JsonObject = {
        **pod([container], [*volumes(database), *own]),
        "restartPolicy": "Never",
        **({"affinity": affinity} if action == "check" else {}),
    }
    template = {"metadata": {"labels": about["labels"]}, "spec": spec}
    return {
        "apiVersion": JOB.api_version,
        "kind": JOB.kind,
        "metadata": about,
        "spec": {"backoffLimit": 2, "podFailurePolicy": GIVES_UP, "template": template},
    }


def origin_of(database: PostgreSQL) -> dict[str, str]:
    """Return which field of the spec each field of the Jobs comes from."""
    return ORIGIN | dict.fromkeys(
        (f"{CONTAINER}.image", f"{CONTAINER}.env"), image_source(database)
    )


def result_of(database: PostgreSQL, observed: Observed, job: JsonObject) -> Run | None:
    """Return how a Job ended; None if there is none yet."""
    name = job["metadata"]["name"]
    stored = observed.child(JOB, name)
    if stored is None:
        return None
    pods = observed.find(POD, "instance", database.name)
    own = [each for each in pods if each["metadata"].get("labels", {}).get("job-name") == name]
    obstacle = observed.obstacles.get(stored["metadata"]["uid"])
    return run(stored, own, obstacle, lambda _: None)


def delete_stale(
    database: PostgreSQL, observed: Observed, wanted: Sequence[JsonObject]
) -> list[Write]:
    """Return the deletions of Jobs of other upgrades."""
    names = {job["metadata"]["name"] for job in wanted}
    return [
        Delete(Reference(JOB, about["name"], about["uid"], database.namespace))
        for about in (job["metadata"] for job in observed.find(JOB, "instance", database.name))
        if about["labels"][COMPONENT] == "upgrade" and about["name"] not in names
    ]
