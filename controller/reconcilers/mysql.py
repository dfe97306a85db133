"""MySQL as a component: a StatefulSet of one server, its Secret and its Services.

The server's passwords are always those of the Secret: on existing data, they are set at each start.
So a volume that outlived its Secret can be used again.
"""

from controller.reconcilers import restricted
from controller.reconcilers.servers import Server
from controller.reconcilers.software import Software
from kube.resource import JsonObject

PORT = 3306
USER = 999  # the image's user
DATABASE = LOGIN = "app"
MYSQL = Software("mysql", "database", "8.4", PORT, "mysql", ("root-password", "password"))
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


def pod(server: Server) -> JsonObject:
    """Return the spec of a server's pod."""
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
            {"name": MYSQL.name, "mountPath": "/var/lib/mysql", "subPath": "mysql"},
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
