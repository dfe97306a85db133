"""The verbs of the Kubernetes API: dicts in and out, typed errors, a gate before each write."""

from collections.abc import AsyncIterator, Coroutine
from typing import Any, TypedDict, Unpack

import orjson

from kube.discovery import Discovery
from kube.errors import ServerError, TooLargeError
from kube.page import MAX_PAGE_BYTES, PAGE, ListPage, smaller
from kube.resource import JsonObject, Resource, target
from kube.transport import JSON

MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

JSONPatch = list[JsonObject]


class Selection(TypedDict, total=False):
    """Options of a list: selectors, objects per page (0: all), and metadata only."""

    labels: str | None
    fields: str | None
    limit: int
    metadata_only: bool


class Client(Discovery):
    """The verbs of one API server."""

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> JsonObject:
        """Return one object; NotFound if there is none, ServerError for another object."""
        object = await self._request("GET", resource.path(namespace, name))
        metadata = object.get("metadata")
        about = metadata.get("name") if isinstance(metadata, dict) else None
        if (object.get("apiVersion"), object.get("kind"), about) != (
            resource.api_version,
            resource.kind,
            name,
        ):
            wanted = f"{resource.kind} {name}"
            raise ServerError(200, "NotTheObject", f"the response is not the {wanted}")
        return object

    async def list(
        self, resource: Resource, namespace: str | None = None, **selection: Unpack[Selection]
    ) -> AsyncIterator[JsonObject]:
        """Yield all objects, page after page; Gone if the list changed too much in the meantime."""
        async for page in self.pages(resource, namespace, **selection):
            for item in page:
                yield item

    async def pages(
        self, resource: Resource, namespace: str | None = None, **selection: Unpack[Selection]
    ) -> AsyncIterator[ListPage]:
        """Yield the pages of a collection."""
        token, most = "", selection.get("limit", PAGE)
        while True:
            page = await self.page(resource, namespace, token, **selection)
            token, selection["limit"] = page.token, min(most or PAGE, page.next_limit)
            yield page
            del page  # before the next one is in memory
            if not token:
                return

    async def page(
        self,
        resource: Resource,
        namespace: str | None = None,
        token: str = "",
        **selection: Unpack[Selection],
    ) -> ListPage:
        """Return one page of a collection: the first, or the one after the page with `token`.

        It has fewer objects than `limit` if they are large: at most MAX_PAGE_BYTES, or one object.
        """
        limit = selection.get("limit", PAGE)
        accept = METADATA_LIST if selection.get("metadata_only") else JSON
        while True:
            query = selector_query(selection) | {"limit": limit, "continue": token}
            path = target(resource.path(namespace), query)
            most = None if limit == 1 else MAX_PAGE_BYTES
            try:
                return ListPage(
                    resource, await self.request("GET", path, accept=accept, max_bytes=most)
                )
            except TooLargeError:
                limit = smaller(limit)

    async def create(
        self,
        resource: Resource,
        object: JsonObject,
        *,
        field_manager: str | None = None,
        dry_run: bool = False,
    ) -> JsonObject:
        """Create an object; AlreadyExists if its name is taken."""
        path = resource.path(object["metadata"].get("namespace"))
        return await self._write(
            "POST", path, with_type(resource, object), manager=field_manager, dry_run=dry_run
        )

    async def replace(
        self,
        resource: Resource,
        object: JsonObject,
        *,
        subresource: str | None = None,
        field_manager: str | None = None,
        dry_run: bool = False,
    ) -> JsonObject:
        """Replace an object that was read before.

        Conflict if it changed since (by `resourceVersion`).
        """
        path = path_of(resource, object, subresource)
        return await self._write(
            "PUT", path, with_type(resource, object), manager=field_manager, dry_run=dry_run
        )

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: JsonObject | JSONPatch,
        namespace: str | None = None,
        *,
        subresource: str | None = None,
        field_manager: str | None = None,
        dry_run: bool = False,
    ) -> JsonObject:
        """Change an object: a dict is a merge patch, a list a JSON patch."""
        path = resource.path(namespace, name, subresource)
        kind = JSON_PATCH if isinstance(patch, list) else MERGE_PATCH
        return await self._write("PATCH", path, patch, kind, manager=field_manager, dry_run=dry_run)

    async def apply(
        self,
        resource: Resource,
        object: JsonObject,
        *,
        field_manager: str,
        force: bool = False,
        subresource: str | None = None,
        dry_run: bool = False,
    ) -> JsonObject:
        """Apply an object (server-side apply).

        Conflict if another manager owns a field and `force` is not given.

        With a `metadata.uid`: Conflict if the object of this name has another uid.
        """
        path = path_of(resource, object, subresource)
        body = with_type(resource, object)
        return await self._write("PATCH", path, body, APPLY_PATCH, field_manager, force, dry_run)

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        uid: str | None = None,
        propagation: str = "Background",
    ) -> None:
        """Delete an object; NotFound if there is none, Conflict if its uid is not `uid`."""
        options: JsonObject = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": propagation,
        }
        if uid is not None:
            options["preconditions"] = {"uid": uid}
        await self._write("DELETE", resource.path(namespace, name), options)

    def _write(
        self,
        method: str,
        path: str,
        body: JsonObject | JSONPatch,
        content_type: str = JSON,
        manager: str | None = None,
        force: bool = False,
        dry_run: bool = False,
    ) -> Coroutine[Any, Any, JsonObject]:
        """Return the awaitable request.

        The write gate is checked when its body is sent, unless it is a dry run.
        """
        query = {"fieldManager": manager, "force": force and "true", "dryRun": dry_run and "All"}
        url = target(path, query)
        return self._request(
            method, url, body=orjson.dumps(body), content_type=content_type, gated=not dry_run
        )


def selector_query(selection: Selection) -> dict[str, object]:
    """Return the selectors in the query of a list or a watch."""
    return {"labelSelector": selection.get("labels"), "fieldSelector": selection.get("fields")}


def with_type(resource: Resource, object: JsonObject) -> JsonObject:
    """Return an object with apiVersion and kind, which the server requires."""
    return {"apiVersion": resource.api_version, "kind": resource.kind, **object}


def path_of(resource: Resource, object: JsonObject, subresource: str | None = None) -> str:
    """Return the path of an object by its own name and namespace."""
    return resource.path(
        object["metadata"].get("namespace"), object["metadata"]["name"], subresource
    )
