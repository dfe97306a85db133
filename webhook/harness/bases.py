"""The smallest valid object of each kind, which completes the object of a case."""

import copy
from typing import Any

from webhook.engine.kinds import KINDS, POD_KINDS, RBAC, Kind

POD_SPEC: dict[str, Any] = {"containers": [{"name": "app", "image": "registry.example/app:1.0"}]}
LABELS = {"app": "case"}
TEMPLATE: dict[str, Any] = {"metadata": {"labels": LABELS}, "spec": POD_SPEC}
JOB: dict[str, Any] = {"template": {"spec": POD_SPEC | {"restartPolicy": "Never"}}}

INGRESS_PATH = {
    "path": "/",
    "pathType": "Prefix",
    "backend": {"service": {"name": "case", "port": {"name": "http"}}},
}
RULE: dict[str, Any] = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}
SELECTED: dict[str, Any] = {"selector": {"matchLabels": LABELS}, "template": TEMPLATE}

SPECS: dict[str, dict[str, Any]] = {  # for kinds whose spec must not be empty
    "Pod": POD_SPEC,
    "ReplicationController": {"selector": LABELS, "template": TEMPLATE},
    "Deployment": SELECTED,
    "ReplicaSet": SELECTED,
    "DaemonSet": SELECTED,
    "StatefulSet": SELECTED | {"serviceName": "case"},
    "CronJob": {"schedule": "0 0 * * *", "jobTemplate": {"spec": JOB}},
    "Job": JOB,
    "WebApp": {"replicas": 1, "image": "registry.example/app:1.0", "port": 8080},
    "AppConfig": {"application": "shop", "environment": "dev", "config": {}},
    "VoteConfig": {"poll": {"question": "Which?"}, "options": [{"id": "a", "label": "Cats"}]},
    "HorizontalPodAutoscaler": {
        "minReplicas": 1,
        "maxReplicas": 2,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "case"},
    },
    "ScaledObject": {"scaleTargetRef": {"name": "case"}, "triggers": []},
    "Scale": {"replicas": 1},
    "ClusterAdmissionPolicy": {"policy": "replica-limits"},
    "AdmissionPolicy": {"policy": "replica-limits"},
    "PolicyException": {
        "reason": "sale",
        "expires": "2027-01-01T00:00:00Z",
        "exceptions": [{"policy": "replica-limits"}],
    },
    "PersistentVolume": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}},
    "PersistentVolumeClaim": {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    },
    "Service": {"selector": LABELS, "ports": [{"name": "http", "port": 80}]},
    "Ingress": {"rules": [{"host": "case.example", "http": {"paths": [INGRESS_PATH]}}]},
    "NetworkPolicy": {"podSelector": {}},
    "PodDisruptionBudget": {"selector": {"matchLabels": LABELS}, "maxUnavailable": 1},
}
ROLE_REF = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "view"}
SUBJECT = {"kind": "ServiceAccount", "name": "case", "namespace": "default"}
# For kinds with fields beside the metadata instead of a spec.
WITHOUT_SPEC: dict[str, dict[str, Any]] = {
    "PodTemplate": {"template": TEMPLATE},
    "ConfigMap": {},
    "Namespace": {},
    "Secret": {},
    "ServiceAccount": {},
    "StorageClass": {"provisioner": "example.com/case"},
    "Role": {"rules": [RULE]},
    "ClusterRole": {"rules": [RULE]},
    "RoleBinding": {"roleRef": ROLE_REF, "subjects": [SUBJECT]},
    "ClusterRoleBinding": {"roleRef": ROLE_REF, "subjects": [SUBJECT]},
}
# The options objects of subresources that connect to a pod.
CONNECTIONS: dict[str, dict[str, Any]] = {
    "PodExecOptions": {"container": "app", "command": ["true"], "stdout": True},
    "PodAttachOptions": {"container": "app", "stdout": True},
}

POD_KIND_NAMES = tuple(kind.kind for kind in POD_KINDS if kind.pod_spec is not None)


def kinds_by_name() -> dict[str, Kind]:
    """Return the known kinds by name; for an ambiguous name, the first."""
    return {kind.kind: kind for kind in reversed(KINDS.values())}


def has_smallest() -> tuple[str, ...]:
    """Return the names of all kinds that a case can use."""
    return (*kinds_by_name(), "Scale", *CONNECTIONS)


def is_cluster_scoped(kind: str) -> bool:
    """Whether a known kind is cluster-scoped."""
    kind_record = kinds_by_name().get(kind)
    return kind_record is not None and not kind_record.namespaced


def smallest(kind: str, name: str = "case", namespace: str = "") -> dict[str, Any]:
    """Return the smallest valid object of `kind`, in a namespace if namespaced.

    Raises KeyError if unknown.
    """
    if kind in CONNECTIONS:
        return {"apiVersion": "v1", "kind": kind, **copy.deepcopy(CONNECTIONS[kind])}
    kind_record = None if kind == "Scale" else kinds_by_name()[kind]
    api_version = "autoscaling/v1" if kind_record is None else kind_record.resource.api_version
    object: dict[str, Any] = {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}}
    if namespace and not is_cluster_scoped(kind):
        object["metadata"]["namespace"] = namespace
    object |= WITHOUT_SPEC[kind] if kind in WITHOUT_SPEC else {"spec": SPECS.get(kind, {})}
    return copy.deepcopy(object)


def merge(below: Any, above: Any) -> Any:
    """Return `above` merged over `below`: objects key by key.

    Any other value of `above`, null included, replaces that of `below`.
    """
    if isinstance(below, dict) and isinstance(above, dict):
        return below | {key: merge(below.get(key), value) for key, value in above.items()}
    return above


def at(path: str, value: Any) -> dict[str, Any]:
    """Return an object with `value` at a dotted path."""
    for step in reversed(path.split(".")):
        value = {step: value}
    return value  # type: ignore[no-any-return]


def pod_path(kind: str) -> str | None:
    """Return the path of the pod spec in a kind, or None."""
    kind_record = kinds_by_name().get(kind)
    return kind_record.pod_spec if kind_record is not None else None
