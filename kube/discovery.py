"""Discovery: the versions and the resources that the API server serves."""

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from kube.errors import NotFound, ServerError
from kube.resource import JsonObject, Resource
from kube.transport import Transport, decode

CORE = "v1"  # the version of the core group, which every server has
# Kubernetes 1.30 and later
DISCOVERY = "application/json;as=APIGroupDiscoveryList;g=apidiscovery.k8s.io;v=v2"


class Discovery(Transport):
    """Discovery requests to one API server."""

    async def serves(self, resource: Resource) -> bool:
        """Return whether the server has this resource (its CRD is installed, its version served).

        Only discovery decides: a 404 alone may come from a load balancer. Raises ApiError if
        discovery fails.
        """
        try:
            served = await self._request("GET", resource.root)
        except NotFound:
            if resource.api_version in await self.versions():
                raise
            return False
        if served.get("kind") != "APIResourceList":
            raise ServerError(200, "NotDiscovery", "the response is not an APIResourceList")
        return any(each["name"] == resource.plural for each in served.get("resources") or [])

    async def versions(self) -> frozenset[str]:
        """Return the groups and versions that the server has, as in `apiVersion`."""
        groups = await self._request("GET", "/apis")
        if groups.get("kind") != "APIGroupList":
            raise ServerError(200, "NotDiscovery", "the response is not an APIGroupList")
        listed = (version for group in groups.get("groups") or [] for version in group["versions"])
        return frozenset({CORE, *(version["groupVersion"] for version in listed)})

    async def resources(self) -> tuple[Resource, ...]:
        """Return all resources that can be listed.

        In a group with several versions, the preferred version comes first.
        """
        groups = [await self._request("GET", path, accept=DISCOVERY) for path in ("/api", "/apis")]
        return tuple(
            Resource(
                group["metadata"].get("name", ""),
                version["version"],
                resource["resource"],
                resource["responseKind"]["kind"],
                resource["scope"] == "Namespaced",
            )
            for group_list in groups
            for group in group_list.get("items") or ()
            for version in group["versions"]
            for resource in version.get("resources") or ()
            if "list" in resource["verbs"]
        )

    async def schemas(self, api_versions: Iterable[str]) -> list[JsonObject]:
        """Return the OpenAPI schemas of groups and versions; none of those that are not served.

        Every account may read them, unlike CustomResourceDefinitions.
        """
        schemas = list[JsonObject]()
        for api_version in api_versions:
            with suppress(NotFound):
                document = await self._request("GET", f"/openapi/v3/apis/{api_version}")
                schemas += ((document.get("components") or {}).get("schemas") or {}).values()
        return schemas

    async def _request(self, method: str, target: str, **options: Any) -> JsonObject:
        """Return the decoded response; `options` are those of `Transport.request`."""
        decoded = decode(await self.request(method, target, **options))
        if decoded is None:
            raise ServerError(200, "NotJSON", "the response is not a JSON object")
        return decoded
