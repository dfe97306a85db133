"""Mutating policies: for each kind an object, and its mutations."""

from collections.abc import Iterator
from pathlib import Path

from kube.resource import JsonObject

CONTAINER: JsonObject = {
    "name": "app",
    "image": "registry.company.com/app:1",
    "args": ["-v"],
    "env": [{"name": "P", "value": "/a"}, {"name": "Q", "value": "$(P)/x"}, {"name": "P", "value": "/b"}],
    "ports": [
        {"containerPort": 53, "hostPort": 53, "hostIP": "127.0.0.1", "name": "local"},
        {"containerPort": 53, "hostPort": 53, "hostIP": "127.0.0.2"},
        {"containerPort": 53, "protocol": "UDP"},
    ],
    "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "500m", "memory": "1Gi"}},
    "securityContext": {"capabilities": {"drop": ["ALL"]}},
    "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
}  # fmt: skip
POD: JsonObject = {
    "containers": [CONTAINER, {"name": "log", "image": "registry.company.com/log:1"}],
    "initContainers": [{"name": "init", "image": "registry.company.com/init:1"}],
    "nodeSelector": {"disk": "ssd"},
    "tolerations": [{"key": "a", "operator": "Exists"}],
    "imagePullSecrets": [{"name": "pull"}],
    "volumes": [{"name": "tmp", "emptyDir": {}}],
    "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["a"]}],
    "topologySpreadConstraints": [
        {"topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "maxSkew": 1,
         "labelSelector": {"matchLabels": {"app": "web"}}},
    ],
}  # fmt: skip
TEMPLATE: JsonObject = {"metadata": {"labels": {"app": "web"}}, "spec": POD}
SELECTED: JsonObject = {"selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE}
SPECS: dict[tuple[str, str], JsonObject] = {
    ("apps/v1/deployments", "Deployment"): {"spec": SELECTED | {"replicas": 3}},
    ("apps/v1/statefulsets", "StatefulSet"): {
        "spec": SELECTED | {"serviceName": "web", "replicas": 1}
    },
    ("batch/v1/cronjobs", "CronJob"): {
        "spec": {
            "schedule": "0 0 * * *",
            "jobTemplate": {"spec": {"template": {"spec": {**POD, "restartPolicy": "Never"}}}},
        }
    },
    ("v1/services", "Service"): {
        "spec": {
            "selector": {"app": "web"},
            "externalIPs": ["192.0.2.1"],
            "ports": [
                {"name": "http", "port": 80, "targetPort": 8080},
                {"name": "dns", "port": 53, "protocol": "UDP"},
            ],
        }
    },
    ("v1/configmaps", "ConfigMap"): {"data": {"a": "1", "b": "2"}},
    ("v1/secrets", "Secret"): {"data": {"a": "MQ=="}, "type": "Opaque"},
    ("v1/serviceaccounts", "ServiceAccount"): {
        "secrets": [{"name": "a"}],
        "imagePullSecrets": [{"name": "pull"}],
    },
    ("networking.k8s.io/v1/networkpolicies", "NetworkPolicy"): {
        "spec": {
            "podSelector": {"matchLabels": {"app": "web"}},
            "ingress": [{"ports": [{"port": 80}]}],
        }
    },
    ("networking.k8s.io/v1/ingresses", "Ingress"): {
        "spec": {
            "rules": [{"host": "a.example.com"}],
            "tls": [{"hosts": ["a.example.com"]}],
            "defaultBackend": {"service": {"name": "web", "port": {"number": 80}}},
        }
    },
    ("rbac.authorization.k8s.io/v1/roles", "Role"): {
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
    },
    ("autoscaling/v2/horizontalpodautoscalers", "HorizontalPodAutoscaler"): {
        "spec": {
            "minReplicas": 1,
            "maxReplicas": 3,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        }
    },
    ("policy/v1/poddisruptionbudgets", "PodDisruptionBudget"): {
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": 1}
    },
    ("v1/persistentvolumeclaims", "PersistentVolumeClaim"): {
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        }
    },
    ("example.com/v1/gadgets", "Gadget"): {
        "spec": {"containers": [{"name": "a", "x": 1}], "size": 1, "limits": {"a": "1"}}
    },
    ("example.com/v1/gizmos", "Gizmo"): {
        "spec": {
            "parts": [
                {"name": "a", "value": "x", "ports": [{"port": 80}, {"port": 80, "via": "UDP"}]},
                {"name": "b", "size": 1},
            ],
            "tags": ["a", "b"],
            "words": ["x"],
            "labels": {"a": "1"},
            "fixed": {"a": "1"},
            "pair": {"left": "l", "right": "r"},
            "ios": 1,
            "free": {"items": [{"name": "a"}], "any": {"b": 1}},
        }
    },
}

