"""Where the images come from that we choose ourselves: databases, caches, backups."""

from collections.abc import Mapping
from typing import Any


def image(settings: Mapping[str, Any], name: str, tag: str, *, published: str = "") -> str:
    """Return the name of an image we choose, under the setting `registry` where there is one.

    Without it the image is taken from where it is published: Docker Hub, or the registry `published`.
    """
    registry = settings.get("registry") or published
    return f"{registry.rstrip('/')}/{name}:{tag}" if registry else f"{name}:{tag}"
