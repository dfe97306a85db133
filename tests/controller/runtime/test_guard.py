"""Nothing is taken over, not even in the moment between looking and creating."""

from copy import deepcopy

import pytest
from prometheus_client import CollectorRegistry

from controller.fake_apiserver import FakeApiServer
from controller.runtime.caches import Caches
from controller.runtime.events import Recorder
from controller.runtime.guard import NameTakenError, StillThereError, refuse_foreign
from controller.runtime.metrics import Metrics
from controller.runtime.own_writes import OwnWrites
from controller.runtime.parent import Parent
from controller.runtime.plan import Apply, Object
from controller.runtime.planned import Planned
from controller.runtime.planned_kind import PlannedKind
from controller.runtime.result import Request
from controller.runtime.view import View
from controller.runtime.writes import Writer
from kube.client import Client
from tests.controller.runtime.conftest import CONFIGMAP, NAMESPACE, Thing, configmap
from tests.controller.runtime.test_planned import single

KIND = PlannedKind(Thing, plan=single, owns=(CONFIGMAP,))
THING = {"apiVersion": "test.example/v1", "kind": "Thing", "metadata": {"name": "thing", "uid": "our-uid"}}
PARENT = Parent(Request(NAMESPACE, "thing"), KIND.resource, THING)


def controlled_by(**owner: str) -> Object:
    """An object with a controller."""
    reference = {
        "apiVersion": "test.example/v1",
        "kind": "Thing",
        "name": "thing",
        "uid": "our-uid",
        "controller": True,
    }
    return {"metadata": {"name": "a", "ownerReferences": [{**reference, **owner}]}}


def test_our_child_may_be_written() -> None:
    """The controller's uid is what counts."""
    refuse_foreign(CONFIGMAP, "default/a", controlled_by(), PARENT)


@pytest.mark.parametrize(
    ("object", "why"),
    [
        ({"metadata": {"name": "a"}}, "ConfigMap a exists and was not made by this Thing"),
        (controlled_by(uid="x", name="other"), "ConfigMap a exists and belongs to Thing other"),
        (controlled_by(uid="x", kind="Widget"), "ConfigMap a exists and belongs to Widget thing"),
    ],
)
def test_anything_else_is_refused(object: Object, why: str) -> None:
    """The message says whose it is."""
    with pytest.raises(NameTakenError, match=why):
        refuse_foreign(CONFIGMAP, "default/a", object, PARENT)


def test_a_child_of_an_earlier_parent_is_waited_for() -> None:
    """The same name and kind, another uid: the garbage collector is on its way."""
    with pytest.raises(StillThereError):
        refuse_foreign(CONFIGMAP, "default/a", controlled_by(uid="earlier"), PARENT)


async def test_an_object_that_the_caches_do_not_know_is_never_touched(server: FakeApiServer) -> None:
    """What somebody made a moment ago, with no field that differs from ours, stays as it is: nothing is merged in."""
    thing = server.create(KIND.resource, {"metadata": {"name": "thing", "namespace": NAMESPACE}, "spec": {}})
    parent = Parent(Request(NAMESPACE, "thing"), KIND.resource, thing)
    theirs = server.create(CONFIGMAP, {"metadata": {"name": "thing", "namespace": NAMESPACE}, "data": {"size": "1"}})
    async with Client(server.endpoint) as client:
        caches = {each: Caches(client).of(each) for each in (KIND.resource, CONFIGMAP)}
        writer = Writer(KIND, client, caches, OwnWrites())
        view = View(parent.request, KIND, caches, {})
        with pytest.raises(NameTakenError):
            await writer.write(Apply(configmap("thing", size="1")), parent, view, may_create=True)
    assert server.get(CONFIGMAP, "thing", NAMESPACE) == theirs


async def test_what_the_caches_do_not_show_in_time_is_read_from_the_api_server(server: FakeApiServer) -> None:
    """Caches that stand still do not make a second reconcile write again."""
    thing = server.create(KIND.resource, {"metadata": {"name": "thing", "namespace": NAMESPACE}, "spec": {}})
    async with Client(server.endpoint) as client:
        caches = Caches(client)
        planned = Planned(KIND, client, caches, Recorder(client, "test"), Metrics(CollectorRegistry()))
        caches.of(KIND.resource).stores[None].put(deepcopy(thing))
        await planned.reconcile(Request(NAMESPACE, "thing"))
        written = len(server.requests.writes)
        await planned.reconcile(Request(NAMESPACE, "thing"))
    assert written == len(server.requests.writes) == 2
