"""The instances of a PostgreSQL: a StatefulSet, its Services; the first pod is the primary."""

from config.api.postgresql import DEFAULT_RESOURCES, PostgreSQL
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
    labels,
    metadata,
    mount,
    origin,
    pod,
    script,
    secret_value,
    selector,
    volumes,
)
from controller.reconcilers.requirements import completed
from controller.reconcilers.resources import BUDGET, SECRET, STATEFUL_SET
from controller.runtime.plan import Observed
from kube.resource import JsonObject

DATA = "/var/lib/postgresql/data"
MAX_INSTANCES = 5  # instances that the schema allows
EXPORTER = "v0.17.1"
METRICS = 9187
# The annotation with the uid of the Secret of the passwords.
CREDENTIALS = "database.example.com/credentials"
CONTAINER = "spec.template.spec.containers[name=postgres]"
ORIGIN = {
    **origin("spec.template"),
    f"metadata.labels[{VERSION}]": "spec.version",
    "spec.replicas": "spec.replicas",
    f"{CONTAINER}.image": "spec.version",
    f"{CONTAINER}.resources": "spec.resources",
    "spec.template.spec.initContainers[name=prepare].image": "spec.version",
    "spec.template.spec.initContainers[name=prepare].resources": "spec.resources",
    "spec.template.spec.containers[name=exporter]": "spec.monitoring.enabled",
    "spec.template.metadata.annotations[prometheus.io/port]": "spec.monitoring.enabled",
    "spec.template.metadata.annotations[prometheus.io/scrape]": "spec.monitoring.enabled",
    **claim_origin("spec.storage", "spec.storageClassName", at="spec.volumeClaimTemplates[0]."),
    f"spec.volumeClaimTemplates[0].metadata.labels[{VERSION}]": "spec.version",
    "spec.persistentVolumeClaimRetentionPolicy.whenDeleted": "spec.deletionPolicy",
}
SERVICE_ORIGIN = {**origin(), "spec.ports[name=metrics]": "spec.monitoring.enabled"}


def primary(database: PostgreSQL) -> str:
    """Return the name of the primary's pod."""
    return f"{database.name}-0"


def headless(database: PostgreSQL) -> str:
    """Return the name of the headless Service, which gives each pod a DNS name."""
    return f"{database.name}-headless"


def stateful_set(
    database: PostgreSQL, observed: Observed, version: str, claim: JsonObject
) -> JsonObject:
    """Return the StatefulSet; `version` and the claim template are those of its data."""
    about = metadata(database, database.name, "database")
    return {
        "apiVersion": STATEFUL_SET.api_version,
        "kind": STATEFUL_SET.kind,
        "metadata": {**about, "labels": {**about["labels"], VERSION: version}},
        "spec": {
            "serviceName": headless(database),
            "replicas": database.spec.replicas,
            # A standby waits for the primary itself, so it must not delay the primary's start.
            # Parallel also replaces a pod that never became ready.
            "podManagementPolicy": "Parallel",
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
    answers = {"exec": {"command": ["pg_isready", "--quiet"]}, "timeoutSeconds": 5}
    serving = {
        **_instance(
            database,
            observed,
            version,
            "postgres",
            ["postgres", "-c", f"config_file={RUN}/postgresql.conf"],
        ),
        "ports": [{"name": "postgresql", "containerPort": PORT, "protocol": "TCP"}],
        # Replaying the WAL after a crash may take an hour.
        "startupProbe": {**answers, "periodSeconds": 2, "failureThreshold": 1800},
        "readinessProbe": {
            "exec": {"command": script("ready.sh")},
            "timeoutSeconds": 5,
            "periodSeconds": 5,
        },
        "livenessProbe": {**answers, "periodSeconds": 10, "failureThreshold": 6},
    }
    exporters = [_exporter(observed)] if database.spec.monitoring.enabled else []
    own = [
        {"name": "run", "emptyDir": {"sizeLimit": "16Mi"}},
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "128Mi"}},
    ]
    return {
        **pod([serving, *exporters], [*volumes(database), *own]),
        "initContainers": [_instance(database, observed, version, "prepare", script("prepare.sh"))],
        "terminationGracePeriodSeconds": 120,
        "affinity": {
            "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}
        },
    }


def _instance(
    database: PostgreSQL, observed: Observed, version: str, name: str, command: list[str]
) -> JsonObject:
    standbys = (
        f"{database.name}-{ordinal}.{headless(database)}" for ordinal in range(1, MAX_INSTANCES)
    )
    secret = credentials(database)
    return {
        **container(observed, version, name, command),
        "env": [
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "PGDATA", "value": f"{DATA}/pgdata"},
            {"name": "PGHOST", "value": RUN},
            {"name": "PGPORT", "value": str(PORT)},
            {"name": "PGUSER", "value": "postgres"},
            {"name": "PRIMARY_HOST", "value": f"{primary(database)}.{headless(database)}"},
            {"name": "STANDBY_HOSTS", "value": " ".join(standbys)},
            secret_value("POSTGRES_PASSWORD", secret, "password"),
            secret_value("REPLICATION_PASSWORD", secret, "replication-password"),
        ],
        "resources": completed(database.spec.resources, DEFAULT_RESOURCES.to_api()),
        "volumeMounts": [
            mount("data", DATA),
            mount("run", RUN),
            mount("scripts", SCRIPTS),
            mount("tmp", TEMPORARY),
            mount("shm", "/dev/shm"),  # noqa: S108
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


def services(database: PostgreSQL) -> tuple[JsonObject, JsonObject]:
    """Return the headless Service of the pods and the Service of the primary."""
    ports = [{"name": "postgresql", "port": PORT, "targetPort": PORT, "protocol": "TCP"}]
    metrics = [{"name": "metrics", "port": METRICS, "targetPort": METRICS, "protocol": "TCP"}]
    of_all, of_primary = (
        {"apiVersion": "v1", "kind": "Service", "metadata": metadata(database, name, "database")}
        for name in (headless(database), database.name)
    )
    pods = selector(database, "database")
    return (
        {
            **of_all,
            "spec": {
                "clusterIP": "None",
                # standbys must resolve the primary even while it is not ready
                "publishNotReadyAddresses": True,
                "selector": pods,
                "ports": [*ports, *(metrics if database.spec.monitoring.enabled else [])],
            },
        },
        {
            **of_primary,
            "spec": {
                "selector": {**pods, "statefulset.kubernetes.io/pod-name": primary(database)},
                "ports": ports,
            },
        },
    )