STRING: JsonObject = {"type": "string"}


def _list(kind: str, items: JsonObject, *keys: str) -> JsonObject:
    """Return the schema of a list of a type for server-side apply."""
    named = {"x-kubernetes-list-map-keys": [*keys]} if keys else {}
    return {"type": "array", "x-kubernetes-list-type": kind, "items": items, **named}


def _struct(properties: JsonObject, **more: object) -> JsonObject:
    return {"type": "object", "properties": properties, **more}


PORTS = _list(
    "map",
    _struct(
        {"port": {"type": "integer"}, "via": STRING | {"default": "TCP"}, "note": STRING},
        required=["port"],
    ),
    "port",
    "via",
)
PARTS = _list(
    "map",
    _struct(
        {
            "name": STRING,
            "value": STRING,
            "size": {"type": "integer"},
            "rank": {"type": "string", "default": "low"},
            "words": {"type": "array", "items": STRING},
            "ports": PORTS,
        },
        required=["name"],
    ),
    "name",
)
GIZMO = _struct(
    {
        "parts": PARTS,
        "tags": _list("set", STRING),
        "words": _list("atomic", STRING),
        "plain": {"type": "array", "items": STRING},
        "labels": {"type": "object", "additionalProperties": STRING},
        "fixed": {
            "type": "object",
            "additionalProperties": STRING,
            "x-kubernetes-map-type": "atomic",
        },
        "pair": _struct({"left": STRING, "right": STRING}, **{"x-kubernetes-map-type": "atomic"}),
        "ios": {"x-kubernetes-int-or-string": True},
        "ratio": {"type": "number"},
        "on": {"type": "boolean"},
        "size": {"type": "integer"},
        "free": _struct(
            {
                "items": _list(
                    "map", _struct({"name": STRING, "x": STRING}, required=["name"]), "name"
                )
            },
            **{"x-kubernetes-preserve-unknown-fields": True},
        ),
        "deep": {"type": "object", "additionalProperties": PARTS},
    }
)

# for kinds with pods: the path of the pod spec, and how many mutations of pods are tried
PODS = {
    "Deployment": ("spec.template.spec", 100),
    "StatefulSet": ("spec.template.spec", 12),
    "CronJob": ("spec.jobTemplate.spec.template.spec", 16),
}
ALL_OF_METADATA = ("Deployment", "ConfigMap", "Gadget")


def sections() -> dict[str, list[str]]:
    """Return the lines of mutations.txt below each heading."""
    found: dict[str, list[str]] = {}
    for line in (Path(__file__).parent / "mutations.txt").read_text().splitlines():
        if line.startswith("== "):
            lines = found[line.removeprefix("== ")] = []
        elif line and not line.startswith("#"):
            lines.append("" if line == "(nothing)" else line)
    return found


def mutations() -> Iterator[tuple[str, JsonObject]]:
    """Yield a kind and a mutation of its object."""
    table = sections()
    for kind, (path, count) in PODS.items():
        for text in table["pods"][:count]:
            body, steps = text, path.split(".")
            for depth in reversed(range(len(steps))):
                name = ".".join(("Object", *steps[: depth + 1]))
                body = f"{steps[depth]}: {name}{{{body}}}"
            yield (
                kind,
                mutation(
                    body.replace("Object.P.", f"Object.{path}.").replace(
                        "object.O.", f"object.{path}."
                    )
                ),
            )
    for _, kind in SPECS:
        metadata = table["metadata"][: None if kind in ALL_OF_METADATA else 2]
        for text in (*metadata, *table.get(kind, ())):
            yield kind, mutation(text)


def mutation(text: str) -> JsonObject:
    """Return the mutation of a line: a JSONPatch, or the fields of an apply configuration."""
    if "JSONPatch{" in text or text == "[]":
        return {"patchType": "JSONPatch", "jsonPatch": {"expression": text}}
    expression = {"expression": f"Object{{{text}}}"}
    return {"patchType": "ApplyConfiguration", "applyConfiguration": expression}
