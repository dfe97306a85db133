"""How plans are executed: the order, the effect of failures, objects that are not touched, and the status."""

import base64
from copy import deepcopy
from datetime import datetime, timedelta
from typing import Any

import pytest

import controller.runtime.workqueue
import kube.backoff
from controller.runtime.events import EVENT
from controller.runtime.kind import PlannedKind, Reads
from controller.runtime.leader import LEASE
from controller.runtime.plan import (
    Apply,
    ApplyFields,
    CreateOnly,
    Delete,
    Event,
    Observed,
    Plan,
    Problem,
    Random,
    Reference,
    Step,
)
from gatewright.testing.fake_apiserver.requests import InjectedFault
from gatewright.testing.fake_apiserver.server import NAMESPACE as NAMESPACES
from kube.resource import JsonObject, Resource
from tests.controller.runtime.conftest import (
    CONFIGMAP,
    CRD,
    NAMESPACE,
    SECRET,
    WITHIN,
    Running,
    Status,
    Thing,
    configmap,
)
from tests.kube.conftest import CRD as DEFINITIONS
from tests.waiting import eventually


def single(thing: Thing, observed: Observed, now: datetime) -> Plan:
    """One ConfigMap of the Thing's name, with its size."""
    del now
    child = observed.child(CONFIGMAP, name(thing))
    return Plan(
        (Step("config", [Apply(configmap(name(thing), size=str(thing.spec.size)))]),),
        Status({"phase": "Running" if child else "Pending"}),
    )


def name(thing: Thing) -> str:
    """The Thing's name."""
    return str(thing.metadata["name"])


async def test_an_object_costs_its_children_and_one_status(running: Running) -> None:
    """The status is written once, after the writes, from the server's answers."""
    async with running(single) as things:
        things.create()
        ready = await things.until_ready()
        written = things.writes()
        thing = await things.until(things.resource, "thing")
    assert written == ["PATCH configmaps/thing", "PATCH things/thing/status"]
    assert thing["status"]["phase"] == "Running"
    assert thing["status"]["observedGeneration"] == ready["observedGeneration"] == 1


async def test_a_converged_object_costs_nothing(running: Running) -> None:
    """Neither events of its children nor a full pass cause a write."""
    async with running(single) as things:
        things.create()
        await things.until_ready()
        things.server.requests.clear()
        things.server.change(
            CONFIGMAP, "thing", {"metadata": {"annotations": {"somebody": "else"}}}, NAMESPACE
        )
        await things.until_quiet()
        written = [each for each in things.writes() if "marker" not in each]
    assert written == []


async def test_a_restart_costs_nothing(running: Running) -> None:
    """A new process does not apply a child again that has all desired fields."""
    async with running(single) as things:
        things.create()
        await things.until_ready()
    things.server.requests.clear()
    async with running(single) as things:
        await things.until_quiet()
        written = [each for each in things.writes() if "marker" not in each]
    assert written == []


async def test_a_step_is_created_when_its_dependencies_are_ready(running: Running) -> None:
    """The second step is created when the first is ready, and is repaired even if the first is not ready any more."""

    def plan(thing: Thing, observed: Observed, now: datetime) -> Plan:
        first = observed.child(CONFIGMAP, "first")
        holds = bool(first and first["data"].get("ready") == "yes")
        size = str(thing.spec.size)
        return Plan(
            (
                Step("first", [Apply(configmap("first", size=size))], ready=holds),
                Step("second", [Apply(configmap("second", size=size))], depends_on=["first"]),
            ),
            Status(),
        )

    async with running(plan) as things:
        things.create()
        waiting = await things.until_ready("False")
        assert waiting["message"] == "waiting for first"
        assert things.server.get(CONFIGMAP, "second", NAMESPACE) is None
        things.server.change(CONFIGMAP, "first", {"data": {"ready": "yes"}}, NAMESPACE)
        await things.until_ready()
        await things.until(CONFIGMAP, "second")
        things.server.change(CONFIGMAP, "first", {"data": {"ready": "no"}}, NAMESPACE)
        await things.until_ready("False", "Degraded")
        things.server.change(things.resource, "thing", {"spec": {"size": 2}}, NAMESPACE)
        await things.until(CONFIGMAP, "second", lambda each: bool(each["data"]["size"] == "2"))


