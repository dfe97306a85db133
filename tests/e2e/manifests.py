"""Manifests as users write them; valid by default."""

from typing import Any

from kube.resource import JsonObject

GOOD_IMAGE = "registry.company.com/shop:1.4"
LIMITS: JsonObject = {"limits": {"cpu": "500m", "memory": "512Mi"}}


def webapp(name: str = "shop", *, labels: dict[str, str] | None = None, **spec: Any) -> JsonObject:
    """Return a WebApp of one replica."""
    return {
        "apiVersion": "example.com/v1",
        "kind": "WebApp",
        "metadata": {"name": name} | ({"labels": labels} if labels else {}),
        "spec": {"replicas": 1, "image": GOOD_IMAGE, **spec},
    }


def container(**fields: Any) -> JsonObject:
    """Return a container with limits."""
    return {"name": "app", "image": GOOD_IMAGE, "resources": LIMITS, **fields}


def pod(name: str = "shop", **fields: Any) -> JsonObject:
    """Return a Pod of one container."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container(**fields)]},
    }


def deployment(name: str = "shop", *, replicas: int = 2, **fields: Any) -> JsonObject:
    """Return a Deployment of one container."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [container(**fields)]},
            },
        },
    }


def cron_job(name: str = "shop", **fields: Any) -> JsonObject:
    """Return a CronJob of one container."""
    template = {"spec": {"restartPolicy": "OnFailure", "containers": [container(**fields)]}}
    spec = {"schedule": "0 2 * * *", "jobTemplate": {"spec": {"template": template}}}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name}, "spec": spec}


def autoscaler(name: str = "shop", *, maximum: int = 10) -> JsonObject:
    """Return a HorizontalPodAutoscaler of a WebApp."""
    target = {"apiVersion": "example.com/v1", "kind": "WebApp", "name": name}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name},
        "spec": {"minReplicas": 1, "maxReplicas": maximum, "scaleTargetRef": target},
    }


def namespace(name: str, **labels: str) -> JsonObject:
    """Return a Namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
