"""Which installation writes, if several reconcile the same kinds and namespaces."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from controller.runtime.events import EventRecorder
from controller.runtime.installations import Installations, Scope
from controller.runtime.leader import LeaseSettings, micro_time
from controller.runtime.metrics import ControllerMetrics
from controller.runtime.plan import Event
from kube.client import Client
from kube.endpoint import Endpoint
from kube.resource import JsonObject, Resource
from tests.controller.runtime.clock import Clock

WIDGET = Resource("example.com", "v1", "widgets", "Widget")
GEAR = Resource("example.com", "v1", "gears", "Gear")
NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)


class Recorder(EventRecorder):
    """Keeps the notes of events."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def record(self, regarding: JsonObject, event: Event) -> None:
        """Keep the note."""
        self.notes.append(f"{regarding['metadata']['name']}: {event.note}")


def scope(*kinds: str, namespaces: tuple[str, ...] = ()) -> Scope:
    """A scope of kinds of example.com."""
    return Scope(frozenset(f"{each}.example.com" for each in kinds), frozenset(namespaces))


def lease(name: str, created: int, scope: Scope, **spec: Any) -> JsonObject:
    """A held Lease that was created some seconds after NOW, and renewed at NOW."""
    held = {
        "holderIdentity": f"{name}-pod",
        "leaseDurationSeconds": 15,
        "renewTime": micro_time(NOW),
    }
    at = (NOW + timedelta(seconds=created)).strftime("%Y-%m-%dT%H:%M:%SZ")
    about = {"name": name, "namespace": "ns", "uid": name, "creationTimestamp": at}
    return {"metadata": {**about, **scope.metadata}, "spec": {**held, **spec}}


class View:
    """The installation of the Lease `ns/own`, created at second 10, with widgets and gears."""

    def __init__(self, **namespaces: Any) -> None:
        self.clock = Clock()
        self.recorder = Recorder()
        self.metrics = ControllerMetrics(CollectorRegistry())
        self.installations = Installations(
            Client(Endpoint("http://127.0.0.1:1", namespace="ns")),
            LeaseSettings("ns", "own"),
            self.recorder,
            self.metrics.older_installations,
            clock=self.clock,
            now=lambda: NOW,
        )
        self.installations.scope = scope("widgets", "gears", **namespaces)

    def look(self, *others: JsonObject) -> None:
        """Compare with other Leases."""
        self.installations.look([lease("own", 10, self.installations.scope), *others])

    def precedes(self, resource: Resource = WIDGET, namespace: str | None = "team") -> bool:
        """Whether another installation reconciles these objects."""
        return self.installations.precedes(resource, namespace)


def test_the_older_one_writes() -> None:
    """What both reconcile belongs to the Lease that was created first; an event and a metric say so."""
    view = View()
    view.look(lease("old", 0, scope("widgets")), lease("new", 20, scope("gears")))
    assert view.precedes(WIDGET)
    assert not view.precedes(GEAR)
    assert view.recorder.notes == [
        "own: another Gatewright controller, Lease ns/old, reconciles widgets.example.com in all "
        "namespaces; it was installed first, so this one does not write these objects. Uninstall "
        "one of them, or give each its own --kinds or --namespaces"
    ]
    assert view.metrics.registry.get_sample_value(
        "gatewright_older_installation", {"lease": "ns/old"}
    )
    assert view.installations.other(GEAR, "team") == "ns/new"


@pytest.mark.parametrize(
    ("own", "other", "namespace", "precedes"),
    [
        ((), (), "team", True),
        ((), ("team",), "team", True),
        ((), ("team",), "other", False),
        (("team", "own"), ("team",), "team", True),
        (("team", "own"), ("team",), "own", False),
        (("own",), ("team",), "own", False),
    ],
)
def test_only_common_namespaces_are_left_out(
    own: tuple[str, ...], other: tuple[str, ...], namespace: str, precedes: bool
) -> None:
    """All other namespaces are reconciled."""
    view = View(namespaces=own)
    view.look(lease("old", 0, scope("widgets", namespaces=other)))
    assert view.precedes(WIDGET, namespace) is precedes


def test_a_released_or_abandoned_lease_counts_for_nothing() -> None:
    """It has no holder, or was not renewed for a long time."""
    view = View()
    long_ago = micro_time(NOW - timedelta(hours=1))
    view.look(
        lease("released", 0, scope("widgets"), holderIdentity=None),
        lease("abandoned", 0, scope("widgets"), renewTime=long_ago),
    )
    assert not view.precedes()


def test_an_installation_that_ends_is_succeeded() -> None:
    """Once its Lease is not renewed for its duration; then all objects are enqueued."""
    view, changes = View(), list[bool]()
    view.installations.on_change.append(lambda: changes.append(view.precedes()))
    old = lease("old", 0, scope("widgets"))
    view.look(old)
    view.clock.now += 14
    view.look(old)
    assert view.precedes()
    view.clock.now += 2
    view.look(old)
    assert changes == [True, False]
    assert not view.precedes()
    view.look(lease("old", 0, scope("widgets"), renewTime=micro_time(NOW + timedelta(seconds=20))))
    assert view.precedes()
    assert not view.metrics.registry.get_sample_value(
        "gatewright_older_installation", {"lease": "ns/gone"}
    )


def test_leases_of_one_second_are_ordered_by_their_uids() -> None:
    """Exactly one of two installations precedes the other."""
    view = View()
    view.look(lease("a-lease", 10, scope("widgets")), lease("z-lease", 10, scope("gears")))
    assert view.precedes(WIDGET)
    assert not view.precedes(GEAR)


def test_a_scope_is_read_back_from_a_lease() -> None:
    """Labels and annotations have all of it."""
    for written in (scope("widgets", "gears"), scope("gears", namespaces=("a", "b"))):
        assert Scope.of(lease("any", 0, written)) == written
