"""A client with its objects in memory, for unit tests.

It gives objects uids, versions and generations, and answers with the errors that a real API server would. It knows no
defaults, no validation and no owners of fields: an apply merges. What depends on those needs a real API server.
"""

import copy
import uuid
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import jsonpatch

from controller.runtime.moments import rfc3339
from controller.runtime.plan import Object
from controller.runtime.selectors import selects
from kube.client import Client
from kube.endpoint import Endpoint
from kube.errors import AlreadyExists, Conflict, Invalid, NotFound
from kube.resource import Resource

SERVER_METADATA = ("uid", "resourceVersion", "generation", "creationTimestamp")


class FakeClient(Client):
    """A client of nothing but its own memory."""

    def __init__(self) -> None:
        super().__init__(Endpoint("http://no-api-server.invalid"))
        self.writes: list[str] = []
        """Every write so far, such as `apply deployments default/test-webapp`."""
        self.events: list[str] = []
        """Every event that reconciles told, such as `Warning NameTaken WebApp default/shop: Service shop exists …`."""
        self.version = 0
        self._objects: dict[tuple[Resource, str], Object] = {}

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> Object:
        """Return one object."""
        return copy.deepcopy(self._stored(resource, resource.key(namespace, name)))

    async def pages(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        labels: str | None = None,
        fields: str | None = None,
        limit: int = 500,
        metadata_only: bool = False,
    ) -> AsyncIterator[Object]:
        """Yield one page with all objects that the selectors choose."""
        found = [
            each
            for (its, _), each in self._objects.items()
            if its == resource
            and namespace in (None, each["metadata"].get("namespace"))
            and selects(labels, fields, each)
        ]
        yield {"metadata": {"resourceVersion": str(self.version)}, "items": copy.deepcopy(found)}

    async def create(
        self, resource: Resource, object: Object, *, field_manager: str | None = None, dry_run: bool = False
    ) -> Object:
        """Store a new object."""
        key = key_of(resource, object)
        if (resource, key) in self._objects:
            raise AlreadyExists(
                409, "AlreadyExists", f'{resource.plural} "{object["metadata"]["name"]}" already exists'
            )
        return self._store("create", resource, key, object, None, dry_run=dry_run)

    async def replace(
        self,
        resource: Resource,
        object: Object,
        *,
        subresource: str | None = None,
        field_manager: str | None = None,
        dry_run: bool = False,
    ) -> Object:
        """Put an object in the place of the one read before."""
        key = key_of(resource, object)
        stored = self._stored(resource, key)
        refuse_other(stored, object["metadata"])
        new = {**stored, "status": object.get("status")} if subresource == "status" else object
        return self._store("replace", resource, key, new, stored, subresource=subresource, dry_run=dry_run)

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Object | list[Object],
        namespace: str | None = None,
        *,
        subresource: str | None = None,
        field_manager: str | None = None,
        dry_run: bool = False,
    ) -> Object:
        """Change an object by a merge patch, or by a list: a JSON patch; Invalid where one of its tests fails."""
        key = resource.key(namespace, name)
        stored = self._stored(resource, key)
        if isinstance(patch, list):
            new = json_patched(stored, patch)
        else:
            refuse_other(stored, patch.get("metadata", {}))
            new = merge_patched(stored, patch)
        return self._store("patch", resource, key, new, stored, subresource=subresource, dry_run=dry_run)

    async def apply(
        self,
        resource: Resource,
        object: Object,
        *,
        field_manager: str,
        force: bool = False,
        subresource: str | None = None,
        dry_run: bool = False,
    ) -> Object:
        """Create an object, or merge into the stored one."""
        key = key_of(resource, object)
        stored = self._objects.get((resource, key))
        if stored is None and (subresource or "uid" in object["metadata"]):
            self._stored(resource, key)
        if stored is not None:
            refuse_other(stored, object["metadata"])
        new = merged(stored or {}, object)
        return self._store("apply", resource, key, new, stored, subresource=subresource, dry_run=dry_run)

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        uid: str | None = None,
        propagation: str = "Background",
    ) -> None:
        """Remove an object; one with finalizers is only marked."""
        key = resource.key(namespace, name)
        stored = self._stored(resource, key)
        if uid is not None:
            refuse_other(stored, {"uid": uid})
        if stored["metadata"].get("finalizers"):
            marked = merge_patched(stored, {"metadata": {"deletionTimestamp": rfc3339(datetime.now(UTC))}})
            self._store("delete", resource, key, marked, stored)
            return
        self._wrote("delete", resource, key, None)
        del self._objects[resource, key]

    async def serves(self, resource: Resource) -> bool:
        """Say that every resource is served."""
        return True

    def _stored(self, resource: Resource, key: str) -> Object:
        try:
            return self._objects[resource, key]
        except KeyError:
            raise NotFound(404, "NotFound", f"{resource.plural} {key} not found") from None

    def _store(
        self,
        verb: str,
        resource: Resource,
        key: str,
        new: Object,
        old: Object | None,
        *,
        subresource: str | None = None,
        dry_run: bool = False,
    ) -> Object:
        about = {"apiVersion": resource.api_version, "kind": resource.kind}
        if old is None:
            given: Object = {"uid": str(uuid.uuid4()), "generation": 1, "creationTimestamp": rfc3339(datetime.now(UTC))}
        else:
            given = {each: old["metadata"][each] for each in SERVER_METADATA}
            if subresource == "status":
                new = {**old, "status": new.get("status")}
            elif new.get("spec") != old.get("spec"):
                given["generation"] += 1
        stored = copy.deepcopy({**about, **new, "metadata": {**new["metadata"], **given}})
        if stored == old:
            return copy.deepcopy(stored)
        stored["metadata"]["resourceVersion"] = str(self.version + 1)
        if not dry_run:
            self._wrote(verb, resource, key, subresource)
            self._objects[resource, key] = stored
            if "deletionTimestamp" in stored["metadata"] and not stored["metadata"].get("finalizers"):
                del self._objects[resource, key]
        return copy.deepcopy(stored)

    def _wrote(self, verb: str, resource: Resource, key: str, subresource: str | None) -> None:
        self.version += 1
        self.writes.append(f"{verb} {resource.plural}{f'/{subresource}' if subresource else ''} {key}")


