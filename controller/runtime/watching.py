"""What wakes a controller, in controller-runtime's words: For, Owns and Watches."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from controller.runtime.caches import Caches
from controller.runtime.controller import Controller
from controller.runtime.plan import Object
from controller.runtime.result import Request
from controller.runtime.wakes import Wakes, primary
from kube.changes import Change
from kube.resource import Resource


class For(NamedTuple):
    """The objects that are reconciled: a change of one wakes it, unless only its status changed.

    `wakes=itself` is for those whose status counts. Every object is looked at again after about ten hours.
    """

    resource: Resource
    wakes: Wakes = primary


class Owns(NamedTuple):
    """Their children: any change of one, its status included, wakes the object that controls it."""

    resource: Resource


class Watches(NamedTuple):
    """Any other objects: a change of one wakes what `map` says of it, as it was before and as it is now."""

    resource: Resource
    map: Callable[[Object], Iterable[Request]]


def watch(controller: Controller, caches: Caches, watched: Sequence[For | Owns | Watches]) -> None:
    """Let a controller be woken by all that is `watched`; ValueError where nobody says whose children are owned."""
    parents = [each.resource for each in watched if isinstance(each, For)]
    for each in watched:
        match each:
            case For(resource, wakes):
                controller.watch(caches.of(resource), wakes, periodic=True)
            case Owns(resource):
                if len(parents) != 1:
                    raise ValueError(f"Owns({resource.plural}) takes exactly one For beside it: whose they are")
                controller.watch_children(caches.of(resource), parents[0])
            case Watches(resource, map):
                controller.watch(caches.of(resource), mapped(map))


def mapped(map: Callable[[Object], Iterable[Request]]) -> Wakes:
    """Wake what `map` names of the object before the change, and of that after it, each once."""

    def wakes(change: Change) -> Iterable[Request]:
        states = [entry.object for entry in (change.old, change.new) if entry is not None]
        return dict.fromkeys(request for state in states for request in map(state))

    return wakes
