"""What every kind promises, held by each sample and by objects that ask for more: on a cluster in memory."""

from typing import Any

import pytest

from controller.runtime.plan import Object
from kube.resource import Resource
from tests.controller.reconcilers.every_kind import NAMESPACE, Case, World, cases

SAME = {"test-app", "test-webapp", "test-db", "staging-platform", "of-a-class", "tea-or-coffee"}


@pytest.fixture(params=cases(), ids=str)
def case(request: pytest.FixtureRequest) -> Case:
    """Each object in turn."""
    found: Case = request.param
    return found


@pytest.fixture(params=[each for each in cases() if each.name not in SAME], ids=str)
async def various(request: pytest.FixtureRequest) -> World:
    """A cluster where an object is ready: each, but for those that make nothing that others do not."""
    return await settled(request.param)


async def settled(case: Case) -> World:
    """Return a cluster where the object is ready."""
    world = World(case)
    await world.begin()
    await world.settle()
    return world


async def test_it_becomes_ready_and_stays_as_it_is(case: Case) -> None:
    """`kubectl wait --for=condition=Ready` ends; another pass makes no write; children say whose they are.

    Each has one owner, which controls it and waits for it to go; but for claims, which outlive their parent.
    """
    world = await settled(case)
    stored = await world.parent()
    assert await world.ready() == ("True", "AllReady")
    assert stored["status"]["observedGeneration"] == stored["metadata"]["generation"]
    before = list(world.client.writes)
    await world.look()
    assert (world.error, world.client.writes, await world.events()) == (None, before, [])
    owner = {key: stored[key] for key in ("apiVersion", "kind")} | {
        "name": case.name,
        "uid": stored["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    for resource, child in await world.children():
        expected = [] if resource.kind == "PersistentVolumeClaim" else [owner]
        assert child["metadata"].get("ownerReferences", []) == expected, name_of(resource, child)


async def test_what_is_deleted_or_edited_comes_back(various: World) -> None:
    """Children that go are made again; an edit of what is kept right is undone."""
    before = await various.children()
    for resource, child in before:
        await various.client.delete(resource, child["metadata"]["name"], NAMESPACE)
    await various.settle()
    again = await various.children()
    assert [resource for resource, _ in again] == [resource for resource, _ in before]
    kept_right = [each for each in again if each[1]["metadata"].get("ownerReferences") and each[0].kind != "Secret"]
    for resource, child in kept_right:
        await various.client.patch(resource, child["metadata"]["name"], an_edit(child), NAMESPACE)
    await various.settle()
    assert await various.ready() == ("True", "AllReady")
    for resource, child in kept_right:
        now = await various.client.get(resource, child["metadata"]["name"], NAMESPACE)
        assert content(now) == content(child), f"{name_of(resource, child)}: {an_edit(child)}"


async def test_what_is_somebody_elses_is_never_touched(various: World) -> None:
    """Where any child's name is taken, that object stays as it is, and the parent says so, in status and event."""
    for resource, child in await various.children():
        name, told = child["metadata"]["name"], name_of(resource, child)
        await various.client.delete(resource, name, NAMESPACE)
        theirs = await various.client.create(resource, various.theirs(name))
        await various.look()
        assert await various.client.get(resource, name, NAMESPACE) == theirs, told
        assert await various.ready() == ("False", "NameTaken"), told
        expected = f"{told} exists and was not made by this {various.case.kind.resource.kind}; rename one of them"
        assert str(various.error).endswith(expected)
        assert [each for each in await various.events() if each == ("Warning", "NameTaken", str(various.error))], told
        await various.client.delete(resource, name, NAMESPACE)
        await various.client.create(resource, child)


async def test_what_is_being_deleted_gets_nothing(case: Case) -> None:
    """Of an object that somebody deletes while another finalizer holds it, nothing is made."""
    world = World(case, finalizers=["example.com/held", *filter(None, [case.kind.finalizer])])
    await world.begin()
    await world.client.delete(case.kind.resource, case.name, NAMESPACE)
    await world.settle()
    assert await world.children() == []
    assert (await world.parent())["metadata"]["finalizers"] == ["example.com/held"]


def name_of(resource: Resource, child: Object) -> str:
    """Kind and name of a child."""
    return f"{resource.kind} {child['metadata']['name']}"


def content(object: Object) -> Object:
    """Return what of an object somebody might want."""
    metadata = {key: object["metadata"].get(key) for key in ("labels", "annotations", "ownerReferences")}
    return {key: value for key, value in object.items() if key != "status"} | {"metadata": metadata}


def an_edit(object: Object) -> Object:
    """Return a patch that changes something which the parent decides."""
    field = "data" if "data" in object else "spec"
    return {field: changed_leaf(object[field])}


def changed_leaf(value: Any) -> Any:
    """Return a map with one scalar changed, somewhere; None where it has none."""
    for key, each in value.items() if isinstance(value, dict) else ():
        if isinstance(each, bool):
            return {key: not each}
        if isinstance(each, str | int):
            return {key: each + 1 if isinstance(each, int) else f"{each}-edited"}
        if (changed := changed_leaf(each)) is not None:
            return {key: changed}
    return None
