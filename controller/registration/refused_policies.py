"""Reports policies of files and of ConfigMaps that are not in force, by events.

A policy object has conditions; a ConfigMap and files have none. The events are about the ConfigMaps
that the message names or, without any, about the controller's Lease; `kubectl describe` lists them.
"""

from collections.abc import Callable, Iterable

from controller.runtime.controller import Controller
from controller.runtime.events import EventRecorder
from controller.runtime.metrics import ControllerMetrics
from controller.runtime.plan import Event
from controller.runtime.types import ReconcileRequest, Result
from kube.resource import JsonObject

REQUEST = ReconcileRequest(None, "policies")


def refused_policies(
    regarding: Callable[[str], Iterable[tuple[JsonObject, str]]],
    refusal: Callable[[], tuple[str, str] | None],
    recorder: EventRecorder,
    metrics: ControllerMetrics,
) -> Controller:
    """Return the controller that records the events; REQUEST is to be added to it at a change.

    `refusal` returns reason and message why the newest policies are not in force, or None, and
    `regarding` the objects that a message is about, each with its part of it.
    """

    async def reconcile(_: ReconcileRequest) -> Result:
        if (refused := refusal()) is not None:
            reason, message = refused
            for about, part in regarding(message):
                recorder.record(about, Event(reason, part, "Warning"))
        return Result()

    controller = Controller(REQUEST.name, reconcile=reconcile, metrics=metrics, workers=1)
    controller.add(REQUEST)
    return controller
