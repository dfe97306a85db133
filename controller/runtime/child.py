"""The request body of a child: with its owner, the digest of its fields, and random values."""

import base64
import secrets
from collections.abc import Mapping
from typing import Any

from controller.runtime.applied import APPLIED, annotation_of
from controller.runtime.observed import Owner
from controller.runtime.ownership import PARENT, mark_of
from controller.runtime.plan import Apply, CreateOnly, Random
from kube.resource import JsonObject, Resource


def child_of(owner: Owner, write: Apply | CreateOnly, resource: Resource) -> JsonObject:
    """Return the request body of a child: with namespace, owner and the digest of its fields."""
    metadata = dict(write.object["metadata"])
    desired = {**write.object, "metadata": metadata}
    if owner.request.namespace:
        metadata["namespace"] = owner.request.namespace
    if isinstance(write, Apply) or not write.adopt_labels:
        metadata["ownerReferences"] = [owner.reference]
    annotations = dict(metadata.get("annotations") or {})
    if isinstance(write, Apply):
        # without the mark: children of a release that had none are not written at an upgrade
        annotations[APPLIED] = annotation_of(desired)
    metadata["annotations"] = {**annotations, PARENT: mark_of(owner)}
    return desired


def fill_initial(write: Apply | CreateOnly) -> JsonObject:
    """Return the planned object as it is created, without random values."""
    if isinstance(write, CreateOnly) or not write.initial:
        return write.object
    return with_initial(write.object, write.initial)


def with_initial(
    desired: JsonObject, initial: Mapping[str, Any], current: JsonObject | None = None
) -> JsonObject:
    """Return an object with the fields of `initial`, which other writers decide.

    An existing object keeps its `current` values: server-side apply would remove an applied field
    that the request lacks.
    """
    filled = dict(desired)
    for path, value in initial.items():
        *parents, name = path.split(".")
        place, stored = filled, current
        for step in parents:
            place[step] = place = dict(place.get(step) or {})
            stored = (stored or {}).get(step)
        place[name] = (stored or {}).get(name, value)
    return filled


def generate_values(desired: JsonObject, generate: Mapping[str, Random]) -> JsonObject:
    """Return an object with random values at the paths of `generate`.

    Those of a Secret's `data` are in base64.
    """
    filled = dict(desired)
    for path, random in generate.items():
        field, _, key = path.partition(".")
        value = secrets.token_urlsafe(random.length)[: random.length]
        if field == "data":
            value = base64.b64encode(value.encode()).decode()
        filled[field] = {**filled.get(field, {}), key: value}
    return filled
