"""Objects, and later changes of them, that make the controller use each of its rights."""

from typing import Any

from kube.resource import JsonObject

STORE = {"type": "s3", "bucket": "backups", "secretRef": {"name": "backup-store"}}
IMAGE = "nginxinc/nginx-unprivileged:1.29"


def custom(group: str, plural: str, kind: str) -> JsonObject:
    """A CustomResourceDefinition of another project, which accepts any object."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": plural, "kind": kind, "singular": kind.lower(), "listKind": f"{kind}List"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def workload(kind: str, name: str, **spec: Any) -> JsonObject:
    """A workload that uses the ConfigMap of the sample AppConfig."""
    container = {
        "name": "app",
        "image": IMAGE,
        "envFrom": [{"configMapRef": {"name": "shop-config"}}],
    }
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": labels}, "template": template, **spec},
    }


OLD_LABELS = {
    "app.kubernetes.io/name": "postgresql",
    "app.kubernetes.io/managed-by": "gatewright",
    "app.kubernetes.io/instance": "older",
    "app.kubernetes.io/component": "database",
}
BEFORE = [
    # The primary and the slice of a database of a release without Patroni.
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "older-0", "labels": OLD_LABELS},
        "spec": {
            "containers": [{"name": "postgres", "image": "postgres:17"}],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data-older-0"}}],
        },
    },
    {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": "older-a1b2c",
            "labels": {
                **OLD_LABELS,
                "kubernetes.io/service-name": "older",
                "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
            },
        },
        "addressType": "IPv4",
        "endpoints": [],
    },
    custom("monitoring.coreos.com", "servicemonitors", "ServiceMonitor"),
    custom("monitoring.coreos.com", "prometheusrules", "PrometheusRule"),
    workload("Deployment", "user-deployment"),
    workload("StatefulSet", "user-statefulset", serviceName="user"),
    workload("DaemonSet", "user-daemonset"),
    {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "taken"},
        "spec": {"ports": [{"port": 80}], "selector": {"app": "somebody-elses"}},
    },
]
MORE = [
    {
        "apiVersion": "database.example.com/v1",
        "kind": "PostgreSQL",
        "metadata": {"name": "older"},
        "spec": {"storage": "10Gi"},
    },
    {
        "apiVersion": "example.com/v1",
        "kind": "WebApp",
        "metadata": {"name": "taken"},
        "spec": {"replicas": 1, "image": IMAGE},
    },
    {
        "apiVersion": "app.example.com/v1",
        "kind": "AppStack",
        "metadata": {"name": "mysql-stack"},
        "spec": {"database": {"type": "mysql", "backup": {"enabled": True, "destination": STORE}}},
    },
    {
        "apiVersion": "example.com/v1",
        "kind": "WebApp",
        "metadata": {
            "name": "of-an-earlier-operator",
            "finalizers": ["webapp.example.com/finalizer"],
        },
        "spec": {"replicas": 1, "image": IMAGE},
    },
    {
        "apiVersion": "database.example.com/v1",
        "kind": "PostgreSQL",
        "metadata": {"name": "short-lived"},
        "spec": {"deletionPolicy": "Delete", "backup": {"enabled": True, "schedule": "0 2 * * *"}},
    },
    {
        "apiVersion": "gatewright.io/v1alpha1",
        "kind": "AdmissionPolicy",
        "metadata": {"name": "replica-limits"},
        "spec": {"policy": "replica-limits"},
    },
    {
        "apiVersion": "gatewright.io/v1alpha1",
        "kind": "PolicyException",
        "metadata": {"name": "black-friday"},
        "spec": {
            "reason": "traffic",
            "expires": "2126-12-01T00:00:00Z",
            "exceptions": [{"policy": "replica-limits"}],
        },
    },
    {
        "apiVersion": "app.example.com/v1",
        "kind": "AppStack",
        "metadata": {"name": "claim-stack"},
        "spec": {"database": {"type": "mysql", "backup": {"enabled": True}}},
    },
    {
        "apiVersion": "app.example.com/v1",
        "kind": "AppStack",
        "metadata": {"name": "short-lived"},
        "spec": {"database": {"type": "mysql", "deletionPolicy": "Delete"}},
    },
    {
        "apiVersion": "platform.example.com/v1",
        "kind": "EcommercePlatform",
        "metadata": {"name": "brief"},
        "spec": {
            "environment": "development",
            "database": {"type": "mysql", "deletionPolicy": "Delete"},
            "backend": {"image": IMAGE},
            "frontend": {"image": IMAGE},
        },
    },
]
# Changes by users, in this order: object, merge patch, and the condition that shows that the controller has
# reconciled it.
CHANGES: list[tuple[str, JsonObject, tuple[str, ...]]] = [
    # As after a restore: the controller becomes the owner again.
    ("secret/short-lived-credentials", {"metadata": {"ownerReferences": None}}, ()),
    (
        "ecommerceplatform/production-store",
        {"spec": {"host": None, "cache": {"enabled": False}, "monitoring": {"enabled": False}}},
        (
            "ingress/production-store",
            "deployment/production-store-cache",
            "service/production-store-cache",
            "servicemonitor/production-store",
            "prometheusrule/production-store",
        ),
    ),
    (
        "ecommerceplatform/production-store",
        {"spec": {"environment": "development"}},
        ("poddisruptionbudget/production-store-backend",),
    ),
    (
        "ecommerceplatform/staging-platform",
        {"spec": {"database": {"backup": {"enabled": False}, "storage": "60Gi"}}},
        ("cronjob/staging-platform-db-backup",),
    ),
    # The settings of Patroni follow the size of the volumes.
    ("postgresql/older", {"spec": {"storage": "12Gi"}}, ()),
    ("appstack/test-stack", {"spec": {"database": None}}, ("postgresql/test-stack-db",)),
    (
        "appstack/mysql-stack",
        {"spec": {"database": {"backup": {"retention": "7d"}}}},
        (),
    ),
    (
        "appstack/mysql-stack",
        {"spec": {"database": {"backup": {"enabled": False}}}},
        ("backup/mysql-stack-db-backup",),
    ),
    ("appstack/mysql-stack", {"spec": {"database": None}}, ("statefulset/mysql-stack-db",)),
    ("postgresql/test-db", {"spec": {"users": [{"name": "one"}]}}, ()),
    ("appconfig/shop", {"spec": {"config": {"LOG_LEVEL": "debug"}}}, ()),
    ("webapp/taken", {"spec": {"replicas": 2}}, ()),
    ("webapp/my-webapp", {"spec": {"autoscaling": {"max": 4}}}, ()),
    (
        "webapp/my-webapp",
        {"spec": {"autoscaling": None}},
        ("horizontalpodautoscaler/my-webapp",),
    ),
]
