"""Reports the policies of a ConfigMap that are not in force, by events about the ConfigMap.

A policy object has conditions; a ConfigMap has none. The events are in `kubectl describe configmap`
and `kubectl get events`.
"""

from collections.abc import Callable
from contextlib import suppress

from controller.runtime.controller import Controller
from controller.runtime.events import EventRecorder
from controller.runtime.metrics import ControllerMetrics
from controller.runtime.plan import Event
from controller.runtime.types import ReconcileRequest, Result
from kube.watched import AbsentError, WatchedObject

REQUEST = ReconcileRequest(None, "policies")
OF_A_CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap"}


def refused_policies(
    config_map: WatchedObject,
    refusal: Callable[[], tuple[str, str] | None],
    recorder: EventRecorder,
    metrics: ControllerMetrics,
) -> Controller:
    """Return the controller that records the events; REQUEST is to be added to it at a change.

    `refusal` returns reason and message why the newest content of the ConfigMap is not in force, or
    None.
    """

    async def reconcile(_: ReconcileRequest) -> Result:
        if (found := refusal()) is not None:
            reason, message = found
            with suppress(AbsentError):
                about = {**config_map.get(), **OF_A_CONFIG_MAP}
                recorder.record(about, Event(reason, message, "Warning"))
        return Result()

    controller = Controller(REQUEST.name, reconcile=reconcile, metrics=metrics, workers=1)
    controller.add(REQUEST)
    return controller
