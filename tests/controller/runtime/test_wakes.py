"""Which requests a change wakes."""

from typing import Any

import pytest

from controller.runtime.result import Request
from controller.runtime.wakes import itself, owner, primary
from kube.changes import Change
from kube.resource import Resource
from kube.store import Entry, entry_of

WEBAPP = Resource("example.com", "v1", "webapps", "WebApp")
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


def owned(name: str, *, kind: str = "WebApp", group: str = "example.com", controller: bool = True) -> Entry:
    """A child of such an owner."""
    reference = {"apiVersion": f"{group}/v1", "kind": kind, "name": name, "uid": "u", "controller": controller}
    return entry(ownerReferences=[reference])


@pytest.mark.parametrize(
    ("old", "new", "woken"),
    [
        (None, owned("shop"), ["shop"]),
        (owned("shop"), owned("shop"), ["shop"]),
        (owned("shop"), None, ["shop"]),
        (owned("shop"), entry(), ["shop"]),
        (None, owned("shop", controller=False), []),
        (None, owned("shop", kind="Widget"), []),
        (None, owned("shop", group="other.com"), []),
        (None, entry(), []),
    ],
)
def test_a_child_wakes_the_owner_that_controls_it(old: Entry | None, new: Entry | None, woken: list[str]) -> None:
    """Any change of a child, its end and its being taken away; nobody else's children."""
    assert [request.name for request in owner(WEBAPP)(change(old, new))] == woken
