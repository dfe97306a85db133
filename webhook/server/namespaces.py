"""The labels of a review's namespace: from the watch, or from the API server where the watch has not seen it yet."""

from collections.abc import Coroutine, Mapping
from typing import Any

from kube.client import Client
from kube.resource import Resource
from kube.store import Store
from webhook.engine import Attributes

NAMESPACE = Resource("", "v1", "namespaces", "Namespace", namespaced=False)


class NamespaceLabels:
    """The look-up of a namespace's labels."""

    def __init__(self, client: Client, watched: Store) -> None:
        self._client = client
        self._watched = watched

    def __call__(self, about: Attributes) -> Mapping[str, str] | Coroutine[Any, Any, Mapping[str, str]]:
        """Return the labels, or a coroutine that asks the API server; ApiError where it does not answer."""
        name = about.namespace
        if not name:
            return {}
        if (entry := self._watched.entry(name)) is not None:
            return entry.labels
        return self._get(name)

    async def _get(self, name: str) -> Mapping[str, str]:
        namespace = await self._client.get(NAMESPACE, name)
        return namespace["metadata"].get("labels") or {}
