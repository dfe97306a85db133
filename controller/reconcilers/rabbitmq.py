"""RabbitMQ as the queue: the pod of one server, whose only user has the password of the Secret.

Definitions are imported at each start, so a volume that outlived its Secret can be used again. The
node is named rabbit@localhost and Erlang's own ports listen on loopback: the data does not depend
on the pod's name, and only AMQP is reachable. The Erlang cookie is a new one at each start.
See: https://www.rabbitmq.com/docs/definitions.
"""

from config.quantities import MILLI, parse_quantity
from controller.reconcilers import restricted
from controller.reconcilers.servers import Server
from controller.reconcilers.software import Software
from kube.resource import JsonObject

PORT = 5672
USER = 999  # the image's user
LOGIN = "app"
RABBITMQ = Software("rabbitmq", "queue", "4.2", PORT, "amqp", ("password",))
START = """\
set -eu
umask 077
cat >/tmp/definitions.json <<END
{"vhosts": [{"name": "/"}],
 "users": [{"name": "$QUEUE_USER", "password": "$QUEUE_PASSWORD", "tags": "administrator"}],
 "permissions": [{"user": "$QUEUE_USER", "vhost": "/", "configure": ".*", "write": ".*",
                  "read": ".*"}]}
END
cat >/tmp/rabbitmq.conf <<END
load_definitions = /tmp/definitions.json
$SETTINGS
END
exec rabbitmq-server
"""
LOOPBACK = "-kernel inet_dist_use_interface {127,0,0,1}"
ENVIRONMENT = {
    "QUEUE_USER": LOGIN,
    "HOME": "/tmp",  # noqa: S108
    "RABBITMQ_NODENAME": "rabbit@localhost",
    "RABBITMQ_NODE_PORT": str(PORT),
    "RABBITMQ_CONFIG_FILE": "/tmp/rabbitmq.conf",  # noqa: S108
    "RABBITMQ_MNESIA_BASE": "/var/lib/rabbitmq/mnesia",
    "RABBITMQ_GENERATED_CONFIG_DIR": "/tmp/config",  # noqa: S108
    "RABBITMQ_LOGS": "-",
    "RABBITMQ_LOG_BASE": "/tmp/log",  # noqa: S108
    "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": LOOPBACK,
    "ERL_EPMD_ADDRESS": "127.0.0.1",
}


def pod(server: Server) -> JsonObject:
    """Return the spec of a server's pod."""
    listens = {"tcpSocket": {"port": "amqp"}}
    container = {
        "name": RABBITMQ.name,
        "image": server.image,
        "command": ["sh", "-c", START],
        "env": [
            *({"name": name, "value": value} for name, value in ENVIRONMENT.items()),
            {"name": "QUEUE_PASSWORD", "valueFrom": server.password("password")},
            {"name": "SETTINGS", "value": _settings(server.resources)},
        ],
        "ports": [{"name": "amqp", "containerPort": PORT, "protocol": "TCP"}],
        "resources": server.resources,
        "startupProbe": {**listens, "periodSeconds": 5, "failureThreshold": 120},
        "readinessProbe": {**listens, "periodSeconds": 5},
        "livenessProbe": {**listens, "periodSeconds": 10, "failureThreshold": 6},
        "securityContext": restricted.container(),
        "volumeMounts": [
            {"name": RABBITMQ.name, "mountPath": "/var/lib/rabbitmq", "subPath": RABBITMQ.name},
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108
        ],
    }
    return {
        "automountServiceAccountToken": False,
        "securityContext": restricted.pod(USER),
        "terminationGracePeriodSeconds": 120,
        "containers": [container],
        "volumes": [{"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}}],
    }


def _settings(resources: JsonObject) -> str:
    """Return the setting of the available memory: the server may measure the machine's."""
    limit = (resources.get("limits") or {}).get("memory")
    if limit is None:
        return ""
    available = parse_quantity(str(limit)).millis // MILLI
    return f"total_memory_available_override_value = {available}"
