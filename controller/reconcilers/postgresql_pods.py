"""Parts that all pods of a PostgreSQL share: labels, scripts, and connection settings."""

from functools import cache
from importlib import resources

from config.api.postgresql import PostgreSQL
from controller.reconcilers import restricted
from controller.reconcilers.images import image
from controller.reconcilers.labels import inherited, metadata_origin
from controller.runtime.plan import Observed
from kube.resource import JsonObject

COMPONENT = "app.kubernetes.io/component"
INSTANCE = "app.kubernetes.io/instance"
VERSION = "app.kubernetes.io/version"
POSTGRESQL_LABELS = {
    "app.kubernetes.io/name": "postgresql",
    "app.kubernetes.io/managed-by": "gatewright",
}
PORT = 5432
CONNECT_TIMEOUT = 10  # seconds; without a limit, a connection waits for more than two minutes
USER = 999  # the official image's user
SCRIPTS = "/etc/gatewright"
RUN = "/var/run/postgresql"
TEMPORARY = "/tmp"  # noqa: S108


def metadata(database: PostgreSQL, name: str, component: str) -> JsonObject:
    """Return the metadata of a database's child."""
    return {"name": name, "namespace": database.namespace, "labels": labels(database, component)}


def origin(*templates: str) -> dict[str, str]:
    """Return the origins of the name and the labels of a database's child and of its pods."""
    return metadata_origin(*templates, own=POSTGRESQL_LABELS)


def labels(database: PostgreSQL, component: str) -> dict[str, str]:
    """Return the labels of a database's children, pods included."""
    return {**inherited(database), **POSTGRESQL_LABELS, **selector(database, component)}


def selector(database: PostgreSQL, component: str) -> dict[str, str]:
    """Return the labels that select the pods; they never change."""
    return {"app.kubernetes.io/name": "postgresql", INSTANCE: database.name, COMPONENT: component}


def credentials(database: PostgreSQL) -> str:
    """Return the name of the Secret with the passwords of the superuser and of the standbys."""
    return f"{database.name}-credentials"


def scripts(database: PostgreSQL) -> JsonObject:
    """Return the ConfigMap with the scripts; a new release changes it without a restart."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(database, scripts_name(database), "database"),
        "data": dict(_scripts()),
    }


def scripts_name(database: PostgreSQL) -> str:
    """Return the name of the ConfigMap with the scripts."""
    return f"{database.name}-scripts"


@cache
def _scripts() -> dict[str, str]:
    directory = resources.files("controller.reconcilers") / "postgresql_scripts"
    return {
        file.name: file.read_text()
        for file in sorted(directory.iterdir(), key=lambda each: each.name)
    }


def container(
    database: PostgreSQL, observed: Observed, version: str, name: str, command: list[str]
) -> JsonObject:
    """Return a container with the database's image."""
    return {
        "name": name,
        "image": database.spec.image or image(observed.settings, "gatewright-postgresql", version),
        "command": command,
        "securityContext": restricted.container(),
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }


def image_source(database: PostgreSQL) -> str:
    """Return the field that names the image."""
    return "spec.image" if database.spec.image else "spec.version"


def script(name: str) -> list[str]:
    """Return the command that runs one of the scripts."""
    return ["bash", f"{SCRIPTS}/{name}"]


def client(database: PostgreSQL, observed: Observed, version: str, name: str) -> JsonObject:
    """Return a container that runs a script as superuser on the primary."""
    return {
        **container(database, observed, version, name, script(f"{name}.sh")),
        "env": [
            {"name": "PGHOST", "value": database.name},
            {"name": "PGPORT", "value": str(PORT)},
            {"name": "PGUSER", "value": "postgres"},
            # The address may be that of a primary that is gone: nothing answers there.
            {"name": "PGCONNECT_TIMEOUT", "value": str(CONNECT_TIMEOUT)},
            secret_value("PGPASSWORD", credentials(database), "password"),
        ],
        "resources": {
            "requests": {"cpu": "50m", "memory": "128Mi"},
            "limits": {"cpu": "1", "memory": "512Mi"},
        },
        "volumeMounts": [mount("scripts", SCRIPTS), mount("tmp", TEMPORARY)],
    }


def pod(containers: list[JsonObject], volumes: list[JsonObject]) -> JsonObject:
    """Return a pod spec at Pod Security Standard "restricted", without an account token."""
    return {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": restricted.pod(USER),
        "containers": containers,
        "volumes": volumes,
    }


def secret_value(name: str, secret: str, key: str) -> JsonObject:
    """Return an environment variable whose value is in a Secret."""
    return {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}


def mount(volume: str, path: str) -> JsonObject:
    """Return the mount of a volume."""
    return {"name": volume, "mountPath": path}


def volumes(database: PostgreSQL) -> list[JsonObject]:
    """Return the volumes that every pod has."""
    return [
        {"name": "scripts", "configMap": {"name": scripts_name(database), "defaultMode": 0o444}},
        {"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}},
    ]
