"""The API server's behaviour for each write: the rules that reconcilers rely on."""

import random
import re
import string
import uuid
from collections.abc import Callable

import jsonpatch

from gatewright.testing.fake_apiserver import ownership
from gatewright.testing.fake_apiserver.definitions import ServedResource, from_crd
from gatewright.testing.fake_apiserver.objects import admit, copy, desired_part, merge
from gatewright.testing.fake_apiserver.ownership import FieldManager
from gatewright.testing.fake_apiserver.refusals import (
    StatusError,
    conflict,
    ending,
    invalid,
    not_found,
    terminating,
)
from gatewright.testing.fake_apiserver.schema import METADATA, faults
from gatewright.testing.fake_apiserver.storage import ObjectKey, Storage
from gatewright.testing.fake_apiserver.write_request import (
    WriteRequest,
    check_finalizers,
    check_identity,
    check_immutable,
    check_uid,
    check_version,
)
from kube.resource import JsonObject, Resource

NAME = re.compile(r"[a-z0-9]([-a-z0-9.:]*[a-z0-9])?")
NAMESPACES = ("", "namespaces")
CRDS = ("apiextensions.k8s.io", "customresourcedefinitions")
TERMINATING = {"type": "Terminating", "status": "True", "reason": "InstanceDeletionInProgress"}
KEPT = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "generateName",
)


