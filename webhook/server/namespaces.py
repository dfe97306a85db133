"""The labels of a review's namespace: from the watch, or asked for where the watch has not seen it yet."""

from collections.abc import Mapping

from kube.client import Client
from kube.resource import Resource
from kube.store import Store
from webhook.engine import Request

NAMESPACE = Resource("", "v1", "namespaces", "Namespace", namespaced=False)


class NamespaceLabels:
    """A look-up for the rim."""

    def __init__(self, client: Client, watched: Store) -> None:
        self._client = client
        self._watched = watched

    async def __call__(self, request: Request) -> Mapping[str, str]:
        """Return the labels; an ApiError where the API server does not say."""
        name = request.attributes.namespace
        if not name:
            return {}
        if (entry := self._watched.entry(name)) is not None:
            return entry.labels
        namespace = await self._client.get(NAMESPACE, name)
        return namespace["metadata"].get("labels") or {}
