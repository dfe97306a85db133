"""The instances of a PostgreSQL: a StatefulSet and its Services."""

from config.api.postgresql import DEFAULT_RESOURCES, PostgreSQL
from controller.reconcilers import postgresql_patroni as patroni
from controller.reconcilers import postgresql_rolling as rolling
from controller.reconcilers import restricted
from controller.reconcilers.claims import origin as claim_origin
from controller.reconcilers.images import image
from controller.reconcilers.postgresql_pods import (
    PORT,
    RUN,
    SCRIPTS,
    TEMPORARY,
    VERSION,
    container,
    credentials,
    image_source,
    labels,
    metadata,
    mount,
    origin,
    pod,
    script,
    selector,
    volumes,
)
from controller.reconcilers.requirements import complete_requirements
from controller.reconcilers.resources import BUDGET, SECRET, STATEFUL_SET
from controller.runtime.plan import Observed
from kube.resource import JsonObject

DATA = "/var/lib/postgresql/data"
EXPORTER = "v0.17.1"
METRICS = 9187
# The annotation with the uid of the Secret of the passwords.
CREDENTIALS = "database.example.com/credentials"
CONTAINER = "spec.template.spec.containers[name=postgres]"
ORIGIN = {
    **origin("spec.template"),
    f"metadata.labels[{VERSION}]": "spec.version",
    "spec.replicas": "spec.replicas",
    f"{CONTAINER}.resources": "spec.resources",
    "spec.template.spec.serviceAccountName": "metadata.name",
    "spec.template.spec.containers[name=exporter]": "spec.monitoring.enabled",
    "spec.template.metadata.annotations[prometheus.io/port]": "spec.monitoring.enabled",
    "spec.template.metadata.annotations[prometheus.io/scrape]": "spec.monitoring.enabled",
    **claim_origin("spec.storage", "spec.storageClassName", at="spec.volumeClaimTemplates[0]."),
    f"spec.volumeClaimTemplates[0].metadata.labels[{VERSION}]": "spec.version",
    "spec.persistentVolumeClaimRetentionPolicy.whenDeleted": "spec.deletionPolicy",
}
SERVICE_ORIGIN = {
    **origin(),
    "spec.ports[name=metrics]": "spec.monitoring.enabled",
    "spec.selector": "spec.replicas",
}


def origin_of_instances(database: PostgreSQL) -> dict[str, str]:
    """Return the origins of the StatefulSet."""
    return ORIGIN | {
        f"{CONTAINER}.image": image_source(database),
        f"{CONTAINER}.env[name=VERSION]": "spec.version",
    }


def headless(database: PostgreSQL) -> str:
    """Return the name of the headless Service, which gives each pod a DNS name."""
    return f"{database.name}-headless"


def stateful_set(
    database: PostgreSQL, observed: Observed, version: str, replicas: int, claim: JsonObject
) -> JsonObject:
    """Return the StatefulSet; `version` and the claim template are those of its data."""
    about = metadata(database, database.name, "database")
    return {
        "apiVersion": STATEFUL_SET.api_version,
        "kind": STATEFUL_SET.kind,
        "metadata": {**about, "labels": {**about["labels"], VERSION: version}},
        "spec": {
            "serviceName": headless(database),
            "replicas": replicas,
            # Any instance may be the primary. Parallel also replaces a pod that never became ready.
            "podManagementPolicy": "Parallel",
            "updateStrategy": rolling.update_strategy(database, observed),
            "selector": {"matchLabels": selector(database, "database")},
            "persistentVolumeClaimRetentionPolicy": {
                "whenDeleted": database.spec.deletion_policy,
                "whenScaled": "Retain",
            },
            "volumeClaimTemplates": [claim],
            "template": {
                "metadata": _pod_metadata(database, observed),
                "spec": _pod(database, observed, version),
            },
        },
    }


def _pod_metadata(database: PostgreSQL, observed: Observed) -> JsonObject:
    """Return the pods' metadata; a recreated Secret restarts the pods, which sets its passwords."""
    secret = observed.child(SECRET, credentials(database))
    stored = (
        (observed.child(STATEFUL_SET, database.name) or {})
        .get("spec", {})
        .get("template", {})
        .get("metadata", {})
    )
    of = secret["metadata"]["uid"] if secret else stored.get("annotations", {}).get(CREDENTIALS)
    annotations = {CREDENTIALS: of} if of else {}
    if database.spec.monitoring.enabled:
        annotations |= {"prometheus.io/scrape": "true", "prometheus.io/port": str(METRICS)}
    return {"labels": labels(database, "database"), "annotations": annotations}


