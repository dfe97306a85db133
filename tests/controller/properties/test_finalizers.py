"""A finalizer delays the deletion only until the clean-up is done, whatever goes wrong meanwhile."""

from datetime import datetime
from typing import Any

import pytest

from controller.runtime.kind import Reads
from controller.runtime.leader import LEASE
from controller.runtime.plan import Apply, Delete, Observed, Plan, Reference, Step
from gatewright.testing.fake_apiserver.requests import InjectedFault, Logged
from kube.resource import JsonObject
from tests.controller.runtime.conftest import (
    CONFIGMAP,
    NAMESPACE,
    Running,
    Status,
    Thing,
    Things,
    configmap,
)

FINALIZER = "test.example/external"
DECLARED: Any = {
    "finalizer": FINALIZER,
    "reads": (Reads(LEASE, {"thing": lambda lease: [lease["metadata"]["name"]]}),),
    "deletes": (LEASE,),
}


def plan(thing: Thing, observed: Observed, now: datetime) -> Plan:
    """A kind with a ConfigMap, whose clean-up waits until a Lease of the same name is deleted."""
    del now
    name = str(thing.metadata["name"])
    config = Step("config", [Apply(configmap(name))])
    if "deletionTimestamp" not in thing.metadata:
        return Plan((config,), Status(), finalized=False)
    external = observed.find(LEASE, "thing", name)
    references = [
        Reference(LEASE, name, lease["metadata"]["uid"], lease["metadata"]["namespace"])
        for lease in external
    ]
    undo = Step(
        "external", [Delete(each) for each in references], doing="failed to give the lease back"
    )
    return Plan((config, undo), Status(), finalized=not external)


def lease(things: Things, name: str = "thing") -> None:
    """Create the object that must be cleaned up."""
    things.server.create(LEASE, {"metadata": {"name": name, "namespace": NAMESPACE}})


def delete(things: Things, name: str = "thing") -> None:
    """Delete a Thing as a user would."""
    things.server.delete(things.resource, name, NAMESPACE)


def has_finalizer(object: JsonObject) -> bool:
    """Return whether an object has our finalizer."""
    return FINALIZER in object["metadata"].get("finalizers", ())


async def test_clean_up_comes_before_deletion(running: Running) -> None:
    """The Lease is deleted before its Thing, and the child with the Thing."""
    async with running(plan, **DECLARED) as things:
        lease(things)
        things.create()
        await things.until_ready()
        gone: list[str] = []
        things.server.storage.listeners.append(
            lambda event: gone.append(event.old["kind"]) if event.new is None else None
        )
        delete(things)
        await things.until_gone(things.resource, "thing")
        await things.until_gone(CONFIGMAP, "thing")
    assert gone == ["Lease", "Thing", "ConfigMap"]


async def test_an_object_can_be_deleted_while_it_is_created(running: Running) -> None:
    """At whichever step the deletion arrives, everything is deleted."""
    async with running(plan, **DECLARED) as things:
        for number in range(10):
            name = f"thing-{number}"
            lease(things, name)
            things.create(name)
            await things.server.requests.until(
                lambda requests, least=number: len(requests.writes) > least
            )
            delete(things, name)
        for number in range(10):
            await things.until_gone(things.resource, f"thing-{number}")
            await things.until_gone(CONFIGMAP, f"thing-{number}")
        await things.until_quiet()
        left = [each["metadata"]["name"] for each in things.server.list(CONFIGMAP)]
    assert [name for name in left if "marker" not in name] == []


@pytest.mark.usefixtures("hasty")
async def test_an_object_is_deleted_after_an_outage_of_the_api_server(running: Running) -> None:
    """The object is deleted as soon as the API server is back."""
    async with running(plan, **DECLARED) as things:
        lease(things)
        things.create()
        await things.until_ready()
        await things.server.stop()
        delete(things)
        await things.server.start()
        await things.until_gone(things.resource, "thing")
    assert things.server.get(LEASE, "thing", NAMESPACE) is None


async def test_deleted_while_no_controller_runs(running: Running) -> None:
    """The object stays until the next controller starts."""
    async with running(plan, **DECLARED) as things:
        lease(things)
        things.create()
        await things.until_ready()
    delete(things)
    assert things.server.get(things.resource, "thing", NAMESPACE)
    async with running(plan, **DECLARED) as things:
        await things.until_gone(things.resource, "thing")
    assert things.server.get(LEASE, "thing", NAMESPACE) is None


@pytest.mark.usefixtures("hasty")
async def test_a_clean_up_that_fails_is_seen_and_tried_again(running: Running) -> None:
    """A condition and a Warning event name the error.

    The clean-up is retried until it succeeds, and the object stays until then. Meanwhile it gets no
    children, although its plan has them and one is missing.
    """
    async with running(plan, **DECLARED) as things:
        lease(things)
        things.create()
        await things.until_ready()
        things.server.fail(10**6, 403, method="DELETE", path="/leases/")
        delete(things)
        ready = await things.until_ready("False", "Forbidden")
        event = await things.until_told("CleanUpFailed")
        things.server.delete(CONFIGMAP, "thing", NAMESPACE)
        things.server.requests.clear()
        await things.server.requests.until(
            lambda log: sum(each.method == "DELETE" for each in log.writes) > 2
        )
        assert things.server.get(CONFIGMAP, "thing", NAMESPACE) is None
        held = await things.until(things.resource, "thing", has_finalizer)
        things.server.requests.faults.clear()
        await things.until_gone(things.resource, "thing")
    assert ready["message"] == "failed to give the lease back: a fault of the test: 403"
    assert (event["type"], event["note"]) == ("Warning", ready["message"])
    assert "deletionTimestamp" in held["metadata"]


class OnThings(InjectedFault):
    """A fault: Things cannot be written, except their status."""

    def meets(self, request: Logged) -> bool:
        """Return whether this request gets the fault."""
        return super().meets(request) and request.path.endswith("/things/thing")


@pytest.mark.usefixtures("hasty")
async def test_a_finalizer_that_cannot_be_written_is_seen(running: Running) -> None:
    """Both the blocked creation and the blocked deletion are reported."""
    forbidden = OnThings(10**6, 403, method="PATCH")
    async with running(plan, **DECLARED) as things:
        things.server.requests.faults.append(forbidden)
        things.create()
        unheld = await things.until_ready("False", "Forbidden")
        assert things.server.get(CONFIGMAP, "thing", NAMESPACE) is None
        things.server.requests.faults.clear()
        await things.until_ready()
        things.server.requests.faults.append(forbidden)
        delete(things)
        stuck = await things.until_ready("False", "Forbidden")
        event = await things.until_told("CleanUpFailed")
        things.server.requests.faults.clear()
        await things.until_gone(things.resource, "thing")
    assert unheld["message"] == "failed to add the finalizer: a fault of the test: 403"
    assert (
        event["note"]
        == stuck["message"]
        == "failed to remove the finalizer: a fault of the test: 403"
    )


async def test_an_absent_object_needs_no_clean_up(running: Running) -> None:
    """If somebody else deleted it, or if it never existed, the finalizer is removed."""
    async with running(plan, **DECLARED) as things:
        things.create()
        await things.until_ready()
        delete(things)
        await things.until_gone(things.resource, "thing")
        assert [each for each in things.writes() if each.startswith("DELETE")] == []
