"""NATS with JetStream as the queue: the pod of one server, with one user.

The password is read from the environment at each start, so a volume that outlived its Secret can be
used again. The monitoring port is on loopback, for the probes alone.
See: https://docs.nats.io/running-a-nats-service/configuration.
"""

from controller.reconcilers import restricted
from controller.reconcilers.servers import Server
from controller.reconcilers.software import Software
from kube.resource import JsonObject

PORT = 4222
USER = 1000  # any; the image has none
LOGIN = "app"
NATS = Software("nats", "queue", "2.14", PORT, "nats", ("password",), image_suffix="-alpine")
# The variable of the password has quotes: without them, one of digits would be read as a number.
START = """\
set -eu
cat >/tmp/nats.conf <<END
listen: 0.0.0.0:4222
http: 127.0.0.1:8222
jetstream {store_dir: /data, sync_interval: always}
authorization {user: $QUEUE_USER, password: \\$QUOTED_PASSWORD}
END
exec nats-server --config /tmp/nats.conf
"""


def pod(server: Server) -> JsonObject:
    """Return the spec of a server's pod."""
    container = {
        "name": NATS.name,
        "image": server.image,
        "command": ["sh", "-c", START],
        "env": [
            {"name": "QUEUE_USER", "value": LOGIN},
            {"name": "QUEUE_PASSWORD", "valueFrom": server.password("password")},
            {"name": "QUOTED_PASSWORD", "value": '"$(QUEUE_PASSWORD)"'},
        ],
        "ports": [{"name": "nats", "containerPort": PORT, "protocol": "TCP"}],
        "resources": server.resources,
        "startupProbe": {**_healthy(""), "periodSeconds": 5, "failureThreshold": 120},
        "readinessProbe": {**_healthy("?js-server-only=true"), "periodSeconds": 5},
        "livenessProbe": {
            **_healthy("?js-enabled-only=true"),
            "periodSeconds": 10,
            "failureThreshold": 6,
        },
        "securityContext": restricted.container(),
        "volumeMounts": [
            {"name": NATS.name, "mountPath": "/data", "subPath": NATS.name},
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108
        ],
    }
    return {
        "automountServiceAccountToken": False,
        "securityContext": restricted.pod(USER),
        "terminationGracePeriodSeconds": 60,
        "containers": [container],
        "volumes": [{"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}}],
    }


def _healthy(query: str) -> JsonObject:
    """Return the probe of the health page, with the questions of NATS' own chart."""
    command = ["wget", "-q", "-O", "/dev/null", f"http://127.0.0.1:8222/healthz{query}"]
    return {"exec": {"command": command}, "timeoutSeconds": 5}
