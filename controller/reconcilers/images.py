"""Registries of the images that Gatewright chooses: databases, caches, queues, backups."""

from collections.abc import Mapping
from typing import Any

DOCKER_HUB = ""
PUBLISHED = {
    "gatewright-backup-mongodb": DOCKER_HUB,
    "gatewright-backup-mysql": DOCKER_HUB,
    "gatewright-backup-postgresql": DOCKER_HUB,
    "gatewright-postgresql": DOCKER_HUB,
    "mariadb": DOCKER_HUB,
    "mysql": DOCKER_HUB,
    "nats": DOCKER_HUB,
    "pause": "registry.k8s.io",
    "postgres": DOCKER_HUB,
    "postgres-exporter": "quay.io/prometheuscommunity",
    "rabbitmq": DOCKER_HUB,
    "valkey/valkey": DOCKER_HUB,
}


def image(settings: Mapping[str, Any], name: str, tag: str) -> str:
    """Return the full name of an image in the `registry` of the settings.

    The default is the public registry.
    """
    return f"{_repository(settings, name)}:{tag}"


def is_chosen(settings: Mapping[str, Any], image: str) -> bool:
    """Return whether Gatewright chose this image."""
    return image.rpartition(":")[0] in {_repository(settings, name) for name in PUBLISHED}


def _repository(settings: Mapping[str, Any], name: str) -> str:
    registry = settings.get("registry") or PUBLISHED[name]
    return f"{registry.rstrip('/')}/{name}" if registry else name
