"""Guarantees of every kind, checked on samples and on objects with more fields, on an in-memory API server."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import controller.runtime.cache
from controller.reconcilers import planned_kinds
from gatewright.testing import ApiServer
from kube.resource import JsonObject, Resource
from tests.controller.reconcilers.every_kind import KINDS, NAMESPACE, Case, World, cases

# Fields that children have: an edit changes the first one.
EDITABLE = ("data", "spec", "rules", "subjects", "automountServiceAccountToken")
# Objects whose children have the kinds and names of another's.
SAME = {
    *("test-app", "test-webapp", "test-db", "staging-platform", "of-a-class", "tea-or-coffee"),
    *("of-an-own-image", "of-mongodb", "drilled-in-gcs", "to-azure", "by-identity"),
    *("scaled-from-one", "of-an-earlier-version"),
}


@pytest.fixture(params=cases(), ids=str)
def case(request: pytest.FixtureRequest) -> Case:
    """Each object in turn."""
    found: Case = request.param
    return found


@pytest.fixture(params=[each for each in cases() if each.name not in SAME], ids=str)
async def various(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    """A cluster with a ready object, of each that has children of its own."""
    async with serving(request.param) as world:
        await world.settle()
        yield world


@asynccontextmanager
async def serving(case: Case, **metadata: Any) -> AsyncIterator[World]:
    """An API server in memory with an object."""
    async with ApiServer(*planned_kinds()) as server:
        world = World(case, server, **metadata)
        world.begin()
        yield world


async def test_it_becomes_ready_and_stays_as_it_is(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`kubectl wait --for=condition=Ready` ends; another pass sends no write.

    Nor does one in a controller whose caches have no room for the children.

    Children have their owner's label. Each has one controlling owner with blockOwnerDeletion,
    except claims and Patroni's state, which outlive their parent.
    """
    async with serving(case) as world:
        await world.settle()
        stored = world.parent()
        assert world.ready() == ("True", "AllReady")
        assert stored["status"]["observedGeneration"] == stored["metadata"]["generation"]
        told = world.events()
        assert {each[0] for each in told} <= {"Normal"}
        assert ("Normal", "Ready", f"{stored['kind']} is ready") in told
        assert (world.error, world.server.writes) == (None, [])
        monkeypatch.setattr(controller.runtime.cache, "MAX_UNREQUESTED", 0)
        monkeypatch.setattr(controller.runtime.cache, "MAX_UNREQUESTED_EACH", 0)
        await world.look()
        assert (world.error, world.server.writes, world.events()) == (None, [], told)
    owner = {key: stored[key] for key in ("apiVersion", "kind")} | {
        "name": case.name,
        "uid": stored["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    for resource, child in world.children():
        expected = [] if outlives(resource, child) else [owner]
        assert child["metadata"].get("ownerReferences", []) == expected, name_of(resource, child)


@pytest.mark.long
async def test_deleted_or_edited_children_are_restored(various: World) -> None:
    """Deleted children are recreated; an edit of a reconciled field is reverted."""
    before = various.children()
    for resource, child in before:
        various.server.delete(resource, child["metadata"]["name"], NAMESPACE)
    await various.settle()
    again = various.children()
    assert [resource for resource, _ in again] == [resource for resource, _ in before]
    kept_right = [
        child_of_resource
        for child_of_resource in again
        if child_of_resource[1]["metadata"].get("ownerReferences")
        and child_of_resource[0].kind != "Secret"
    ]
    for resource, child in kept_right:
        various.server.change(resource, child["metadata"]["name"], an_edit(child), NAMESPACE)
    await various.settle()
    assert various.ready() == ("True", "AllReady")
    for resource, child in kept_right:
        now = various.server.get(resource, child["metadata"]["name"], NAMESPACE)
        assert content(now) == content(child), f"{name_of(resource, child)}: {an_edit(child)}"


@pytest.mark.long
async def test_objects_of_other_owners_are_never_written(various: World) -> None:
    """If a child's name is taken, that object stays, and the parent's status and an event report it."""
    for resource, child in various.children():
        name, told = child["metadata"]["name"], name_of(resource, child)
        various.server.delete(resource, name, NAMESPACE)
        theirs = various.server.create(resource, various.theirs(name))
        await various.look()
        assert various.server.get(resource, name, NAMESPACE) == theirs, told
        assert various.ready() == ("False", "NameTaken"), told
        expected = f"{told} exists and was not created by this {various.case.kind.resource.kind}; rename one of them"
        assert expected in str(various.error)
        assert [
            event
            for event in various.events()
            if event == ("Warning", "NameTaken", str(various.error))
        ], told
        various.server.delete(resource, name, NAMESPACE)
        various.server.create(resource, as_created(child))
        if "status" in child:
            various.server.change(resource, name, {"status": child["status"]}, NAMESPACE, "status")


@pytest.mark.parametrize("case", {case.kind: case for case in cases()}.values(), ids=str)
async def test_an_object_being_deleted_gets_no_children(case: Case) -> None:
    """No child is created for an object in deletion that another finalizer keeps, whatever its spec."""
    async with serving(
        case, finalizers=["example.com/held", *filter(None, [case.kind.finalizer])]
    ) as world:
        world.server.delete(case.kind.resource, case.name, NAMESPACE)
        await world.settle()
        assert world.children() == []
        assert world.parent()["metadata"]["finalizers"] == ["example.com/held"]


def outlives(resource: Resource, child: JsonObject) -> bool:
    """Whether a child stays when its parent is deleted: volumes, and the state of Patroni."""
    state = child["metadata"]["name"].endswith(("-config", "-failover", "-sync"))
    is_state = resource.kind == "Endpoints" or (resource.kind == "Service" and state)
    return resource.kind == "PersistentVolumeClaim" or is_state


def name_of(resource: Resource, child: JsonObject) -> str:
    """Kind and name of a child."""
    return f"{resource.kind} {child['metadata']['name']}"


def as_created(object: JsonObject) -> JsonObject:
    """Return an object without the fields that the API server adds."""
    own = ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields")
    return object | {
        "metadata": {key: value for key, value in object["metadata"].items() if key not in own}
    }


def content(object: JsonObject) -> JsonObject:
    """Return an object without server-set metadata and status."""
    metadata = {
        key: object["metadata"].get(key) for key in ("labels", "annotations", "ownerReferences")
    }
    return {key: value for key, value in object.items() if key != "status"} | {"metadata": metadata}


def an_edit(object: JsonObject) -> JsonObject:
    """Return a valid patch that changes a field which the parent sets."""
    if (object["apiVersion"], object["kind"]) in KINDS:
        return {"metadata": {"labels": dict.fromkeys(object["metadata"]["labels"], "edited")}}
    (field, *_) = (each for each in EDITABLE if each in object)
    value = object[field]
    if isinstance(value, dict):
        return {field: changed_leaf(value)}
    return {field: not value if isinstance(value, bool) else []}


def changed_leaf(value: Any) -> Any:
    """Return a map with one scalar changed; None if it has no scalar."""
    for key, each in value.items() if isinstance(value, dict) else ():
        if isinstance(each, bool):
            return {key: not each}
        if isinstance(each, str | int):
            return {key: each + 1 if isinstance(each, int) else f"{each}-edited"}
        if (changed := changed_leaf(each)) is not None:
            return {key: changed}
    return None
