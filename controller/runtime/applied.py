"""The annotation of what was last applied to a child: a digest, and a mark of each list item.

If an applied item is missing, and the list has one that was never applied, another writer replaced
the item. Server-side apply alone would add the plan's item beside the other one. The marks
distinguish this from an item that another writer added, even after the plan has changed. They also
reveal an applied item that another writer wrote as well: an apply alone keeps it when it leaves the
plan.
"""

import re
from typing import Any
from zlib import crc32

from controller.runtime.diff import digest
from controller.runtime.list_keys import KeyFunction, has_keyed_lists, list_key, name_of
from kube.client import Client
from kube.resource import JsonObject, Resource

APPLIED = "gatewright.io/applied"
REPLACED = "replaced"  # the annotation's value while lists are rewritten
NESTED = (dict, list)
MARK = 8  # hexadecimal digits: two of the list, six of the item
ANNOTATION = re.compile(rf"[0-9a-f]{{16}} ((?:[0-9a-f]{{{MARK}}})*)")


def annotation_of(desired: JsonObject) -> str:
    """Return the annotation's value for a desired child."""
    return f"{digest(desired)} {''.join(sorted(_marks_of(desired)))}"


def applied_to(current: JsonObject) -> str:
    """Return the annotation's value of a stored child; empty without one."""
    applied = (current["metadata"].get("annotations") or {}).get(APPLIED)
    return str(applied or "")


def is_applied(current: JsonObject) -> bool:
    """Return whether a stored object has the annotation in its form."""
    return ANNOTATION.fullmatch(applied_to(current)) is not None


def is_replaced(current: JsonObject, desired: JsonObject) -> bool:
    """Return whether another writer replaced items of a list of a child.

    If the annotation was changed, the plan counts as the last applied state.
    """
    stored, planned = _marks_of(current), _marks_of(desired)
    applied = planned if (marks := _applied_marks(current)) is None else marks
    lists = {mark[:2] for mark in applied - stored}
    return any(mark[:2] in lists for mark in stored - applied - planned)


def has_removed_items(stored: JsonObject, before: JsonObject, desired: JsonObject) -> bool:
    """Return whether a child still has applied items that left the plan.

    `before` is the child before the apply. They stay if another writer owns them, too.
    """
    removed = (_applied_marks(before) or set()) - _marks_of(desired)
    return bool(removed & _marks_of(stored))


async def replace_lists(
    client: Client, resource: Resource, current: JsonObject, desired: JsonObject, *, manager: str
) -> JsonObject:
    """Write the lists as planned, and give up the patch's field ownership.

    A field or item is removed with the plan only if an apply owns it, so fields outside of lists
    are left to the apply. The annotation marks the repair as in progress, so that it is completed
    after a crash or a concurrent write.
    """
    name, namespace = desired["metadata"]["name"], desired["metadata"].get("namespace")
    content = {key: value for key, value in desired.items() if key != "metadata"}
    metadata = _version_of(current) | {"annotations": {APPLIED: REPLACED}}
    begun = _lists_of(content, _key_function(desired)) | {"metadata": metadata}
    stored = await client.patch(resource, name, begun, namespace, field_manager=manager)
    patched = {"manager": manager, "operation": "Update"}
    owners = [
        managed_fields
        for managed_fields in stored["metadata"].get("managedFields") or ()
        if managed_fields.get("subresource") or not patched.items() <= managed_fields.items()
    ]
    disowned = {"metadata": _version_of(stored) | {"managedFields": owners}}
    return await client.patch(resource, name, disowned, namespace, field_manager=manager)


def _version_of(object: JsonObject) -> JsonObject:
    """Return the metadata that limits a patch to this version of an object."""
    return {key: object["metadata"][key] for key in ("uid", "resourceVersion")}


def _lists_of(object: JsonObject, key_of: KeyFunction) -> JsonObject:
    """Return an object with only the lists whose items have keys."""
    lists: JsonObject = {}
    for key, value in object.items():
        if isinstance(value, dict):
            if inner := _lists_of(value, key_of):
                lists[key] = inner
        elif isinstance(value, list) and any(key_of(key, item) for item in value):
            lists[key] = value
    return lists


def _key_function(object: JsonObject) -> KeyFunction:
    """Return the function of the keys of list items; in a custom resource, a name may be one."""
    return list_key if has_keyed_lists(object) else name_of


def _applied_marks(current: JsonObject) -> set[str] | None:
    """Return the marks of the annotation; None if it is missing or was changed."""
    annotation = ANNOTATION.fullmatch(applied_to(current))
    return set(re.findall(f".{{{MARK}}}", annotation[1])) if annotation else None


def _marks_of(object: JsonObject) -> set[str]:
    """Return the marks of all items of the lists whose items have keys."""
    marks: set[str] = set()
    key_of = _key_function(object)
    for key, value in object.items():
        if key not in ("metadata", "status"):
            _mark(key, value, crc32(key.encode()), marks, key_of)
    return marks


def _mark(field: str, value: Any, path: int, marks: set[str], key_of: KeyFunction) -> None:
    """Add the marks of a value; `path` is the checksum of its path."""
    if isinstance(value, dict):
        for name, item in value.items():
            if isinstance(item, NESTED):
                _mark(name, item, crc32(name.encode(), path), marks, key_of)
    elif isinstance(value, list):
        for place, item in enumerate(value):
            key = key_of(field, item)
            item_path = crc32(str(place if key is None else key).encode(), path)
            if key is not None:
                marks.add(f"{path & 0xFF:02x}{item_path & 0xFFFFFF:06x}")
            _mark("", item, item_path, marks, key_of)
