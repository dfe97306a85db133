"""The writes of a plan, guarded: nothing is touched that is not ours or already right."""

from collections.abc import Awaitable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from controller.runtime.applied import Applied
from controller.runtime.caches import Cache
from controller.runtime.claims import FIELD_MANAGER
from controller.runtime.contests import Contests, last_manager
from controller.runtime.drift import covers, digest, drifted
from controller.runtime.generate import generated
from controller.runtime.guard import refuse_deleted, refuse_foreign
from controller.runtime.lists import disowned, is_rewritten, written_anew
from controller.runtime.own_writes import OwnWrites
from controller.runtime.parent import Parent
from controller.runtime.patches import Patches
from controller.runtime.plan import Apply, Delete, Object, Once, Patch, Reference, Write
from controller.runtime.planned_kind import PlannedKind
from controller.runtime.result import Request
from controller.runtime.status import says
from controller.runtime.view import View
from kube.client import Client
from kube.errors import AlreadyExists, Conflict, Forbidden, Invalid, NotFound
from kube.resource import Resource

NO_VERSION = "1"  # of no object, as etcd begins with 2: an apply that names it can create, and else is a Conflict


class Writer:
    """Makes the writes of one kind's plans, and skips those that would change nothing."""

    def __init__(
        self, kind: PlannedKind[Any], client: Client, caches: Mapping[Resource, Cache], own_writes: OwnWrites
    ) -> None:
        self._kind = kind
        self._client = client
        self._caches = caches
        self._own_writes = own_writes
        self._applied = Applied()
        self._contests = Contests()
        self._patches = Patches(kind.name, client, self._wrote)
        self._status: dict[Request, tuple[int, int]] = {}  # what was written, and stored as something else
        for resource in {*kind.owns, *kind.patches}:
            caches[resource].subscribe_deleted(partial(self._forget_deleted, resource))

    def write(self, write: Write, parent: Parent, view: View, *, may_create: bool) -> Awaitable[bool]:
        """Make one write of a plan if it is needed and allowed; tell whether something was sent."""
        match write:
            case Apply(desired):
                return self._apply(desired, parent, view, may_create=may_create)
            case Once():
                return self._create_once(write, parent, view, may_create=may_create)
            case Patch():
                return self._patches.write(write, parent, view)
            case Delete(reference):
                return self._delete(reference, parent, view)

    async def status(self, status: Object, parent: Parent) -> bool:
        """Write the parent's status unless it says so already."""
        stored, odd = parent.status, self._status.get(parent.request)
        if says(stored, status) or (odd is not None and odd == (digest(status), digest(stored))):
            return False
        named = {"name": parent.request.name, "namespace": parent.request.namespace, "uid": parent.uid}
        answer = await self._client.apply(
            parent.resource,
            {"metadata": named, "status": status},
            field_manager=FIELD_MANAGER,
            force=True,
            subresource="status",
        )
        answered = answer.get("status", {})
        if says(answered, status):
            self._status.pop(parent.request, None)
        else:
            self._status[parent.request] = (digest(status), digest(answered))
        self._wrote(parent, parent.resource, parent.request.key, answer)
        return True

    async def finalizers(self, names: list[str], parent: Parent) -> None:
        """Write the parent's list of finalizers; Conflict if the parent changed since it was read."""
        change = {"resourceVersion": parent.object["metadata"]["resourceVersion"], "finalizers": names}
        answer = await self._client.patch(
            parent.resource,
            parent.request.name,
            {"metadata": change},
            parent.request.namespace,
            field_manager=FIELD_MANAGER,
        )
        self._wrote(parent, parent.resource, parent.request.key, answer)

    async def live(self, resource: Resource, key: str) -> Object | None:
        """Read an object from the API server; None if there is none."""
        namespace, name = Request.of(key)
        try:
            return await self._client.get(resource, name, namespace)
        except NotFound:
            return None

    def forget(self, request: Request) -> None:
        """Forget an object that is gone."""
        self._status.pop(request, None)
        self._own_writes.forget(request)

    async def _apply(self, desired: Object, parent: Parent, view: View, *, may_create: bool) -> bool:
        resource, key, desired = self._owned(desired, parent)
        current = view.get(resource, key)
        if current is None:
            if not may_create:
                return False
            current = await self._create(resource, key, desired, parent, view)
            if current is None:
                return True
            view.answered(resource, key, current)
        refuse_foreign(resource, key, current, parent)
        refuse_deleted(resource, current)
        before = partial(self._applied_before, resource, key, current, parent)
        if self._applied.is_right(resource, key, current, desired, before):
            if error := self._contests.error((resource, key)):
                raise error
            return False
        await self._put_right(resource, key, current, desired, parent, view)
        return True

    async def _put_right(
        self, resource: Resource, key: str, current: Object, desired: Object, parent: Parent, view: View
    ) -> None:
        """Apply to an object of ours; where somebody changes it back again and again, only once in a while."""
        place, was_right = (resource, key), self._applied.was_right(resource, key, current, desired)
        if was_right and (error := self._contests.error(place)) and not self._contests.may_put_right(place):
            raise error
        if was_right and self._contests.is_near(place):
            current = await self._client.get(resource, current["metadata"]["name"], parent.request.namespace)
        is_edited = (parent.is_settled if was_right is None else was_right) and is_rewritten(current, desired)
        answer = await self._apply_to(current, resource, desired, parent, anew=is_edited)
        is_changed = answer["metadata"]["resourceVersion"] != current["metadata"]["resourceVersion"]
        self._answered(resource, key, desired, answer, parent, view)
        if was_right and is_changed:
            what = f"{resource.kind} {current['metadata']['name']}: {drifted(current, desired) or 'it'}"
            who = last_manager(current)
            self._contests.put_right(place, f"{what} is changed again and again by {who}, and put back once a minute")
        if error := self._contests.error(place):
            raise error

    async def _apply_to(
        self, current: Object, resource: Resource, desired: Object, parent: Parent, *, anew: bool
    ) -> Object:
        """Apply to that very object; what others put into its lists goes if told so, or if it stands in the way."""
        exactly = {**desired, "metadata": {**desired["metadata"], "uid": current["metadata"]["uid"]}}
        apply = partial(self._client.apply, resource, exactly, field_manager=FIELD_MANAGER, force=True)
        if not anew:
            with suppress(Invalid):
                return await apply()
        patch = partial(self._client.patch, resource, current["metadata"]["name"], field_manager=FIELD_MANAGER)
        patched = await patch(written_anew(desired, current), parent.request.namespace)
        await patch(disowned(patched), parent.request.namespace)
        return await apply()

    async def _create(self, resource: Resource, key: str, desired: Object, parent: Parent, view: View) -> Object | None:
        """Apply to a name that the cache has nothing of; return what has it already and was not touched, else None."""
        only_new = {**desired, "metadata": {**desired["metadata"], "resourceVersion": NO_VERSION}}
        try:
            answer = await self._client.apply(resource, only_new, field_manager=FIELD_MANAGER)
        except (Conflict, Forbidden, Invalid):  # admission is asked first: it may not like what others have there
            if (current := await self.live(resource, key)) is None:
                raise
            return current
        self._answered(resource, key, desired, answer, parent, view)
        return None

    async def _create_once(self, once: Once, parent: Parent, view: View, *, may_create: bool) -> bool:
        resource, key, desired = self._owned(once.object, parent)
        if once.known_by:
            del desired["metadata"]["ownerReferences"]
        current = view.get(resource, key)
        if current is not None:
            _refuse_others(resource, key, current, once, parent)
            refuse_deleted(resource, current)
            return False
        if not may_create:
            return False
        try:
            filled = generated(desired, once.generate)
            answer = await self._client.create(resource, filled, field_manager=FIELD_MANAGER)
        except AlreadyExists:
            if (current := await self.live(resource, key)) is None:
                raise
            _refuse_others(resource, key, current, once, parent)
            view.answered(resource, key, current)
            return False
        view.answered(resource, key, answer)
        self._wrote(parent, resource, key, answer)
        return True

    async def _delete(self, reference: Reference, parent: Parent, view: View) -> bool:
        resource, key = reference.resource, reference.resource.key(reference.namespace, reference.name)
        current = view.get(resource, key)
        if current is None or current["metadata"]["uid"] != reference.uid or "deletionTimestamp" in current["metadata"]:
            return False
        try:
            await self._client.delete(resource, reference.name, reference.namespace, uid=reference.uid)
        except (NotFound, Conflict):
            return False  # it is gone, or is another one now
        view.answered(resource, key, None)
        self._own_writes.deleted(parent.request, self._caches[resource], key, reference.uid)
        return True

    def _owned(self, desired: Object, parent: Parent) -> tuple[Resource, str, Object]:
        """Return a child's resource and key, and the child with our owner reference."""
        resource = self._kind.owned(desired)
        metadata = {**desired["metadata"], "ownerReferences": [parent.reference]}
        if resource.namespaced:
            metadata["namespace"] = parent.request.namespace
        return resource, resource.key(parent.request.namespace, metadata["name"]), {**desired, "metadata": metadata}

    def _answered(
        self, resource: Resource, key: str, desired: Object, answer: Object, parent: Parent, view: View
    ) -> None:
        view.answered(resource, key, answer)
        self._applied.remember(resource, key, desired, answer)
        self._wrote(parent, resource, key, answer)

    def _applied_before(self, resource: Resource, key: str, current: Object, parent: Parent) -> bytes | None:
        """Return what we are known to have applied to an object as it is now, for a spec that was seen to."""
        entry = self._caches[resource].entry(key)
        is_known = entry is not None and str(entry.resource_version) == current["metadata"]["resourceVersion"]
        return entry.applied if entry is not None and is_known and parent.is_settled else None

    def _wrote(self, parent: Parent, resource: Resource, key: str, answer: Object) -> None:
        """Remember a write; what its answer says of the parent itself, a new spec perhaps, was not planned on."""
        version, is_child = int(answer["metadata"]["resourceVersion"]), resource != parent.resource
        self._own_writes.wrote(parent.request, self._caches[resource], key, version, is_planned_on=is_child)

    def _forget_deleted(self, resource: Resource, key: str) -> None:
        self._applied.forget(resource, key)
        self._contests.forget((resource, key))
        self._patches.forget(resource, key)


def _refuse_others(resource: Resource, key: str, current: Object, once: Once, parent: Parent) -> None:
    """Raise unless an object is the one that was created once, by this parent or, if it is kept, by an earlier one."""
    if not once.known_by or not covers(current["metadata"].get("labels", {}), once.known_by):
        refuse_foreign(resource, key, current, parent)
