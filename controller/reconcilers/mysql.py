"""MySQL as a component: a StatefulSet of one server, its Secret and its Services.

The server's passwords are always those of the Secret: on existing data, they are set at each start.
So a volume that outlived its Secret can be used again.

The Secret and the claims outlive the server, and have `mysql` in their names. A PostgreSQL that
replaces it uses other names, so after a change of the type and back, each finds its own volumes and
Secret again.
"""

from collections.abc import Mapping
from typing import NamedTuple

from controller.reconcilers import mysql_versions, restricted
from controller.reconcilers.claims import Requested, new_template, origin
from controller.reconcilers.labels import metadata_origin
from controller.runtime.plan import Apply, CreateOnly, Random, Write
from kube.resource import JsonObject

MYSQL_LABELS = {"app.kubernetes.io/name": "mysql", "app.kubernetes.io/managed-by": "gatewright"}
PORT = 3306
USER = 999  # the image's user
DATABASE = LOGIN = "app"
VOLUME = "mysql"
START = """\
if [ -d /var/lib/mysql/mysql ]; then
  umask 077
  printf "ALTER USER IF EXISTS 'root'@'localhost' IDENTIFIED BY '%s', \
'root'@'%%' IDENTIFIED BY '%s';\\n" \\
    "$MYSQL_ROOT_PASSWORD" "$MYSQL_ROOT_PASSWORD" >/tmp/passwords.sql
  printf "ALTER USER IF EXISTS '%s'@'%%' IDENTIFIED BY '%s';\\n" "$MYSQL_USER" \
"$MYSQL_PASSWORD" >>/tmp/passwords.sql
  set -- --init-file=/tmp/passwords.sql
fi
exec docker-entrypoint.sh mysqld "$@"
"""
METADATA = metadata_origin(own=MYSQL_LABELS)
ORIGIN = {
    **metadata_origin("spec.template", own=MYSQL_LABELS),
    f"metadata.labels[{mysql_versions.LABEL}]": "spec.database.version",
    "spec.template.spec.containers[name=mysql].image": "spec.database.version",
    "spec.template.spec.containers[name=mysql].resources": "spec.database.resources",
    **origin(
        "spec.database.storage",
        "spec.database.storageClassName",
        at="spec.volumeClaimTemplates[0].",
    ),
    "spec.persistentVolumeClaimRetentionPolicy.whenDeleted": "spec.database.deletionPolicy",
}


class Server(NamedTuple):
    """One server and its settings."""

    name: str
    namespace: str
    labels: Mapping[str, str]  # in addition to its own
    version: str
    image: str
    volume: Requested
    resources: JsonObject
    deletion_policy: str = "Retain"

    @property
    def selector(self) -> dict[str, str]:
        """The labels by which the StatefulSet and the Services select the pod."""
        return {"app": self.name}

    def metadata(self, suffix: str = "", **labels: str) -> JsonObject:
        """Return the metadata of a child; `suffix` is added to the server's name."""
        name = f"{self.name}-{suffix}" if suffix else self.name
        return {
            "name": name,
            "namespace": self.namespace,
            "labels": {**self.labels, **MYSQL_LABELS, **self.selector, **labels},
        }

    def password(self, key: str) -> JsonObject:
        """Return the reference to `root-password`, or to `password` of the application."""
        return password(self.name, key)


def password(server: str, key: str) -> JsonObject:
    """Return the reference to a password of the server with this name."""
    return {"secretKeyRef": {"name": f"{server}-mysql-credentials", "key": key}}


def writes(server: Server, template: JsonObject, stored: JsonObject | None) -> list[Write]:
    """Return the writes for a server.

    `template` is its claim template, and `stored` its existing StatefulSet.
    """
    metadata = server.metadata("mysql-credentials")
    credentials = {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata}
    headless = {"clusterIP": "None", "publishNotReadyAddresses": True}
    return [
        CreateOnly(
            credentials,
            {f"data.{key}": Random(32) for key in ("root-password", "password")},
            origin=METADATA,
        ),
        Apply(_stateful_set(server, template, stored), ORIGIN),
        Apply(_service(server, server.metadata("headless"), headless), METADATA),
        Apply(_service(server, server.metadata(), {}), METADATA),
    ]


def _service(server: Server, metadata: JsonObject, more: JsonObject) -> JsonObject:
    port = {"name": "mysql", "port": PORT, "targetPort": "mysql", "protocol": "TCP"}
    spec = {**more, "selector": server.selector, "ports": [port]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def claim_template(server: Server) -> JsonObject:
    """Return the claim template of a new server."""
    return new_template(VOLUME, server.volume, server.metadata()["labels"])


def _stateful_set(server: Server, template: JsonObject, stored: JsonObject | None) -> JsonObject:
    metadata = server.metadata()
    # Parallel also replaces a pod that never became ready. The field is immutable.
    policy = "Parallel" if stored is None else stored["spec"].get("podManagementPolicy")
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {
            **metadata,
            "labels": {**metadata["labels"], mysql_versions.LABEL: server.version},
        },
        "spec": {
            "replicas": 1,
            "serviceName": f"{server.name}-headless",
            **({"podManagementPolicy": policy} if policy else {}),
            "selector": {"matchLabels": server.selector},
            "template": {"metadata": {"labels": metadata["labels"]}, "spec": _pod(server)},
            "volumeClaimTemplates": [template],
            "persistentVolumeClaimRetentionPolicy": {
                "whenDeleted": server.deletion_policy,
                "whenScaled": "Retain",
            },
        },
    }


def _pod(server: Server) -> JsonObject:
    scratch = {"run": "/var/run/mysqld", "tmp": "/tmp"}  # noqa: S108
    answers = {
        "exec": {"command": ["mysqladmin", "ping", "--host=127.0.0.1", "--connect-timeout=3"]}
    }
    container = {
        "name": "mysql",
        "image": server.image,
        "command": ["sh", "-c", START],
        "env": [
            {"name": "MYSQL_DATABASE", "value": DATABASE},
            {"name": "MYSQL_USER", "value": LOGIN},
            {"name": "MYSQL_PASSWORD", "valueFrom": server.password("password")},
            {"name": "MYSQL_ROOT_PASSWORD", "valueFrom": server.password("root-password")},
        ],
        "ports": [{"name": "mysql", "containerPort": PORT, "protocol": "TCP"}],
        "resources": server.resources,
        "startupProbe": {
            **answers,
            "periodSeconds": 5,
            "timeoutSeconds": 5,
            "failureThreshold": 120,
        },
        "readinessProbe": {**answers, "periodSeconds": 5, "timeoutSeconds": 5},
        "livenessProbe": {
            **answers,
            "periodSeconds": 10,
            "timeoutSeconds": 5,
            "failureThreshold": 6,
        },
        "securityContext": restricted.container(),
        "volumeMounts": [
            {"name": VOLUME, "mountPath": "/var/lib/mysql", "subPath": "mysql"},
            *({"name": volume, "mountPath": path} for volume, path in scratch.items()),
        ],
    }
    return {
        "automountServiceAccountToken": False,
        "securityContext": restricted.pod(USER),
        "terminationGracePeriodSeconds": 120,
        "containers": [container],
        "volumes": [{"name": volume, "emptyDir": {}} for volume in scratch],
    }
