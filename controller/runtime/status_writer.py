"""Writes the statuses of one kind's objects, restores overwritten ones, and fits them to the CRD.

The CRD may be older than the controller: then the API server rejects a status with fields that its
schema lacks. They are left out, an event and a metric say so, and later they are tried again.
"""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from controller.runtime import status as statuses
from controller.runtime.cache import Cache
from controller.runtime.conflict_backoff import Conflicts, ContestedError, WrittenObject
from controller.runtime.diff import difference, digest
from controller.runtime.events import EventRecorder
from controller.runtime.expectations import Expectations
from controller.runtime.kind import PlannedKind
from controller.runtime.metrics import KindMetrics
from controller.runtime.observed import Owner, live
from controller.runtime.plan import Event
from controller.runtime.types import ReconcileRequest
from controller.runtime.writers import Writer, contest_of_status, writer_of
from kube.client import Client
from kube.errors import ApiError, Conflict, NotFound
from kube.resource import JsonObject, definition_of
from kube.store import Change

UNDECLARED = re.compile(r"\.status\.([A-Za-z0-9_]+)[^:\s]*: field not declared in schema")
# How the API server refuses to apply with the uid of an object that was deleted.
GONE = "no existing object was found"
# Seconds until fields that the CRD lacks are written again, since the CRD may be newer then.
RETRY_INTERVAL = 300.0


@dataclass(slots=True)
class StatusWriter:
    """Writes statuses, each only if it differs from the stored one."""

    kind: PlannedKind[Any]
    client: Client
    cache: Cache
    recorder: EventRecorder
    metrics: KindMetrics
    expectations: Expectations
    conflicts: Conflicts
    field_manager: str
    clock: Callable[[], float] = time.monotonic
    _seen: dict[ReconcileRequest, str] = field(default_factory=dict)
    """The digest of each status as it was last read or written."""
    _undeclared: frozenset[str] = frozenset()
    _retry_at: float = 0.0

    async def write(self, owner: Owner, status: JsonObject) -> None:
        """Write the status if it differs from the stored one; nothing if the object is gone.

        Raises ContestedError while another writer keeps changing it.
        """
        if self._waits():
            status = self._declared_fields(status)
        before, sent = owner.status, digest(_without_times(status))
        place = WrittenObject(owner.request, owner.resource, owner.uid)
        if statuses.is_same(before, status) or self.conflicts.is_overridden(
            place, sent, digest(before)
        ):
            self._seen[owner.request] = digest(owner.object.get("status"))
            return
        message = None
        if self.conflicts.was_sent(place, sent):
            message = await self._find_writer(owner, place, status)
        self._seen[owner.request] = digest(status)
        try:
            status, answer = await self._apply(owner, status)
        except (NotFound, Conflict) as error:
            if isinstance(error, Conflict) and GONE not in error.message:
                raise
            return  # the object was deleted, which is the next event
        stored, sent = answer.get("status", {}), digest(_without_times(status))
        self._seen[owner.request] = digest(stored)
        self.conflicts.record_answer(
            place, sent, "" if statuses.is_same(stored, status) else digest(stored)
        )
        self.expectations.wrote(owner.request, self.cache, owner.request.key, answer)
        if message is not None:
            self._count(owner, place, sent, message)

    def is_foreign(self, change: Change) -> bool:
        """Return whether somebody else changed the status of an object that was reconciled."""
        seen = self._seen.get(ReconcileRequest.of(change.key))
        if seen is None or change.new is None:
            return False
        return digest(change.new.object.get("status")) != seen

    def retry_in(self) -> float | None:
        """Return the seconds until fields that the CRD lacks are tried again; None: it has all.

        At least a second: the time may have come since the last write.
        """
        return max(self._retry_at - self.clock(), 1.0) if self._undeclared else None

    def retry_now(self) -> bool:
        """Write the fields that the CRD lacks next time; return whether there are any."""
        self._retry_at = 0.0
        return bool(self._undeclared)

    def _waits(self) -> bool:
        return bool(self._undeclared) and self.clock() < self._retry_at

    def forget(self, request: ReconcileRequest) -> None:
        """Remove what is known of a deleted object."""
        self._seen.pop(request, None)

    async def _find_writer(
        self, owner: Owner, place: WrittenObject, status: JsonObject
    ) -> str | None:
        """Return the message in case of a contest; None if the status is as it was written."""
        self.conflicts.check(place, digest(_without_times(status)), repair=True)
        newest = await live(self.client, owner.resource, owner.request.key)
        stored = statuses.readable((newest or {}).get("status"))
        if newest is None or statuses.is_same(stored, status):
            return None
        changed = difference(stored, status)
        path = f"status.{changed}" if changed else "status"
        writer: Writer = writer_of(newest, path, self.field_manager)
        return contest_of_status(path, writer)

    def _count(self, owner: Owner, place: WrittenObject, sent: str, message: str) -> None:
        """Count a repair of the status; the fifth in ten minutes is a contest."""
        try:
            self.conflicts.record_repair(place, sent, "status", message)
        except ContestedError:
            self.recorder.record(owner.object, Event("Contested", message, "Warning"))
            raise

    async def _apply(self, owner: Owner, status: JsonObject) -> tuple[JsonObject, JsonObject]:
        """Apply a status without the fields that the CRD lacks; return it, and the answer."""
        missing: set[str] = set()
        while True:
            declared = {key: value for key, value in status.items() if key not in missing}
            try:
                answer = await self._send(owner, declared)
            except ApiError as error:
                undeclared = set(UNDECLARED.findall(error.message)) - missing
                if not undeclared:
                    raise
                missing |= undeclared
                continue
            if missing:
                self._undeclared, self._retry_at = frozenset(missing), self.clock() + RETRY_INTERVAL
            elif not self._waits():
                self._undeclared = frozenset()
            self.metrics.outdated_crd(bool(self._undeclared))
            if self._undeclared:
                self.recorder.record(owner.object, self._outdated_event())
            return declared, answer

    async def _send(self, owner: Owner, status: JsonObject) -> JsonObject:
        namespace, name = owner.request
        metadata = {"name": name, "namespace": namespace, "uid": owner.uid}
        return await self.client.apply(
            owner.resource,
            {"metadata": metadata, "status": status},
            field_manager=self.field_manager,
            force=True,
            subresource="status",
        )

    def _declared_fields(self, status: JsonObject) -> JsonObject:
        return {key: value for key, value in status.items() if key not in self._undeclared}

    def _outdated_event(self) -> Event:
        resource = self.kind.resource
        fields = ", ".join(f"status.{each}" for each in sorted(self._undeclared))
        note = (
            f"CustomResourceDefinition {definition_of(resource)} is older than this "
            f"controller and lacks {fields}, which stays unset; update it: "
            f"gatewright crds {resource.kind} | kubectl apply --server-side -f -"
        )
        return Event("OutdatedCRD", note, "Warning")


def _without_times(status: JsonObject) -> JsonObject:
    """Return a status without the times of its conditions, which a restored status gets again."""
    conditions = [
        {key: value for key, value in condition.items() if key != "lastTransitionTime"}
        for condition in status.get("conditions") or ()
    ]
    return {**status, "conditions": conditions}
