"""WebApps for tests."""

from typing import Any


def webapp(namespace: str, name: str = "shop", **spec: Any) -> dict[str, Any]:
    """A WebApp with one replica."""
    return {
        "apiVersion": "example.com/v1",
        "kind": "WebApp",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": 1, "image": "nginx:alpine", **spec},
    }


def is_running(webapp: dict[str, Any]) -> bool:
    """Return whether a WebApp has the phase Running."""
    return webapp.get("status", {}).get("phase") == "Running"
