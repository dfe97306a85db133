"""The namespace of a review: from the watch, or from the API server where the watch has not seen it yet."""

from collections.abc import Coroutine, Mapping
from typing import Any

from kube.client import Client
from kube.resource import Resource
from kube.store import Store
from webhook.engine import Attributes

NAMESPACE = Resource("", "v1", "namespaces", "Namespace", namespaced=False)

Object = dict[str, Any]


class Namespaces:
    """The look-ups of a request's namespace. They return a coroutine where the API server has to be asked."""

    def __init__(self, client: Client, watched: Store) -> None:
        self._client = client
        self._watched = watched

    def labels(self, about: Attributes) -> Mapping[str, str] | Coroutine[Any, Any, Mapping[str, str]]:
        """Return its labels; ApiError where the API server does not answer."""
        name = about.namespace
        if not name:
            return {}
        entry = self._watched.entry(name)
        return self._labels(name) if entry is None else entry.labels

    def object(self, about: Attributes) -> Object | Coroutine[Any, Any, Object] | None:
        """Return the Namespace; ApiError where the API server does not answer."""
        name = about.namespace
        if not name:
            return None
        entry = self._watched.entry(name)
        return self._client.get(NAMESPACE, name) if entry is None else entry.object

    async def _labels(self, name: str) -> Mapping[str, str]:
        namespace = await self._client.get(NAMESPACE, name)
        return namespace["metadata"].get("labels") or {}
