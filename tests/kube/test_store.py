"""The store holds bytes, finds objects by key, owner and index, and returns private copies."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.budget import ByteBudget
from kube.resource import Resource
from kube.store import Change, OwnerReference, Store, entry_of
from tests.kube.conftest import type_of

WIDGET = Resource("example.com", "v1", "widgets", "Widget")
NODE = Resource("", "v1", "nodes", "Node", namespaced=False)


def widget(name: str = "one", version: int = 1, **fields: Any) -> dict[str, Any]:
    """Return an object as a watch brings it."""
    metadata = {
        "namespace": "a",
        "name": name,
        "uid": f"uid-{name}",
        "resourceVersion": str(version),
    }
    return {"metadata": metadata | fields.pop("metadata", {}), **fields}


def by_image(object: dict[str, Any]) -> list[str]:
    """Index by the images of an object."""
    return object.get("spec", {}).get("images", [])


def test_an_object_is_found_by_its_key() -> None:
    """The key of a namespaced object has the namespace."""
    store, nodes = Store(WIDGET), Store(NODE)
    store.put(widget())
    nodes.put({"metadata": {"name": "n", "uid": "u", "resourceVersion": "1"}})
    assert (store.keys(), nodes.keys()) == (["a/one"], ["n"])
    assert store.entry("a/one") is not None
    assert store.get("a/two") is None
    assert store.entry("a/two") is None


def test_a_reader_cannot_change_what_is_stored() -> None:
    """Each read decodes the JSON again; the original object is not kept."""
    store = Store(WIDGET)
    given = widget(spec={"size": 1})
    store.put(given)
    given["spec"]["size"] = 2
    read = store.get("a/one")
    assert read
    read["spec"]["size"] = 3
    assert store.get("a/one") == widget(spec={"size": 1})


def test_an_entry_knows_what_predicates_ask() -> None:
    """Generation, deletion, labels, annotations and owner are available without decoding.

    ManagedFields are dropped.
    """
    owners = [{"apiVersion": "v1", "kind": "A", "name": "a", "uid": "1"}]
    owners.append({"apiVersion": "v1", "kind": "B", "name": "b", "uid": "2", "controller": True})
    metadata = {
        "generation": 3,
        "deletionTimestamp": "2026-01-01T00:00:00Z",
        "labels": {"x": "y"},
        "annotations": {"a": "b", "c": "d"},
        "ownerReferences": owners,
        "managedFields": [{"manager": "m"}],
    }
    entry = entry_of(widget(version=7, metadata=metadata))
    assert (entry.uid, entry.resource_version, entry.generation, entry.deleting) == (
        "uid-one",
        7,
        3,
        True,
    )
    assert entry.labels == {"x": "y"}
    assert entry.owner == OwnerReference("v1", "B", "b", "2")
    assert "managedFields" not in entry.object["metadata"]
    same = entry_of(widget(metadata={"annotations": {"c": "d", "a": "b"}}))
    assert entry.annotations_hash == same.annotations_hash != entry_of(widget()).annotations_hash


def test_an_entry_takes_no_more_memory_than_its_json() -> None:
    """The bytes have the exact length: the larger buffer of the encoder is not kept."""
    stored = widget(spec={"text": "x" * 5000})
    raw = entry_of(stored).raw
    assert raw == orjson.dumps(stored)
    assert raw.__sizeof__() < len(raw) + 100


def test_an_index_follows_changes() -> None:
    """An object is found by its present values, and not after its deletion."""
    store = Store(WIDGET)
    store.add_index("image", by_image)
    store.put(widget(spec={"images": ["a", "b"]}))
    store.put(widget("two", spec={"images": ["b"]}))
    assert sorted(store.index("image", "b")) == ["a/one", "a/two"]
    store.put(widget(version=2, spec={"images": ["c"]}))
    assert (store.index("image", "a"), store.index("image", "b"), store.index("image", "c")) == (
        [],
        ["a/two"],
        ["a/one"],
    )
    store.remove("a/one")
    store.remove("a/one")
    assert (store.index("image", "c"), len(store)) == ([], 1)


def test_an_index_comes_first() -> None:
    """An index must have a new name and be added before the objects; a missing index is a KeyError."""
    store = Store(WIDGET)
    store.add_index("image", by_image)
    with pytest.raises(ValueError, match="index image of widgets"):
        store.add_index("image", by_image)
    store.put(widget())
    with pytest.raises(ValueError, match="index color of widgets"):
        store.add_index("color", by_image)
    with pytest.raises(KeyError):
        store.index("color", "red")


def test_a_listing_that_ended_is_over() -> None:
    """Missing objects are reported as deleted once; a later object of the same name stays."""
    store = Store(WIDGET)
    told: list[tuple[str, str, bool]] = []
    store.put(widget("gone"))
    store.subscribers.append(
        lambda change: told.append((type_of(change), change.key, change.initial))
    )
    store.begin_listing()
    store.put(widget())
    store.end_listing(2)
    store.put(widget("gone", version=3))
    store.end_listing(4)
    assert told == [
        ("added", "a/one", True),
        ("deleted", "a/gone", True),
        ("added", "a/gone", False),
    ]
    assert store.keys() == ["a/one", "a/gone"]


def test_a_list_may_read_a_version_by_a_newer_schema() -> None:
    """Fields that the older schema lacked are a change, and the same object is none."""
    store = Store(WIDGET)
    told: list[Change] = []
    store.put(widget())
    store.subscribers.append(told.append)
    same: dict[str, Any] = {}
    for more in (same, {"spec": {"size": 3}}, {"spec": {"size": 3}}):
        store.begin_listing()
        store.put({**widget(), **more})
        store.end_listing(2)
    (change,) = told
    assert change.old
    assert change.new
    assert change.old.resource_version == change.new.resource_version
    assert (store.get("a/one") or {})["spec"] == {"size": 3}


def is_claimed(object: dict[str, Any]) -> bool:
    """Return whether an object names an owner."""
    return "ownerReferences" in object["metadata"]


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "put", "unown", "remove", "request", "list"]),
        st.sampled_from("abcde"),
        st.integers(0, 600),
    ),
    max_size=40,
)


@given(steps=STEPS)
def test_what_was_not_requested_fits_the_budget(steps: list[tuple[str, str, int]]) -> None:
    """Whatever others store; requested objects are stored at their next change, until they end."""
    budget = ByteBudget(lambda: 1_000)
    stores = [Store(WIDGET, lambda _: None, is_claimed, budget) for _ in range(2)]
    exist: list[dict[str, dict[str, Any]]] = [{}, {}]
    requested: list[set[str]] = [set(), set()]
    for version, (step, name, size) in enumerate(steps, start=1):
        place, key = size % 2, f"a/{name}"
        store, objects = stores[place], exist[place]
        if step == "put":
            owner = {"apiVersion": "v1", "kind": "A", "name": "a", "uid": "1", "controller": True}
            about = {"ownerReferences": [owner]}
            objects[key] = widget(name, version, metadata=about, data="x" * size)
            store.put(dict(objects[key]))
            assert (store.get(key) == objects[key]) or key not in requested[place]
        elif step == "unown":
            objects[key] = widget(name, version)
            store.put(dict(objects[key]))
            requested[place].discard(key)
        elif step == "remove":
            objects.pop(key, None)
            store.remove(key)
            requested[place].discard(key)
        elif step == "request":
            assert store.request(key) == (
                key in objects and is_claimed(objects[key]) and store.get(key) is None
            )
            requested[place] |= {key} & {key for key in objects if is_claimed(objects[key])}
        else:
            objects.pop(key, None)
            requested[place] &= objects.keys()
            store.begin_listing()
            for object in objects.values():
                store.put(dict(object))
            store.end_listing(version)
        sizes = [
            entry.size
            for store, keys in zip(stores, requested, strict=True)
            for key, entry in store.entries().items()
            if key not in keys
        ]
        assert sum(sizes) == budget.used <= budget.limit()