def _pod(database: PostgreSQL, observed: Observed, version: str) -> JsonObject:
    spread = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": selector(database, "database")},
    }
    preferred = [{"weight": 100, "podAffinityTerm": spread}]
    exporters = [_exporter(observed)] if database.spec.monitoring.enabled else []
    own = [
        {"name": "run", "emptyDir": {"sizeLimit": "16Mi"}},
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "128Mi"}},
        patroni.token(),
    ]
    return {
        **pod([_instance(database, observed, version), *exporters], [*volumes(database), *own]),
        "serviceAccountName": patroni.account_name(database),
        "terminationGracePeriodSeconds": 120,
        "affinity": {
            "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}
        },
    }


def _instance(database: PostgreSQL, observed: Observed, version: str) -> JsonObject:
    lives = {"httpGet": {"path": "/liveness", "port": "patroni"}, "timeoutSeconds": 5}
    values = {
        "PGDATA": f"{DATA}/pgdata",
        "PGHOST": RUN,
        "PGPORT": str(PORT),
        "PGUSER": "postgres",
        # start.sh compares it with the image, which is not of Gatewright.
        **({"VERSION": version} if database.spec.image else {}),
    }
    runs = container(database, observed, version, "postgres", script("start.sh"))
    stored = observed.child(STATEFUL_SET, database.name)
    if stored is not None and database.spec.image and version != database.spec.version:
        # The image may be of the version that an upgrade has yet to reach.
        (runs["image"],) = (
            current["image"]
            for current in stored["spec"]["template"]["spec"]["containers"]
            if current["name"] == runs["name"]
        )
    return {
        **runs,
        "env": [
            *({"name": name, "value": value} for name, value in values.items()),
            *patroni.environment(database),
        ],
        "ports": [
            {"name": "postgresql", "containerPort": PORT, "protocol": "TCP"},
            {"name": "patroni", "containerPort": patroni.REST, "protocol": "TCP"},
        ],
        # A standby of an earlier release waits for the primary before Patroni starts.
        "startupProbe": {**lives, "periodSeconds": 2, "failureThreshold": 1800},
        # A standby that does not stream is not ready.
        "readinessProbe": {
            "httpGet": {"path": "/readiness", "port": "patroni"},
            "timeoutSeconds": 5,
            "periodSeconds": 5,
        },
        "livenessProbe": {**lives, "periodSeconds": 10, "failureThreshold": 6},
        "resources": complete_requirements(database.spec.resources, DEFAULT_RESOURCES.to_api()),
        "volumeMounts": [
            mount("data", DATA),
            mount("run", RUN),
            mount("scripts", SCRIPTS),
            mount("tmp", TEMPORARY),
            mount("shm", "/dev/shm"),  # noqa: S108
            {**mount("token", patroni.ACCOUNT_DIRECTORY), "readOnly": True},
        ],
    }


def _exporter(observed: Observed) -> JsonObject:
    answers = {"httpGet": {"path": "/", "port": "metrics"}}
    return {
        "name": "exporter",
        "image": image(observed.settings, "postgres-exporter", EXPORTER),
        "env": [
            {
                "name": "DATA_SOURCE_NAME",
                "value": f"host={RUN} user=exporter dbname=postgres sslmode=disable",
            }
        ],
        "ports": [{"name": "metrics", "containerPort": METRICS, "protocol": "TCP"}],
        "securityContext": restricted.container(),
        "resources": {
            "requests": {"cpu": "10m", "memory": "32Mi"},
            "limits": {"cpu": "100m", "memory": "128Mi"},
        },
        "readinessProbe": answers,
        "livenessProbe": answers,
        "volumeMounts": [mount("run", RUN)],
    }


def budget(database: PostgreSQL) -> JsonObject:
    """Return the PodDisruptionBudget that lets a drain evict one instance at a time."""
    return {
        "apiVersion": BUDGET.api_version,
        "kind": BUDGET.kind,
        "metadata": metadata(database, database.name, "database"),
        "spec": {
            "maxUnavailable": 1,
            "selector": {"matchLabels": selector(database, "database")},
        },
    }


def services(database: PostgreSQL) -> tuple[JsonObject, ...]:
    """Return the Services: of the pods' names, of the primary, and for reads.

    The primary's has no selector: Patroni writes the address into its Endpoints. Reads go to the
    standbys, if there are any.
    """
    ports = [{"name": "postgresql", "port": PORT, "targetPort": PORT, "protocol": "TCP"}]
    metrics = [{"name": "metrics", "port": METRICS, "targetPort": METRICS, "protocol": "TCP"}]
    pods = selector(database, "database")
    standbys = {patroni.ROLE_LABEL: "replica"} if database.spec.replicas > 1 else {}
    named = {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": pods,
        "ports": [*ports, *(metrics if database.spec.monitoring.enabled else [])],
    }
    specs = {
        headless(database): named,
        database.name: {"ports": ports},
        f"{database.name}-read": {"selector": {**pods, **standbys}, "ports": ports},
    }
    return tuple(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata(database, name, "database"),
            "spec": spec,
        }
        for name, spec in specs.items()
    )