class Writes:
    """Create, replace, patch, apply and delete on a Storage."""

    def __init__(self, storage: Storage, now: Callable[[], str]) -> None:
        self._storage = storage
        self._now = now
        self.on_stored: Callable[[ServedResource, JsonObject], None] = lambda kind, each: None
        self.on_removed: Callable[[ServedResource, JsonObject], None] = lambda kind, each: None
        self.mutate: Callable[[JsonObject], JsonObject] = lambda each: each

    def existing(self, write: WriteRequest) -> JsonObject:
        """Return the stored object of a write."""
        stored = self._storage.get(write.kind.bucket, write.key)
        if stored is None:
            raise not_found(write.kind.resource.plural, write.name)
        return stored

    def create(
        self, write: WriteRequest, object: JsonObject, *, applied: bool = False
    ) -> JsonObject:
        """Store a new object; if an apply creates it, filled-in fields have no owner."""
        metadata = object["metadata"]
        if not metadata.get("name") and metadata.get("generateName"):
            letters = random.choices(string.ascii_lowercase + string.digits, k=5)  # noqa: S311
            metadata["name"] = metadata["generateName"] + "".join(letters)
        name = metadata.get("name") or ""
        kind, resource = write.kind, write.kind.resource
        if len(name) > 253 or not NAME.fullmatch(name):
            raise invalid(
                resource.kind,
                name,
                ("metadata.name", "Invalid value: a lowercase RFC 1123 subdomain"),
            )
        if metadata.get("resourceVersion") and not applied:
            raise StatusError(400, "resourceVersion should not be set on objects to be created")
        if resource.namespaced:
            metadata["namespace"] = write.namespace
            self._check_namespace(resource.plural, name, write.namespace)
        if kind.custom:
            self._check_definition(resource, name)
        key = (write.namespace, name)
        if self._storage.get(kind.bucket, key):
            details = {"name": name, "kind": resource.plural}
            message = f'{resource.plural} "{name}" already exists'
            raise StatusError(409, message, reason="AlreadyExists", details=details)
        if kind.status:
            object.pop("status", None)
        for field in (
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "generation",
            "managedFields",
            "selfLink",
        ):
            metadata.pop(field, None)
        metadata |= {"uid": str(uuid.uuid4()), "creationTimestamp": self._now()}
        if kind.generation:
            metadata["generation"] = 1
        stored = self.mutate(admit(kind, object))
        owners: ownership.Owners = {}
        manager = write.by("Apply" if applied else "Update")
        ownership.update({}, object if applied else stored, kind, manager, owners)
        ownership.write(stored, owners, self._now())
        return stored if write.dry_run else self._store(kind, key, stored)

    def replace(self, write: WriteRequest, object: JsonObject) -> JsonObject:
        """Replace the stored object."""
        old = self.existing(write)
        if write.kind.custom and not object["metadata"].get("resourceVersion"):
            cause = (
                "metadata.resourceVersion",
                "Invalid value: 0: must be specified for an update",
            )
            raise invalid(write.kind.resource.kind, write.name, cause)
        check_uid(write, old, object["metadata"])
        return self._change(write, old, object, ownership.read(old), write.by("Update"))

    def merge_patch(self, write: WriteRequest, patch: JsonObject) -> JsonObject:
        """Change the stored object by a merge patch (RFC 7386)."""
        old = self.existing(write)
        new = merge(old, patch)
        if causes := list(faults(new["metadata"], METADATA, "metadata")):
            raise invalid(write.kind.resource.kind, write.name, *causes)
        return self._change(write, old, new, ownership.read(new), write.by("Update"))

    def json_patch(self, write: WriteRequest, patch: list[JsonObject]) -> JsonObject:
        """Change the stored object by a JSON Patch (RFC 6902)."""
        old = self.existing(write)
        try:
            new = jsonpatch.apply_patch(copy(old), patch)
        except jsonpatch.JsonPatchException:
            raise StatusError(
                422, "the server rejected our request due to an error in our request"
            ) from None
        return self._change(write, old, new, ownership.read(old), write.by("Update"))

    def apply(
        self, write: WriteRequest, object: JsonObject, *, force: bool
    ) -> tuple[JsonObject, bool]:
        """Apply an object (server-side apply); return it, and whether it is new."""
        metadata = object["metadata"]
        if metadata.get("managedFields"):
            raise StatusError(400, "metadata.managedFields must be nil")
        if metadata.setdefault("name", write.name) != write.name:
            raise StatusError(400, "the name of the object does not match the name on the URL")
        old = self._storage.get(write.kind.bucket, write.key)
        if old is None:
            if uid := metadata.get("uid"):
                why = (
                    f"uid mismatch: the provided object specified uid {uid}, and no existing "
                    "object was found"
                )
                raise conflict(write.kind.resource.plural, write.name, why)
            if write.subresource:
                raise not_found(write.kind.resource.plural, write.name)
            return self.create(write, object, applied=True), True
        check_version(write, old, metadata)
        check_immutable(write, old, metadata)
        if write.subresource:
            object = {
                name: object[name]
                for name in ("apiVersion", "kind", write.subresource)
                if name in object
            }
        elif write.kind.status:
            object.pop("status", None)
        object.get("metadata", {}).pop("uid", None)
        owners = ownership.read(old)
        new = ownership.apply(copy(old), object, write.kind, write.by("Apply"), owners, force=force)
        return self._change(write, old, new, owners, None), False

    def delete(self, write: WriteRequest, options: JsonObject) -> JsonObject:
        """Delete an object, or set its deletionTimestamp if it has finalizers."""
        old = self.existing(write)
        check_uid(write, old, options.get("preconditions") or {})
        check_version(write, old, options.get("preconditions") or {})
        if options.get("propagationPolicy", "Background") != "Background":
            raise StatusError(501, "the fake API server deletes in the background only")
        metadata = old["metadata"]
        namespace = write.kind.resource.kind == "Namespace"
        is_defining = write.kind.bucket == CRDS and self._has_held_objects(old)
        if not (metadata.get("finalizers") or namespace or is_defining):
            return old if write.dry_run else self._remove(write.kind, write.key)
        if "deletionTimestamp" in metadata or write.dry_run:
            return old
        new = copy(old)
        new["metadata"] |= {"deletionTimestamp": self._now(), "deletionGracePeriodSeconds": 0}
        if "generation" in metadata:
            new["metadata"]["generation"] += 1
        if namespace:
            new["status"] = {"phase": "Terminating"}
        if is_defining:
            new["status"]["conditions"].append(TERMINATING)
        return self._store(write.kind, write.key, new)

    def _change(
        self,
        write: WriteRequest,
        old: JsonObject,
        new: JsonObject,
        owners: ownership.Owners,
        manager: FieldManager | None,
    ) -> JsonObject:
        """Replace the stored object by `new`, limited to the fields that this write may change.

        A write without changes is not stored.
        """
        kind = write.kind
        check_identity(write, new)
        check_version(write, old, new["metadata"])
        check_immutable(write, old, new["metadata"])
        if write.subresource:
            new = copy(old) | {name: new[name] for name in (write.subresource,) if name in new}
        elif kind.status:
            new = {name: value for name, value in new.items() if name != "status"}
            new |= {"status": old["status"]} if "status" in old else {}
        kept = {name: old["metadata"][name] for name in KEPT if name in old["metadata"]}
        given = {name: value for name, value in new["metadata"].items() if name not in KEPT}
        new["metadata"] = given | kept | {"resourceVersion": old["metadata"]["resourceVersion"]}
        new = self.mutate(admit(kind, new))
        check_finalizers(write, old, new["metadata"])
        if kind.generation and desired_part(new) != desired_part(old):
            new["metadata"]["generation"] = old["metadata"]["generation"] + 1
        if manager:
            ownership.update(old, new, kind, manager, owners)
        ownership.write(new, owners, self._now())
        if new == old or write.dry_run:
            return new
        is_last = "deletionTimestamp" in old["metadata"] and not new["metadata"].get("finalizers")
        if is_last and kind.resource.kind != "Namespace":
            self._remove(kind, write.key)
            return new
        return self._store(kind, write.key, new)

    def _check_namespace(self, plural: str, name: str, namespace: str) -> None:
        stored = self._storage.get(NAMESPACES, ("", namespace))
        if stored is None:
            raise not_found("namespaces", namespace)
        if "deletionTimestamp" in stored["metadata"]:
            raise terminating(plural, name, namespace)

    def _check_definition(self, resource: Resource, name: str) -> None:
        definition = self._storage.get(CRDS, ("", f"{resource.plural}.{resource.group}"))
        if definition and "deletionTimestamp" in definition["metadata"]:
            raise ending(resource, name)

    def _has_held_objects(self, crd: JsonObject) -> bool:
        """Return whether finalizers hold objects of a CRD, and so the CRD."""
        objects = [each for kind in from_crd(crd) for _, each in self._storage.all(kind.bucket)]
        return any(each["metadata"].get("finalizers") for each in objects)

    def _store(self, kind: ServedResource, key: ObjectKey, object: JsonObject) -> JsonObject:
        stored = self._storage.commit(kind.bucket, key, object)
        self.on_stored(kind, stored)
        return stored

    def _remove(self, kind: ServedResource, key: ObjectKey) -> JsonObject:
        removed = self._storage.commit(kind.bucket, key, None)
        self.on_removed(kind, removed)
        return removed
