"""Children that lost their owner reference come home: restored from a backup, or orphaned."""

from datetime import datetime

from controller.runtime.events import EVENT
from controller.runtime.ownership import PARENT, without_marks
from controller.runtime.plan import Apply, CreateOnly, Observed, Plan, Random, Step
from kube.resource import JsonObject, Resource
from tests.controller.runtime.conftest import (
    CONFIGMAP,
    NAMESPACE,
    SECRET,
    Running,
    Status,
    Thing,
    Things,
    configmap,
)

CREDENTIALS: JsonObject = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}}
MARK = "Thing.test.example/thing"


def plan(thing: Thing, observed: Observed, now: datetime) -> Plan:
    """Plan a Secret with a random password, and a ConfigMap."""
    del now
    if thing.metadata["name"] != "thing":
        return Plan((), Status())
    login = CreateOnly(CREDENTIALS, {"data.password": Random()})
    steps = (
        Step("login", [login], ready=observed.child(SECRET, "login") is not None),
        Step("config", [Apply(configmap("thing", size="1"))], depends_on=["login"]),
    )
    return Plan(steps, Status())


def restore(things: Things, resource: Resource, stored: JsonObject) -> None:
    """Create an object as a backup tool does: without uid, owner references and status."""
    kept = ("name", "namespace", "labels", "annotations")
    metadata = {key: stored["metadata"][key] for key in kept if key in stored["metadata"]}
    content = {key: stored[key] for key in ("data", "spec") if key in stored}
    things.server.create(resource, {"metadata": metadata, **content})


async def test_a_restored_object_adopts_its_children(running: Running) -> None:
    """Children first, then the parent, which has a new uid: passwords are kept, and nothing is taken."""
    async with running(plan) as things:
        things.create()
        await things.until_ready()
        kept = {
            resource: things.server.get(resource, name, NAMESPACE) or {}
            for resource, name in ((SECRET, "login"), (CONFIGMAP, "thing"))
        }
        things.server.delete(things.resource, "thing", NAMESPACE)
        for resource, stored in kept.items():
            await things.until_gone(resource, stored["metadata"]["name"])
        for resource, stored in kept.items():
            restore(things, resource, stored)
        uid = things.create()["metadata"]["uid"]
        await things.until_ready()
        for resource, stored in kept.items():
            now = things.server.get(resource, stored["metadata"]["name"], NAMESPACE) or {}
            assert now["data"] == stored["data"]
            assert [each["uid"] for each in now["metadata"]["ownerReferences"]] == [uid]
        things.server.requests.clear()
        await things.until_quiet()
        assert [each for each in things.writes() if "secrets" in each or "configmaps" in each] == []


async def test_only_the_parent_that_the_mark_names_adopts(running: Running) -> None:
    """A child of another parent, or of another kind, stays as it is until a person hands it over."""
    async with running(plan) as things:
        metadata: JsonObject = {"name": "thing", "namespace": NAMESPACE}
        marked = {"annotations": {PARENT: "Thing.test.example/another"}}
        foreign = things.server.create(CONFIGMAP, {"metadata": metadata | marked})
        things.create()
        ready = await things.until_ready("False", "NameTaken")
        assert things.server.get(CONFIGMAP, "thing", NAMESPACE) == foreign
        command = f"kubectl annotate -n default configmaps thing {PARENT}={MARK}"
        assert ready["message"].endswith(f"rename one of them, or hand it over: {command}")
        handed = {"metadata": {"annotations": {PARENT: MARK}}}
        things.server.change(CONFIGMAP, "thing", handed, NAMESPACE)
        await things.until_ready()
        child = things.server.get(CONFIGMAP, "thing", NAMESPACE) or {}
        assert child["data"] == {"size": "1"}


async def test_a_marked_object_with_another_controller_is_not_adopted(running: Running) -> None:
    """The mark alone takes nothing from an owner."""
    async with running(plan) as things:
        uid = things.create("another")["metadata"]["uid"]
        api_version = things.resource.api_version
        owner = {"apiVersion": api_version, "kind": "Thing", "name": "another", "uid": uid}
        owners = [owner | {"controller": True}]
        metadata: JsonObject = {"name": "thing", "namespace": NAMESPACE, "ownerReferences": owners}
        marked = {"annotations": {PARENT: MARK}}
        foreign = things.server.create(CONFIGMAP, {"metadata": metadata | marked})
        things.create()
        ready = await things.until_ready("False", "NameTaken")
        assert "belongs to Thing another" in ready["message"]
        assert things.server.get(CONFIGMAP, "thing", NAMESPACE) == foreign


async def test_a_child_without_mark_gets_it_with_its_next_write_only(running: Running) -> None:
    """A start writes no child of a release without marks; a change of the plan adds the mark."""
    async with running(plan) as things:
        things.create()
        await things.until_ready()
        stored = things.server.get(CONFIGMAP, "thing", NAMESPACE) or {}
        await things.until_quiet()
    unmarked = {"metadata": {"annotations": {PARENT: None}}}
    before = things.server.change(CONFIGMAP, "thing", unmarked, NAMESPACE)
    things.server.requests.clear()
    async with running(plan) as things:
        await things.until_quiet()
        assert [each for each in things.writes() if "marker" not in each] == []
        assert things.server.get(CONFIGMAP, "thing", NAMESPACE) == before
        things.server.change(CONFIGMAP, "thing", {"data": {"size": "2"}}, NAMESPACE)
        await things.until(CONFIGMAP, "thing", lambda each: each["data"] == stored["data"])
        child = things.server.get(CONFIGMAP, "thing", NAMESPACE) or {}
        assert child["metadata"]["annotations"] == stored["metadata"]["annotations"]


async def test_a_restored_child_without_mark_is_adopted_if_it_is_as_planned(
    running: Running,
) -> None:
    """Other content, or an object that was never applied, may be somebody else's."""
    async with running(plan) as things:
        things.create()
        await things.until_ready()
        stored = without_marks(things.server.get(CONFIGMAP, "thing", NAMESPACE) or {})
        things.server.delete(things.resource, "thing", NAMESPACE)
        await things.until_gone(CONFIGMAP, "thing")
        await things.until_gone(SECRET, "login")
        plain = {**stored, "metadata": {**stored["metadata"], "annotations": {}}}
        for foreign in (plain, {**stored, "data": {"size": "2"}}):
            restore(things, CONFIGMAP, foreign)
            things.create()
            await things.until_ready("False", "NameTaken")
            things.server.delete(things.resource, "thing", NAMESPACE)
            things.server.delete(CONFIGMAP, "thing", NAMESPACE)
            await things.until_gone(SECRET, "login")
        restore(things, CONFIGMAP, stored)
        uid = things.create()["metadata"]["uid"]
        await things.until_ready()
        child = things.server.get(CONFIGMAP, "thing", NAMESPACE) or {}
        assert [each["uid"] for each in child["metadata"]["ownerReferences"]] == [uid]
        assert child["metadata"]["annotations"][PARENT] == MARK
        await things.until_quiet()
        notes = [event["note"] for event in things.server.list(EVENT)]
        assert "Created Secret login; adopted ConfigMap thing" in notes
