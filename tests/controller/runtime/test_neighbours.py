"""Who waits for a name that is taken."""

from controller.runtime.guard import NameTakenError
from controller.runtime.neighbours import NamesAwaited
from controller.runtime.result import Request
from kube.changes import Change
from tests.controller.runtime.conftest import CONFIGMAP

ONE, OTHER = Request("default", "one"), Request("default", "other")


def awaiting(*requests: Request) -> NamesAwaited:
    """Return what these requests wait for: the name `shop`."""
    names = NamesAwaited()
    for request in requests:
        names.note(NameTakenError("it exists", CONFIGMAP, "default/shop"), request)
    return names


def gone(name: str) -> Change:
    """Return the end of a ConfigMap."""
    return Change("deleted", f"default/{name}", None, None, initial=False)


def test_a_name_wakes_those_who_wait_for_it_once() -> None:
    """All of them, at any change of the object that has it, and nobody at a change of another."""
    names = awaiting(ONE, OTHER)
    wakes = names.wakes(CONFIGMAP)
    assert set(wakes(gone("blog"))) == set()
    assert set(wakes(gone("shop"))) == {ONE, OTHER}
    assert set(wakes(gone("shop"))) == set()


def test_what_is_gone_waits_no_more() -> None:
    """The others still do; where there are none, nothing is kept."""
    names = awaiting(ONE, OTHER)
    names.forget(ONE)
    assert names.awaited == {(CONFIGMAP, "default/shop"): {OTHER}}
    names.forget(OTHER)
    assert not names.awaited
