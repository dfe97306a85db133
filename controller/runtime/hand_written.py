"""Writes for hand-written controllers: only what would change, and only of objects of their own."""

from datetime import UTC, datetime

from controller.runtime.applied import APPLIED
from controller.runtime.apply import NO_VERSION
from controller.runtime.cache import is_secret
from controller.runtime.diff import difference, digest
from controller.runtime.status import date_conditions, is_same, readable
from controller.runtime.types import TerminalError
from kube.client import Client
from kube.resource import JsonObject, Resource
from kube.store import controller_of


async def apply(
    client: Client,
    resource: Resource,
    desired: JsonObject,
    current: JsonObject | None,
    *,
    field_manager: str,
    owner: JsonObject | None = None,
) -> JsonObject:
    """Apply an object unless `current`, its state in a cache, is as desired; return the newest one.

    With an `owner`, a `controller_reference`, the object gets this reference. An object with
    another controller, or with none, is not written: TerminalError. Where `current` is None, the
    object is created; Conflict if it exists, which the cache will show soon. Fields that were
    applied before and are no longer desired are removed.
    """
    references = {} if owner is None else {"ownerReferences": [owner]}
    content = {**desired, "metadata": {**desired["metadata"], **references}}
    annotations = {**(content["metadata"].get("annotations") or {}), APPLIED: digest(content)}
    metadata = {**content["metadata"], "annotations": annotations}
    if current is None:
        created = {**content, "metadata": {**metadata, "resourceVersion": NO_VERSION}}
        return await client.apply(resource, created, field_manager=field_manager)
    if owner is not None:
        _check_owner(resource, current, owner)
    wanted = {**content, "metadata": metadata}
    compared = {"metadata": metadata} if is_secret(resource) else wanted
    if difference(current, compared) is None:
        return current
    exact = {**wanted, "metadata": {**metadata, "uid": current["metadata"]["uid"]}}
    return await client.apply(resource, exact, field_manager=field_manager, force=True)


async def apply_status(
    client: Client,
    resource: Resource,
    object: JsonObject,
    status: JsonObject,
    *,
    field_manager: str,
) -> None:
    """Write the status of an object, as the cache has it, unless it is stored already.

    Its `conditions`, each made by `condition`, get their times; conditions of other writers stay.
    `observedGeneration` is that of the object.
    """
    metadata, old = object["metadata"], readable(object.get("status"))
    generation = metadata.get("generation", 0)
    conditions = date_conditions(
        status.get("conditions") or (),
        old.get("conditions") or (),
        generation=generation,
        now=datetime.now(UTC),
    )
    desired = {**status, "observedGeneration": generation, "conditions": conditions}
    if is_same(old, desired):
        return
    named = {key: metadata[key] for key in ("name", "namespace", "uid") if key in metadata}
    await client.apply(
        resource,
        {"metadata": named, "status": desired},
        field_manager=field_manager,
        force=True,
        subresource="status",
    )


def _check_owner(resource: Resource, current: JsonObject, owner: JsonObject) -> None:
    """Raise TerminalError unless the object has this owner as its controller."""
    controller = controller_of(current["metadata"])
    if controller is None or controller.uid != owner["uid"]:
        what = f"{resource.kind} {current['metadata']['name']}"
        other = f"belongs to {controller.kind} {controller.name}" if controller else "has no owner"
        raise TerminalError(f"{what} exists and {other}; rename one of them")