def key_of(resource: Resource, object: Object) -> str:
    """Return the key of an object."""
    return resource.key(object["metadata"].get("namespace"), object["metadata"]["name"])


def merged(old: Any, new: Any) -> Any:
    """Merge as an apply does: maps by key, lists of named things by name, anything else as a whole; null removes."""
    if isinstance(old, dict) and isinstance(new, dict):
        both = {**old, **{key: merged(old.get(key), value) for key, value in new.items()}}
        return {key: value for key, value in both.items() if value is not None}
    if isinstance(old, list) and isinstance(new, list) and all(is_named(each) for each in (*old, *new)):
        by_name = {each["name"]: each for each in old}
        by_name |= {each["name"]: merged(by_name.get(each["name"], {}), each) for each in new}
        return list(by_name.values())
    return new


def merge_patched(old: Any, patch: Any) -> Any:
    """Return what a JSON merge patch (RFC 7386) makes of a value: lists are replaced as a whole."""
    if not isinstance(patch, dict):
        return patch
    both = {**old} if isinstance(old, dict) else {}
    both |= {key: merge_patched(both.get(key), value) for key, value in patch.items()}
    return {key: value for key, value in both.items() if value is not None}


def json_patched(old: Object, patch: list[Object]) -> Object:
    """Return what a JSON patch (RFC 6902) makes of an object."""
    try:
        patched: Object = jsonpatch.apply_patch(old, patch)
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException) as error:
        raise Invalid(422, "Invalid", f"the JSON patch cannot be applied: {error}") from error
    return patched


def is_named(value: Any) -> bool:
    """Tell whether a list's item is told apart by its name."""
    return isinstance(value, dict) and "name" in value


def refuse_other(stored: Object, metadata: Object) -> None:
    """Raise Conflict when another version, or another object, is meant."""
    for each in ("uid", "resourceVersion"):
        if metadata.get(each) not in (None, stored["metadata"][each]):
            raise Conflict(409, "Conflict", f"another {each} is stored: {stored['metadata'][each]}")
