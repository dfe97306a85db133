"""MySQL as a component: a StatefulSet of one server by the official image's conventions, its Secret and Services.

Whatever volume the server finds, its passwords are those of the Secret: where there is a database already, they are set
as it starts. So a volume that outlived its Secret serves again.
"""

from collections.abc import Mapping

from controller.reconcilers import restricted
from controller.reconcilers.images import image
from controller.runtime.plan import Apply, Object, Once, Random, Write
from kube.resource import Resource

SECRET = Resource("", "v1", "secrets", "Secret")
STATEFUL_SET = Resource("apps", "v1", "statefulsets", "StatefulSet")

DEFAULT_VERSION = "8.4"
PORT = 3306
USER = 999  # whom the image runs as by itself
DATABASE = LOGIN = "app"
START = """\
if [ -d /var/lib/mysql/mysql ]; then
  umask 077
  printf "ALTER USER IF EXISTS 'root'@'localhost' IDENTIFIED BY '%s', 'root'@'%%' IDENTIFIED BY '%s';\\n" \\
    "$MYSQL_ROOT_PASSWORD" "$MYSQL_ROOT_PASSWORD" >/tmp/passwords.sql
  printf "ALTER USER IF EXISTS '%s'@'%%' IDENTIFIED BY '%s';\\n" "$MYSQL_USER" "$MYSQL_PASSWORD" >>/tmp/passwords.sql
  set -- --init-file=/tmp/passwords.sql
fi
exec docker-entrypoint.sh mysqld "$@"
"""
ORIGIN = {
    "metadata.name": "metadata.name",
    "spec.template.spec.containers[name=mysql].image": "spec.database.version",
    "spec.template.spec.containers[name=mysql].resources": "spec.database.resources",
    "spec.volumeClaimTemplates": "spec.database.storage",
}


def mysql(
    name: str,
    namespace: str,
    labels: Mapping[str, str],
    *,
    version: str,
    storage: str,
    resources: Object,
    settings: Mapping[str, str],
) -> list[Write]:
    """Return all that is made for a server of this name; `labels` are those beside the one that selectors go by."""
    selector = {"app": name}
    metadata: Object = {"name": name, "namespace": namespace, "labels": {**selector, **labels}}
    credentials = {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": named(metadata, "credentials")}
    passwords = {f"data.{key}": Random(32) for key in ("root-password", "password")}
    server = image(settings, "mysql", version)
    return [
        Once(credentials, passwords),
        Apply(_stateful_set(metadata, selector, server, storage, resources), ORIGIN),
        Apply(_service(named(metadata, "headless"), selector, {"clusterIP": "None", "publishNotReadyAddresses": True})),
        Apply(_service(metadata, selector, {})),
    ]


def named(metadata: Object, suffix: str) -> Object:
    """Return the metadata of what belongs to a server."""
    return {**metadata, "name": f"{metadata['name']}-{suffix}"}


def password(name: str, key: str) -> Object:
    """Return where a password of the server of this name comes from."""
    return {"secretKeyRef": {"name": f"{name}-credentials", "key": key}}


def _service(metadata: Object, selector: Mapping[str, str], more: Object) -> Object:
    port = {"name": "mysql", "port": PORT, "targetPort": "mysql", "protocol": "TCP"}
    spec = {**more, "selector": dict(selector), "ports": [port]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def _stateful_set(metadata: Object, selector: Mapping[str, str], image: str, storage: str, resources: Object) -> Object:
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "labels": metadata["labels"]},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": metadata,
        "spec": {
            "replicas": 1,
            "serviceName": f"{metadata['name']}-headless",
            "selector": {"matchLabels": dict(selector)},
            "template": {"metadata": {"labels": metadata["labels"]}, "spec": _pod(metadata["name"], image, resources)},
            "volumeClaimTemplates": [claim],
        },
    }


def _pod(name: str, image: str, resources: Object) -> Object:
    scratch = {"run": "/var/run/mysqld", "tmp": "/tmp"}  # noqa: S108  (a volume of the pod's own)
    answers = {"exec": {"command": ["mysqladmin", "ping", "--host=127.0.0.1", "--connect-timeout=3"]}}
    container = {
        "name": "mysql",
        "image": image,
        "command": ["sh", "-c", START],
        "env": [
            {"name": "MYSQL_DATABASE", "value": DATABASE},
            {"name": "MYSQL_USER", "value": LOGIN},
            {"name": "MYSQL_PASSWORD", "valueFrom": password(name, "password")},
            {"name": "MYSQL_ROOT_PASSWORD", "valueFrom": password(name, "root-password")},
        ],
        "ports": [{"name": "mysql", "containerPort": PORT, "protocol": "TCP"}],
        "resources": resources,
        "startupProbe": {**answers, "periodSeconds": 5, "timeoutSeconds": 5, "failureThreshold": 120},
        "readinessProbe": {**answers, "periodSeconds": 5, "timeoutSeconds": 5},
        "livenessProbe": {**answers, "periodSeconds": 10, "timeoutSeconds": 5, "failureThreshold": 6},
        "securityContext": restricted.container(),
        "volumeMounts": [
            {"name": "data", "mountPath": "/var/lib/mysql", "subPath": "mysql"},
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
