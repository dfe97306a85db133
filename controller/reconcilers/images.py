"""Registries of the images that Gatewright chooses: databases, caches, backups."""

from collections.abc import Mapping
from typing import Any

DOCKER_HUB = ""
PUBLISHED = {
    "gatewright-backup-mongodb": DOCKER_HUB,
    "gatewright-backup-mysql": DOCKER_HUB,
    "gatewright-backup-postgresql": DOCKER_HUB,
    "mysql": DOCKER_HUB,
    "pause": "registry.k8s.io",
    "postgres": DOCKER_HUB,
    "postgres-exporter": "quay.io/prometheuscommunity",
    "valkey/valkey": DOCKER_HUB,
}


def image(settings: Mapping[str, Any], name: str, tag: str) -> str:
    """Return the name of an image we choose: under the setting `registry`, or else from where it is published."""
    return f"{_repository(settings, name)}:{tag}"


def is_chosen(settings: Mapping[str, Any], image: str) -> bool:
    """Tell whether an image is one that we choose."""
    return image.rpartition(":")[0] in {_repository(settings, name) for name in PUBLISHED}


def _repository(settings: Mapping[str, Any], name: str) -> str:
    registry = settings.get("registry") or PUBLISHED[name]
    return f"{registry.rstrip('/')}/{name}" if registry else name
