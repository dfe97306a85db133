"""Which requests a change wakes."""

from copy import deepcopy
from typing import Any

import pytest

from controller.runtime.result import Request
from controller.runtime.wakes import itself, owner, primary
from kube.changes import Change, Changes
from kube.resource import Resource
from kube.store import Entry, Object, Owner, Store, entry_of

WEBAPP = Resource("example.com", "v1", "webapps", "WebApp")
DEPLOYMENT = Resource("apps", "v1", "deployments", "Deployment")
METADATA = {"name": "a", "namespace": "shop", "uid": "1", "resourceVersion": "1", "generation": 1}


def entry(**metadata: Any) -> Entry:
    """What a store knows of an object."""
    return entry_of({"metadata": {**METADATA, **metadata}})


def change(old: Entry | None, new: Entry | None) -> Change:
    """A change from one to the other."""
    kind: Any = "added" if old is None else "deleted" if new is None else "modified"
    return Change(kind, "shop/a", old, new, initial=False)


@pytest.mark.parametrize(
    "metadata",
    [
        {"generation": 2},
        {"deletionTimestamp": "2026-01-01T00:00:00Z"},
        {"labels": {"a": "b"}},
        {"annotations": {"a": "b"}},
    ],
)
def test_a_change_that_people_make_wakes_the_primary(metadata: dict[str, Any]) -> None:
    """The spec, the deletion, labels and annotations."""
    assert list(primary(change(entry(), entry(resourceVersion="2", **metadata)))) == [Request("shop", "a")]


def test_a_new_and_a_gone_primary_are_looked_at() -> None:
    """What appears is made real; what is gone is forgotten."""
    assert list(primary(change(None, entry()))) == [Request("shop", "a")]
    assert list(primary(change(entry(), None))) == [Request("shop", "a")]


def test_a_new_status_does_not_wake_the_primary() -> None:
    """Our own status write does not come back to us."""
    status_only = change(entry(), entry(resourceVersion="2"))
    assert list(primary(status_only)) == []
    assert list(itself(status_only)) == [Request("shop", "a")]


def owned(name: str, *, kind: str = "WebApp", api: str = "example.com/v1", controller: bool = True) -> Object:
    """A child of such an owner."""
    reference = {"apiVersion": api, "kind": kind, "name": name, "uid": "u", "controller": controller}
    return {"metadata": {**METADATA, "ownerReferences": [reference]}}


@pytest.mark.parametrize(
    ("old", "new", "woken"),
    [
        (None, owned("shop"), ["shop"]),
        (owned("shop"), owned("shop"), ["shop"]),
        (owned("shop"), None, ["shop"]),
        (owned("shop"), {"metadata": METADATA}, ["shop"]),
        (owned("shop"), owned("other"), ["shop", "other"]),
        (owned("shop"), owned("other", kind="Widget"), ["shop"]),
        (None, owned("shop", api="example.com/v2"), ["shop"]),
        (None, owned("shop", controller=False), []),
        (None, owned("shop", kind="Widget"), []),
        (None, owned("shop", api="other.com/v1"), []),
        (None, {"metadata": METADATA}, []),
    ],
)
def test_a_child_wakes_the_owner_that_controls_it(old: Object | None, new: Object | None, woken: list[str]) -> None:
    """Any change of a child, its end and its being taken away; nobody else's children."""
    changes, heard = Changes(Store(DEPLOYMENT)), list[Request]()
    if old is not None:
        changes.put(deepcopy(old))
    changes.subscribe_owned(WEBAPP, lambda change, by: heard.append(owner(WEBAPP, change, by)))
    if new is not None:
        changes.put({"metadata": {**new["metadata"], "resourceVersion": "2"}})
    elif old is not None:
        changes.remove(old)
    assert heard == [Request("shop", name) for name in woken]


def test_a_child_without_a_namespace_wakes_an_owner_without_one() -> None:
    """And so does one in a namespace."""
    cluster = WEBAPP._replace(namespaced=False)
    by = Owner("example.com/v1", "WebApp", "a", "u")
    for key in ("a", "shop/a"):
        assert owner(cluster, Change("added", key, None, entry(), initial=False), by) == Request(None, "a")
