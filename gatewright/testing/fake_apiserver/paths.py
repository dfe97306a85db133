"""Field paths of an object in the notation of `managedFields`, and the values at them.

A path is a tuple of elements: `f:name` for a field, `k:{"name":"app"}` for an item of a keyed list,
`v:"a"` for a member of a set. Keyed lists are those of the API
server's OpenAPI and of CRDs; every other list is atomic: one value with one owner.
"""

from collections.abc import Iterator
from typing import Any

import orjson

from gatewright.testing.fake_apiserver.definitions import ServedResource
from kube.resource import JsonObject

ManagedPath = tuple[str, ...]

UNOWNED = {("apiVersion",), ("kind",)} | {
    ("metadata", name)
    for name in (
        "name",
        "namespace",
        "generateName",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "managedFields",
    )
}


def leaves(
    value: Any, kind: ServedResource, names: ManagedPath = (), path: ManagedPath = ()
) -> Iterator[tuple[ManagedPath, Any]]:
    """Yield each path that a manager can own, with its value.

    An item of a keyed list has its own path (with the value True).
    """
    if names in UNOWNED:
        return
    keys = kind.list_keys(names) if names and isinstance(value, list) else None
    if isinstance(value, dict) and value and not (names and kind.atomic(names)):
        for name, item in value.items():
            yield from leaves(item, kind, (*names, name), (*path, f"f:{name}"))
    elif value and keys is not None:
        for item in value:
            element = element_of(item, keys)
            yield (*path, element), True
            if keys:
                yield from leaves(item, kind, names, (*path, element))
    elif path:
        yield path, value


def element_of(item: Any, keys: tuple[str, ...]) -> str:
    """Return the path element of an item of a keyed list, or of a set."""
    if not keys:
        return f"v:{text(item)}"
    defaults = {"protocol": "TCP"}
    return f"k:{text({key: item.get(key, defaults.get(key)) for key in keys})}"


def text(value: Any) -> str:
    """Return JSON with sorted keys."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def position(items: list[Any], element: str) -> int | None:
    """Return the index in a list of the item with this element."""
    keys = tuple(orjson.loads(element[2:])) if element.startswith("k:") else ()
    return next(
        (place for place, item in enumerate(items) if element_of(item, keys) == element), None
    )


def present(object: Any, path: ManagedPath) -> bool:
    """Return whether there is a value at a path."""
    for element in path:
        if isinstance(object, list):
            place = position(object, element)
            if place is None:
                return False
            object = object[place]
        elif isinstance(object, dict) and element[2:] in object:
            object = object[element[2:]]
        else:
            return False
    return True


def remove(object: Any, path: ManagedPath) -> None:
    """Remove the value at a path, and then mappings and lists that have become empty."""
    if isinstance(object, list):
        place = position(object, path[0])
        if place is None:
            return
        if len(path) == 1:
            del object[place]
        else:
            remove(object[place], path[1:])
        return
    name = path[0][2:]
    if not isinstance(object, dict) or name not in object:
        return
    if len(path) > 1:
        remove(object[name], path[1:])
    if len(path) == 1 or object[name] in ({}, []):
        del object[name]


def merge(live: Any, applied: Any, kind: ServedResource, names: ManagedPath = ()) -> Any:
    """Merge an applied value into `live`: maps and keyed lists by members, others as a whole.

    Applied items keep their order, and other items their positions among them.
    """
    if isinstance(live, dict) and isinstance(applied, dict) and not (names and kind.atomic(names)):
        merged = dict(live)
        for name, item in applied.items():
            merged[name] = merge(live.get(name), item, kind, (*names, name))
        return merged
    keys = kind.list_keys(names) if names and isinstance(applied, list) else None
    if keys is None or not isinstance(live, list):
        return applied
    items, left, named = [], list(live), [element_of(item, keys) for item in applied]
    for element, item in zip(named, applied, strict=True):
        while left and element_of(left[0], keys) not in named:
            items.append(left.pop(0))
        place = position(left, element)
        items.append(item if place is None else merge(left.pop(place), item, kind, names))
    return items + left


def tree(paths: set[ManagedPath]) -> JsonObject:
    """Return paths as a nested `fieldsV1`."""
    root: JsonObject = {}
    for path in sorted(paths):
        node = root
        for element in path:
            node = node.setdefault(element, {})
        node["."] = {}
    return tidy(root)


def tidy(node: JsonObject) -> JsonObject:
    """Keep the dot, which marks an owned path, only if there are paths below it."""
    return (
        {}
        if node == {".": {}}
        else {name: {} if name == "." else tidy(each) for name, each in node.items()}
    )


def paths_in(node: JsonObject, path: ManagedPath = ()) -> Iterator[ManagedPath]:
    """Yield the paths of a `fieldsV1`."""
    if not node and path:
        yield path
    for name, child in node.items():
        if name == ".":
            yield path
        else:
            yield from paths_in(child, (*path, name))
