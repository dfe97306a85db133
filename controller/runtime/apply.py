"""Executes the writes of a plan: server-side apply, creation, patches and deletions."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from controller.runtime.applied import (
    APPLIED,
    REPLACED,
    applied_to,
    has_removed_items,
    is_replaced,
    replace_lists,
)
from controller.runtime.cache import Cache
from controller.runtime.changes import WrittenChild, describe_update
from controller.runtime.child import child_of, generate_values, with_initial
from controller.runtime.conflict_backoff import Conflicts, ContestedError, WrittenObject
from controller.runtime.diff import cut, difference, digest
from controller.runtime.expectations import Expectations
from controller.runtime.kind import PlannedKind
from controller.runtime.observed import Owner, Snapshot, is_controlled_by, live
from controller.runtime.ownership import (
    NameTakenError,
    check_ownership,
    is_adoptable,
    is_former_child,
    is_unmarked,
    without_marks,
)
from controller.runtime.plan import Apply, ApplyFields, CreateOnly, Delete, Reference, Step
from controller.runtime.writers import Writer, contest, writer_of
from kube.client import Client
from kube.errors import AlreadyExists, Conflict, Forbidden, Invalid, NotFound
from kube.resource import JsonObject, Resource

FIELD_MANAGER = "gatewright-controller"
# No object has this resourceVersion (etcd starts at 2): an apply with it creates, or conflicts.
NO_VERSION = "1"
MAX_RACES = 3  # immediate attempts while others write a child; further ones have back-off


@dataclass(frozen=True, slots=True)
class Applier:
    """Executes the writes of one owner's plan, and skips those that would change nothing."""

    kind: PlannedKind[Any]
    client: Client
    caches: Mapping[Resource, Cache]
    expectations: Expectations
    conflicts: Conflicts
    owner: Owner
    observed: Snapshot
    other_installation: str = ""
    """The Lease of another installation that reconciles the owner, too, if one is known."""
    sent: set[WrittenObject] = field(default_factory=set)
    """The objects that were written; in one reconcile, each is written once."""
    changes: list[WrittenChild] = field(default_factory=list)
    """What changed in the children, for events."""

    async def apply(self, step: Step, *, may_create: bool) -> None:
        """Execute the writes of one step that are needed and allowed.

        An object that is being deleted gets no children.
        """
        contested: ContestedError | None = None
        for write in step.writes:
            try:
                match write:
                    case ApplyFields():
                        await self._patch(write)
                    case Delete(reference):
                        await self._delete(reference)
                    case _ if not self.owner.is_deleting:
                        await self._child(write, may_create=may_create)
            except ContestedError as error:  # continue with the other objects of the step
                contested = error
        if contested is not None:
            raise contested

    async def _child(self, write: Apply | CreateOnly, *, may_create: bool) -> None:
        """Create a child that does not exist; update an applied one that differs."""
        request, resource = self.owner.request, self.kind.owned_resource(write.object)
        desired = child_of(self.owner, write, resource)
        about = desired["metadata"]
        key = resource.key(about.get("namespace"), about["name"])
        place = WrittenObject(request, resource, key)
        if place in self.sent:
            return
        current = await self._current(resource, key, write)
        if current is not None and is_kept(write, current):
            return
        if current is None:
            if not may_create:
                return
            try:
                answer = await self._create(write, resource, desired)
            except (AlreadyExists, Conflict, Forbidden, Invalid):
                # admission may deny an apply to another owner's object, so check first
                if (current := await live(self.client, resource, key)) is None:
                    raise
                self.observed.record(resource, key, current)
            else:
                self._record_answer(place, desired, answer)
                self.changes.append(WrittenChild("Created", title_of(place)))
                return
        adopts = isinstance(write, CreateOnly) and write.adopts(current)
        self._check(place, current, desired, adopts=adopts)
        if isinstance(write, Apply):
            await self._keep(place, current, desired, write.initial)
        elif not write.adopt_labels and is_adoptable(self.owner, current):
            await self._adopt(place, current, desired)

    async def _current(
        self, resource: Resource, key: str, write: Apply | CreateOnly
    ) -> JsonObject | None:
        """Return the existing object: what is neither a child nor kept is read live.

        It may have been deleted meanwhile, and caches keep little of what is no child.
        """
        current = self.observed.get(resource, key)
        if current is None or is_controlled_by(current, self.owner.object):
            return current
        return current if is_kept(write, current) else await live(self.client, resource, key)

    async def _create(
        self, write: Apply | CreateOnly, resource: Resource, desired: JsonObject
    ) -> JsonObject:
        """Create an object.

        If one of this name exists, the API server rejects the request and changes nothing.
        """
        if isinstance(write, CreateOnly):
            filled = generate_values(desired, write.generate)
            return await self.client.create(resource, filled, field_manager=FIELD_MANAGER)
        filled = with_initial(desired, write.initial)
        only_new = {**filled, "metadata": {**filled["metadata"], "resourceVersion": NO_VERSION}}
        return await self.client.apply(resource, only_new, field_manager=FIELD_MANAGER)

    async def _adopt(self, place: WrittenObject, current: JsonObject, desired: JsonObject) -> None:
        """Make this owner the controller of a child that is never changed otherwise."""
        metadata = current["metadata"]
        owners = [*(metadata.get("ownerReferences") or ()), self.owner.reference]
        patch = {"metadata": exact(metadata) | {"ownerReferences": owners}}
        answer = await self.client.patch(
            place.resource,
            metadata["name"],
            patch,
            metadata.get("namespace"),
            field_manager=FIELD_MANAGER,
        )
        self._record_answer(place, desired, answer)
        self.changes.append(WrittenChild("Adopted", title_of(place)))

    async def _keep(
        self,
        place: WrittenObject,
        current: JsonObject,
        desired: JsonObject,
        initial: Mapping[str, Any],
        *,
        replace: bool = False,
    ) -> None:
        """Apply a child that lacks a desired field, or whose last applied digest differs.

        The write requires the compared version, since a list item replaced meanwhile would stay.
        With `replace`, the lists are written as planned first.
        """
        for _ in range(MAX_RACES):
            try:
                return await self._keep_state(place, current, desired, initial, replace=replace)
            except Conflict:
                newer = await live(self.client, place.resource, place.key)
                if newer is None:
                    raise
                self._check(place, newer, desired)
                current = newer
        return await self._keep_state(place, current, desired, initial, replace=replace)

    async def _keep_state(
        self,
        place: WrittenObject,
        current: JsonObject,
        desired: JsonObject,
        initial: Mapping[str, Any],
        *,
        replace: bool,
    ) -> None:
        is_new, changed = self._compare(place, current, desired)
        writer = None
        if changed and not self._is_overridden(place, current, desired):
            self.conflicts.check(place, digest(desired), repair=True)
            newest = await live(self.client, place.resource, place.key)  # with its managedFields
            if newest is None:
                return  # the next event says so
            self._check(place, newest, desired)
            current = newest
            is_new, changed = self._compare(place, current, desired)
            writer = writer_of(current, changed, FIELD_MANAGER) if changed else None
        applied = applied_to(current)
        is_repair = changed is not None and is_replaced(current, desired)
        if replace or applied == REPLACED or is_repair:
            self.conflicts.check(place, digest(desired), repair=True)
            current = await replace_lists(
                self.client, place.resource, current, desired, manager=FIELD_MANAGER
            )
            changed = changed or ""
        try:
            stored = await self._update(
                place,
                current,
                desired,
                changed,
                FIELD_MANAGER,
                writer=writer,
                only_this=True,
                initial=initial,
            )
        except Invalid:  # perhaps two ports of one name, the new one and the old one
            if not has_removed_items(current, current, desired):
                raise
            stored = current
        if is_new and has_removed_items(stored, current, desired):
            await self._keep(place, stored, desired, initial, replace=True)

    def _compare(
        self, place: WrittenObject, current: JsonObject, desired: JsonObject
    ) -> tuple[bool, str | None]:
        """Return whether the plan is new, and the first field that differs; "" for any.

        If this process has applied the plan already, it is not new, even if the annotation changed.
        """
        if applied_to(current) == desired["metadata"]["annotations"][APPLIED]:
            # a mark alone is no reason to write
            expected = without_marks(desired) if is_unmarked(current) else desired
            return False, difference(current, expected)
        if not self.conflicts.was_sent(place, digest(desired)):
            return True, ""
        content = {key: value for key, value in desired.items() if key != "metadata"}
        return False, difference(current, content) or f"metadata.annotations.{APPLIED}"

    async def _patch(self, patch: ApplyFields) -> None:
        """Set fields of an object with another owner, if they differ.

        Each owner has its own field manager.
        """
        reference = patch.reference
        resource = reference.resource
        key = resource.key(reference.namespace, reference.name)
        place = WrittenObject(self.owner.request, resource, key)
        current = self.observed.get(resource, key)
        if place in self.sent or current is None or current["metadata"]["uid"] != reference.uid:
            return
        named = {"name": reference.name, "namespace": reference.namespace}
        fields = {**patch.fields, "metadata": {**patch.fields.get("metadata", {}), **named}}
        changed = difference(current, patch.fields)
        manager = f"gatewright-{self.kind.name}-{self.owner.uid}"  # two owners may patch one object
        writer = None
        if changed and self.conflicts.was_sent(place, digest(fields)):
            if (newest := await live(self.client, resource, key)) is None:
                return
            writer = writer_of(newest, changed, manager)
        await self._update(place, current, fields, changed, manager, writer=writer)

    async def _update(
        self,
        place: WrittenObject,
        current: JsonObject,
        desired: JsonObject,
        changed: str | None,
        manager: str,
        *,
        writer: Writer | None = None,
        only_this: bool = False,
        initial: Mapping[str, Any] | None = None,
    ) -> JsonObject:
        """Apply to an existing object by its uid, unless nothing changed or it is contested.

        With `only_this`, only to this version of it. Return the stored object. It is the repair of
        the field `changed` if a `writer` changed it.
        """
        resource, sent = place.resource, digest(desired)
        needed = changed is not None and not self._is_overridden(place, current, desired)
        self.conflicts.check(place, sent, repair=needed)
        if not needed:
            return current
        metadata = exact(current["metadata"])
        if not only_this:
            del metadata["resourceVersion"]
        sends = with_initial(desired, initial or {}, current)
        exactly = {**sends, "metadata": {**sends["metadata"], **metadata}}
        answer = await self.client.apply(resource, exactly, field_manager=manager, force=True)
        self._record_answer(place, desired, answer)
        if answer["metadata"]["resourceVersion"] == current["metadata"]["resourceVersion"]:
            return answer
        what = title_of(place)
        if writer is None or not changed:
            self._note_update(what, current, answer, desired)
            return answer
        self.changes.append(WrittenChild("Restored", what, f"{changed}, changed by {writer}"))
        writer = writer._replace(lease=self.other_installation)
        parent = f"{self.owner.resource.kind} {self.owner.request.name}"
        has_scale = self.kind.type.definition.scale is not None
        message = contest(what, changed, writer, parent, has_scale=has_scale)
        self.conflicts.record_repair(place, sent, changed, message)
        return answer

    def _note_update(
        self, what: str, current: JsonObject, answer: JsonObject, desired: JsonObject
    ) -> None:
        """Note what a write changed, by the object before and after it."""
        if is_adoptable(self.owner, current) or is_former_child(current, desired):
            self.changes.append(WrittenChild("Adopted", what))
        elif current.keys() >= answer.keys() and (update := describe_update(what, current, answer)):
            self.changes.append(update)

    def _is_overridden(
        self, place: WrittenObject, current: JsonObject, desired: JsonObject
    ) -> bool:
        """Return whether an apply would change nothing, since admission changes it back."""
        stored = digest(cut(current, desired))
        return self.conflicts.is_overridden(place, digest(desired), stored)

    async def _delete(self, reference: Reference) -> None:
        resource = reference.resource
        key = resource.key(reference.namespace, reference.name)
        current = self.observed.get(resource, key)
        if (
            current is None
            or current["metadata"]["uid"] != reference.uid
            or "deletionTimestamp" in current["metadata"]
        ):
            return
        with suppress(NotFound, Conflict):  # it was deleted or replaced
            await self.client.delete(
                resource, reference.name, reference.namespace, uid=reference.uid
            )
            self.observed.record(resource, key, None)
            self.expectations.expect_deletion(
                self.owner.request, self.caches[resource], key, reference.uid
            )
            place = WrittenObject(self.owner.request, resource, key)
            self.sent.add(place)
            self.changes.append(WrittenChild("Deleted", title_of(place)))

    def _check(
        self,
        place: WrittenObject,
        current: JsonObject,
        desired: JsonObject,
        *,
        adopts: bool = False,
    ) -> None:
        """Raise unless `current` is a child of the owner, or one that it adopts, and stays."""
        request, resource, key = place
        adopts = adopts or is_former_child(current, desired)
        try:
            check_ownership(self.owner, resource, current, adopts=adopts)
        except NameTakenError:
            self.expectations.expect_change(request, self.caches[resource], key)
            raise

    def _record_answer(self, place: WrittenObject, desired: JsonObject, answer: JsonObject) -> None:
        """Record the answer to a write.

        Remember whether it differs from the request, since a mutating webhook may have changed it.
        """
        request, resource, key = place
        self.sent.add(place)
        self.observed.record(resource, key, answer)
        self.expectations.wrote(request, self.caches[resource], key, answer)
        stored = "" if difference(answer, desired) is None else digest(cut(answer, desired))
        self.conflicts.record_answer(place, digest(desired), stored)


def is_kept(write: Apply | CreateOnly, current: JsonObject) -> bool:
    """Return whether an existing object is used unchanged, as the cache has it."""
    is_used = isinstance(write, CreateOnly) and write.adopts(current)
    return is_used and "deletionTimestamp" not in current["metadata"]


def exact(metadata: JsonObject) -> JsonObject:
    """Return the fields that limit a write to one version of an object."""
    return {key: metadata[key] for key in ("uid", "resourceVersion")}


def title_of(place: WrittenObject) -> str:
    """Return the kind and the name of an object, for messages."""
    return f"{place.resource.kind} {place.key.rpartition('/')[2]}"