async def test_what_the_first_write_makes_true_opens_the_next_gate_at_once(
    running: Running,
) -> None:
    """Steps whose needs are met by the server's responses are created in the same reconcile, with one status."""

    def plan(thing: Thing, observed: Observed, now: datetime) -> Plan:
        del thing, now
        return Plan(
            (
                Step(
                    "first",
                    [Apply(configmap("first"))],
                    ready=observed.child(CONFIGMAP, "first") is not None,
                ),
                Step("second", [Apply(configmap("second"))], depends_on=["first"]),
            ),
            Status(),
        )

    async with running(plan) as things:
        things.create()
        await things.until_ready()
        written = things.writes()
    assert written == [
        "PATCH configmaps/first",
        "PATCH configmaps/second",
        "PATCH things/thing/status",
    ]


async def test_a_failed_step_stops_only_those_that_need_it(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The condition has the description of the failed step; it is retried, and then the others are created."""
    monkeypatch.setattr(controller.runtime.workqueue, "FIRST_DELAY", 0.2)
    monkeypatch.setattr(controller.runtime.workqueue, "MAX_JITTER", 0.0)

    def plan(thing: Thing, observed: Observed, now: datetime) -> Plan:
        del thing, now
        return Plan(
            (
                Step("first", [Apply(configmap("first"))], doing="failed to create the first"),
                Step("second", [Apply(configmap("second"))], depends_on=["first"]),
                Step("third", [Apply(configmap("third"))]),
            ),
            Status({"phase": "Deploying"}),
        )

    async with running(plan) as things:
        things.server.fail(1, 500, method="PATCH", path="/configmaps/first")
        things.create()
        failed = await things.until_ready("False")
        assert failed["message"] == "failed to create the first: a fault of the test: 500"
        assert things.server.get(CONFIGMAP, "second", NAMESPACE) is None
        await things.until(CONFIGMAP, "third")
        await things.until_ready()
        await things.until(CONFIGMAP, "second")


async def test_a_conflict_is_reported_and_retried_at_once(running: Running) -> None:
    """The retry comes after milliseconds; five conflicts in a row cause one status."""
    async with running(single) as things:
        things.server.fail(5, 409, method="PATCH", path="/configmaps/thing")
        things.create()
        told = await things.until_ready("False", "Conflict")
        assert told["message"].startswith("failed to create config: ")
        await things.until_ready()
        written = things.writes()
    assert written.count("PATCH configmaps/thing") == 6
    assert written.count("PATCH things/thing/status") == 2


async def test_a_permanent_error_waits_for_a_change(running: Running) -> None:
    """There is a Warning event and a condition; the next change of the spec fixes it."""
    async with running(single) as things:
        things.server.fail(1, 422, method="PATCH", path="/configmaps/thing")
        things.create()
        failed = await things.until_ready("False", "Invalid")
        assert failed["message"].startswith("failed to create config: ")
        event = await things.until_told("ReconcileFailed")
        assert (event["type"], event["note"]) == ("Warning", failed["message"])
        things.server.change(things.resource, "thing", {"spec": {"size": 2}}, NAMESPACE)
        await things.until_ready()


async def test_an_object_of_another_owner_is_never_written(running: Running) -> None:
    """The condition is NameTaken, and the object stays: only its creation is tried, and rejected.

    When the name is free, the child is created without a back-off.
    """
    async with running(single) as things:
        theirs = {
            "metadata": {"name": "thing", "namespace": NAMESPACE},
            "data": {"whose": "theirs"},
        }
        foreign = things.server.create(CONFIGMAP, theirs)
        things.create()
        await things.until_ready("False", "NameTaken")
        assert things.server.get(CONFIGMAP, "thing", NAMESPACE) == foreign
        tried = [each for each in things.writes() if "configmaps" in each]
        assert tried == ["PATCH configmaps/thing"]
        things.server.delete(CONFIGMAP, "thing", NAMESPACE)
        await things.until_ready()


async def test_the_child_of_an_earlier_object_of_the_name_is_waited_for(running: Running) -> None:
    """A recreated object does not adopt children that the garbage collector is about to delete."""
    async with running(single) as things:
        old = things.create()
        await things.until_ready()
        child = await things.until(CONFIGMAP, "thing")
        things.server.delete(things.resource, "thing", NAMESPACE)
        new = things.create()
        made = await things.until(
            CONFIGMAP, "thing", lambda each: each["metadata"]["uid"] != child["metadata"]["uid"]
        )
        await things.until_ready()
    assert old["metadata"]["uid"] != new["metadata"]["uid"]
    assert made["metadata"]["ownerReferences"][0]["uid"] == new["metadata"]["uid"]


async def test_a_child_that_is_still_terminating_is_reported(running: Running) -> None:
    """The message names the object, nothing is written to it, and it is recreated once it is gone."""
    async with running(single) as things:
        things.create()
        await things.until_ready()
        things.server.change(
            CONFIGMAP, "thing", {"metadata": {"finalizers": ["some.one/else"]}}, NAMESPACE
        )
        things.server.requests.clear()
        things.server.delete(CONFIGMAP, "thing", NAMESPACE)
        ready = await things.until_ready("False", "StillThere")
        assert ready["message"] == (
            "failed to create config: ConfigMap thing is still terminating, held by its finalizers (some.one/else); "
            "it will be recreated"
        )
        assert things.writes() == ["PATCH things/thing/status"]
        things.server.change(CONFIGMAP, "thing", {"metadata": {"finalizers": None}}, NAMESPACE)
        await things.until_ready()
        child = await things.until(CONFIGMAP, "thing")
    assert "deletionTimestamp" not in child["metadata"]


@pytest.mark.parametrize("is_gone", [False, True], ids=["terminating", "gone"])
async def test_what_a_namespace_that_is_deleted_refuses_is_no_failure(
    running: Running, caplog: pytest.LogCaptureFixture, *, is_gone: bool
) -> None:
    """Its object goes, too: the write is not retried, and there is no warning."""

    def plan(thing: Thing, observed: Observed, now: datetime) -> Plan:
        things.server.delete(NAMESPACES, NAMESPACE)
        return single(thing, observed, now)

    async with running(plan) as things:
        if not is_gone:
            metadata = {"name": "held", "namespace": NAMESPACE, "finalizers": ["some.one/else"]}
            things.server.create(CONFIGMAP, {**configmap("held"), "metadata": metadata})
        things.server.requests.clear()
        caplog.set_level("INFO", "gatewright.controller")
        things.create()
        queue = things.manager.controllers[0].queue
        await things.server.requests.until(lambda requests: bool(things.writes()))
        await eventually(lambda: not (queue.processing or queue._entries), within=WITHIN, every=0)
    assert things.writes() == ["PATCH configmaps/thing", "PATCH things/thing/status"]
    assert [each.getMessage() for each in caplog.records if each.levelname != "INFO"] == []


async def test_a_secret_is_created_once_and_hidden_from_plans(running: Running) -> None:
    """Its random value survives every later pass, and planners get the metadata only."""
    seen_secrets: list[Any] = []

    def plan(thing: Thing, observed: Observed, now: datetime) -> Plan:
        del now
        seen_secrets.append(observed.child(SECRET, "credentials"))
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "credentials"},
            "data": {"user": "YWRtaW4="},
        }
        return Plan(
            (
                Step("credentials", [CreateOnly(secret, generate={"data.password": Random(24)})]),
                Step("config", [Apply(configmap("config", size=str(thing.spec.size)))]),
            ),
            Status(),
        )

    async with running(plan) as things:
        things.create()
        await things.until_ready()
        made = await things.until(SECRET, "credentials")
        things.server.change(things.resource, "thing", {"spec": {"size": 2}}, NAMESPACE)
        await things.until(CONFIGMAP, "config", lambda each: bool(each["data"]["size"] == "2"))
        kept = await things.until(SECRET, "credentials")
    assert len(base64.b64decode(made["data"]["password"])) == 24
    assert made["data"]["user"] == "YWRtaW4="
    assert kept["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    assert len(seen_secrets) > 2
    assert all(
        each is None or set(each) == {"apiVersion", "kind", "metadata"} for each in seen_secrets
    )


async def test_a_patch_changes_only_its_fields_of_that_very_object(running: Running) -> None:
    """A foreign object gets only the annotation; a second pass writes nothing."""

    def plan(thing: Thing, observed: Observed, now: datetime) -> Plan:
        del thing, now
        fields = {"metadata": {"annotations": {"checksum": "1"}}}
        return Plan((Step("mark", [ApplyFields(reference, fields)]),), Status())

    found_by_name = Reads(CONFIGMAP, {"name": lambda each: [each["metadata"]["name"]]})
    async with running(plan, reads=[found_by_name]) as things:
        theirs = things.server.create(
            CONFIGMAP, {"metadata": {"name": "theirs", "namespace": NAMESPACE}, "data": {"a": "b"}}
        )
        reference = Reference(CONFIGMAP, "theirs", theirs["metadata"]["uid"], NAMESPACE)
        await things.until_quiet()
        marked = await things.until(
            CONFIGMAP, "theirs", lambda each: "annotations" in each["metadata"]
        )
        things.server.requests.clear()
        await things.until_quiet()
        assert all("configmaps" not in each for each in things.writes())
        assert "Adopted" not in [event["reason"] for event in things.server.list(EVENT)]
    assert marked["metadata"]["annotations"] == {"checksum": "1"}
    assert marked["data"] == {"a": "b"}
    assert "ownerReferences" not in marked["metadata"]


async def test_only_a_delete_removes_anything(running: Running) -> None:
    """A child missing from the plan stays; one that the plan deletes by uid is deleted."""

    def plan(thing: Thing, observed: Observed, now: datetime) -> Plan:
        del now
        if thing.spec.size == 1:
            return Plan(
                (Step("config", [Apply(configmap("a"))]), Step("other", [Apply(configmap("b"))])),
                Status(),
            )
        child = observed.child(CONFIGMAP, "b")
        doomed = (
            [Delete(Reference(CONFIGMAP, "b", child["metadata"]["uid"], NAMESPACE))]
            if child
            else []
        )
        return Plan((Step("shrink", doomed),), Status())

    async with running(plan) as things:
        things.create()
        await things.until_ready()
        things.server.change(things.resource, "thing", {"spec": {"size": 2}}, NAMESPACE)
        await things.until_gone(CONFIGMAP, "b")
        assert things.server.get(CONFIGMAP, "a", NAMESPACE) is not None


async def test_a_finalizer_holds_an_object_while_there_is_something_to_undo(
    running: Running,
) -> None:
    """It is added before the first child, and removed when the plan reports a finished clean-up."""

    def plan(thing: Thing, observed: Observed, now: datetime) -> Plan:
        del observed, now
        undone = "deletionTimestamp" in thing.metadata and thing.metadata.get("annotations") == {
            "undone": "yes"
        }
        return Plan((Step("config", [Apply(configmap("config"))]),), Status(), finalized=undone)

    async with running(plan, finalizer="test.example/finalizer") as things:
        things.create()
        await things.until_ready()
        thing = await things.until(things.resource, "thing")
        assert thing["metadata"]["finalizers"] == ["test.example/finalizer"]
        assert things.writes()[0] == "PATCH things/thing"
        things.server.delete(things.resource, "thing", NAMESPACE)
        things.server.delete(CONFIGMAP, "config", NAMESPACE)
        things.server.change(
            things.resource, "thing", {"metadata": {"annotations": {"undone": "yes"}}}, NAMESPACE
        )
        await things.until_gone(things.resource, "thing")
        assert things.server.get(CONFIGMAP, "config", NAMESPACE) is None


async def test_the_clean_up_of_an_object_that_is_already_gone_is_done(running: Running) -> None:
    """The cache may be behind the deletion: there is no failure, no event and no second try."""

    def plan(thing: Thing, observed: Observed, now: datetime) -> Plan:
        del observed, now
        return Plan((), Status(), finalized="deletionTimestamp" in thing.metadata)

    async with running(plan, finalizer="test.example/finalizer") as things:
        things.create()
        await things.until_ready()
        gone = InjectedFault(times=1, code=404, method="PATCH", path="/things/thing")
        things.server.requests.faults.append(gone)
        things.server.requests.clear()
        things.server.delete(things.resource, "thing", NAMESPACE)
        await things.server.requests.until(lambda requests: not gone.times)
        await things.until_quiet()
        writes = [each for each in things.writes() if "marker" not in each]
        warnings = [each for each in things.server.list(EVENT) if each["type"] == "Warning"]
    assert (writes, warnings) == (["PATCH things/thing"], [])


async def test_the_time_of_creation_is_counted_once(running: Running) -> None:
    """A later failure and recovery do not count as a creation."""
    async with running(single) as things:
        things.create()
        await things.until_ready()
        things.server.change(things.resource, "thing", {"spec": {"size": "many"}}, NAMESPACE)
        await things.until_ready("False", "Invalid")
        things.server.change(things.resource, "thing", {"spec": {"size": 2}}, NAMESPACE)
        await things.until_ready()
        registry = things.manager.metrics.registry
        count = registry.get_sample_value(
            "thing_creation_duration_seconds_count", {"namespace": NAMESPACE}
        )
    assert count == 1


async def test_what_cannot_be_read_is_a_permanent_error_that_names_the_field(
    running: Running,
) -> None:
    """An object that its type rejects gets a condition, and a plan after it is corrected."""
    async with running(single) as things:
        things.create(size="many")
        refused = await things.until_ready("False", "Invalid")
        assert refused["message"].startswith("spec.size: ")
        things.server.change(things.resource, "thing", {"spec": {"size": 1}}, NAMESPACE)
        await things.until_ready()


async def test_a_problem_of_the_plan_is_reported_and_its_events_are_emitted(
    running: Running,
) -> None:
    """A problem of the plan is permanent; the plan's events are emitted."""

    def plan(thing: Thing, observed: Observed, now: datetime) -> Plan:
        del observed, now
        problem = Problem("spec.size: 9 is too much", "TooMuch") if thing.spec.size == 9 else None
        return Plan(
            (),
            Status({"phase": "Running"}),
            problem=problem,
            events=[Event("Looked", "observed it")],
        )

    async with running(plan) as things:
        things.create(size=9)
        await things.until_ready("False", "TooMuch")
        assert (await things.until_told("Looked"))["type"] == "Normal"
        assert (await things.until_told("ReconcileFailed"))["type"] == "Warning"
        thing = await things.until(things.resource, "thing")
    assert thing["status"]["phase"] == "Failed"


async def test_a_plan_can_ask_for_another_look(running: Running) -> None:
    """`requeue_after` reconciles the object without any change."""
    looks = 0

    def plan(thing: Thing, observed: Observed, now: datetime) -> Plan:
        nonlocal looks
        del thing, observed, now
        looks += 1
        return Plan((), Status({"looks": min(looks, 3)}), requeue_after=timedelta(milliseconds=1))

    async with running(plan) as things:
        things.create()
        await things.until(
            things.resource, "thing", lambda each: each.get("status", {}).get("looks") == 3
        )


async def test_what_a_planner_reads_wakes_its_objects(running: Running) -> None:
    """An object that waits for a foreign object is reconciled when that appears."""

    def plan(thing: Thing, observed: Observed, now: datetime) -> Plan:
        del thing, now
        return Plan(
            (Step("lease", [], ready=bool(observed.find(LEASE, "holder", "somebody"))),), Status()
        )

    async with running(plan, reads=(Reads(LEASE, {"holder": holder}),)) as things:
        things.create()
        await things.until_ready("False")
        about = {"name": "a", "namespace": NAMESPACE}
        things.server.create(LEASE, {"metadata": about, "spec": {"holderIdentity": "somebody"}})
        await things.until_ready()


def holder(lease: dict[str, Any]) -> list[str]:
    """The holder of a Lease."""
    return [lease["spec"]["holderIdentity"]]


async def test_what_is_read_wakes_only_those_that_share_an_index_with_it(running: Running) -> None:
    """Of two objects in a namespace, only the one that a change concerns is reconciled, also after a deletion."""
    looks: list[str] = []

    def plan(thing: Thing, observed: Observed, now: datetime) -> Plan:
        del now
        looks.append(name(thing))
        return Plan(
            (Step("lease", [], ready=bool(observed.find(LEASE, "holder", name(thing)))),), Status()
        )

    by_name = {"holder": lambda thing: [thing["metadata"]["name"]]}
    async with running(plan, reads=(Reads(LEASE, {"holder": holder}),), indexes=by_name) as things:
        for each in ("one", "other"):
            things.create(each)
            await things.until_ready("False", name=each)
        looks.clear()
        lease = {
            "metadata": {"name": "a", "namespace": NAMESPACE},
            "spec": {"holderIdentity": "one"},
        }
        things.server.create(LEASE, lease)
        await things.until_ready(name="one")
        things.server.change(LEASE, "a", {"spec": {"holderIdentity": "nobody"}}, NAMESPACE)
        await things.until_ready("False", "Degraded", name="one")
    assert set(looks) == {"one"}


async def test_an_absent_optional_api_delays_no_plan(running: Running) -> None:
    """Before the first plan, an absent API is known not to be served."""
    monitor = Resource("monitoring.example.com", "v1", "monitors", "Monitor")

    def plan(thing: Thing, observed: Observed, now: datetime) -> Plan:
        del thing, now
        return Plan(
            (), Status({"monitors": observed.serves(monitor), "leases": observed.serves(LEASE)})
        )

    async with running(plan, reads=(monitor, LEASE), optional=(monitor,)) as things:
        things.create()
        await things.until_ready()
        thing = await things.until(things.resource, "thing")
        problem = things.manager.unready()
    assert (thing["status"]["monitors"], thing["status"]["leases"]) == (False, True)
    assert problem is None


async def test_an_api_that_is_installed_later_is_used(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Installing and removing an optional API reconciles the objects that can use it."""
    monkeypatch.setattr(kube.backoff, "LONGEST", 0.05)
    monitor = Resource("monitoring.example.com", "v1", "monitors", "Monitor")

    def plan(thing: Thing, observed: Observed, now: datetime) -> Plan:
        del thing, now
        return Plan((), Status({"monitors": observed.serves(monitor)}))

    async with running(plan, reads=(monitor,), optional=(monitor,)) as things:
        things.create()
        await things.until(
            things.resource, "thing", lambda each: each.get("status", {}).get("monitors") is False
        )
        things.server.create(DEFINITIONS, crd_of(monitor))
        await things.until(things.resource, "thing", lambda each: bool(each["status"]["monitors"]))
        things.server.delete(DEFINITIONS, crd_of(monitor)["metadata"]["name"])
        things.server.close_watches()
        await things.until(things.resource, "thing", lambda each: not each["status"]["monitors"])


def crd_of(resource: Resource) -> JsonObject:
    """A CRD as that of Things."""
    crd = deepcopy(CRD)
    crd["metadata"]["name"] = f"{resource.plural}.{resource.group}"
    names = {"plural": resource.plural, "singular": resource.kind.lower(), "kind": resource.kind}
    crd["spec"] |= {"group": resource.group, "names": names | {"listKind": f"{resource.kind}List"}}
    return crd


def test_a_kind_writes_only_what_it_owns_or_reads() -> None:
    """Patched, deleted and optional resources must be declared, or their changes would be missed."""
    with pytest.raises(ValueError, match="Thing neither owns nor reads leases"):
        PlannedKind(Thing, plan=single, patches=(LEASE,))


def test_an_empty_seen_is_enough_to_plan() -> None:
    """`gatewright plan` needs no cluster."""
    thing = Thing.model_validate({"metadata": {"name": "a"}, "spec": {"size": 3}})
    made = single(thing, Observed(), datetime(2026, 1, 1)).steps[0].writes[0]
    assert isinstance(made, Apply)
    assert made.object["data"] == {"size": "3"}
